"""Data larger than memory: put in bins in two passes over their files, kept in a folder, mapped into memory to train.

The first pass takes the same sample of rows as `bin_data` (by a hash of their numbers) and finds the same cuts; the
second writes the bins. A block that is written is noted with its checksum, so that a pass that was killed goes on.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import numpy as np

from miserly.boosting._binning import (
    COLUMNS_AT_ONCE,
    MAX_BINS,
    SAMPLE,
    BinnedData,
    cut_columns,
    encode_rows,
    hashes,
    no_cuts,
)
from miserly.datasets import CsvStream, LetorStream, ParquetStream, Paths, RowStream
from miserly.files import locked, whole_file, write_whole, writing
from miserly.kernels.histograms import LANES
from miserly.kernels.threads import n_threads

FORMAT = "miserly-bins"
VERSION = 2  # 2: the checksum covers the header too
DECODED_CELLS = 1 << 22
logger = logging.getLogger(__name__)
Folder = str | Path | None
_ARRAYS = ("cuts", "n_bins", "y", "qid")
_WHOLE = (*(f"{name}.npy" for name in _ARRAYS), "survey.json", "header.json")


class BinnedFileError(ValueError):
    """A folder that holds no bins, or damaged ones, or those of other files."""


class BinnedDataset:
    """The bins of a data set in a folder, its labels and query ids: `model.fit(binned, binned.y)`.

    Made by `from_parquet`, `from_csv` or `from_letor`; `BinnedDataset(folder)` opens it again, and reads all of it once
    to compare checksums. What is trained on is a copy without a name on the same disk, so nobody can change or cut it
    while it is mapped; it goes with the last reference. Where no copy can be written the file itself is mapped.

    Parameters
    ----------
    folder : str or Path
        Where the bins are.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from miserly import BinnedDataset
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("age,y\\n1,0\\n2,1\\n3,1\\n")
    ...     BinnedDataset.from_csv(Path(folder, "a.csv"), Path(folder, "bins"), label="y").y.tolist()
    [0, 1, 1]
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        header = _read_json(self.folder / "header.json")
        if header.get("format") != FORMAT or header.get("version") not in (1, VERSION):
            raise BinnedFileError(f"'{folder}' holds no bins that this version can read. Make them again.")
        try:
            words, arrays = self._verified(header)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, BinnedFileError):
                raise
            raise BinnedFileError(f"'{folder}' is damaged: its header is ({error}). Make the bins again.") from error
        self.data = BinnedData(words, arrays["cuts"], arrays["n_bins"])  # type: ignore[arg-type]

    def _verified(self, header: dict[str, Any]) -> tuple[np.ndarray, dict[str, np.ndarray | None]]:
        """The bins and the small arrays, all of whose checksums agree."""
        arrays = {name: _load(self.folder, name) for name in _ARRAYS}
        self.features: tuple[str, ...] = tuple(header["features"])
        self.named: bool = header["named"]
        self.max_bins: int = header["max_bins"]
        self.y, self.qid = arrays["y"], arrays["qid"]
        shape = (-(-len(self.features) // LANES), int(header["n_rows"]))
        place = self.folder / "words"
        if not place.is_file() or place.stat().st_size != 8 * shape[0] * shape[1]:
            raise BinnedFileError(f"'{place}' is cut short. Make the bins again.")
        blocks = [tuple(block) for block in header["blocks"]]
        with _private_copy(place) as file:
            if _digest(arrays, header) != header["checksum"] or not _words_agree(file, shape, blocks):
                raise BinnedFileError(f"'{self.folder}' is damaged: a checksum does not agree. Make the bins again.")
            return np.asarray(np.memmap(file, "<u8", "c", shape=shape)), arrays

    @classmethod
    def from_parquet(
        cls,
        paths: Paths,
        folder: Folder = None,
        label: str | None = None,
        qid: str | None = None,
        **options: Any,
    ) -> BinnedDataset:
        """Put Parquet files in bins; they have the same columns. Options are those of `from_stream`."""
        return cls.from_stream(ParquetStream(paths, label, qid), folder, **options)

    @classmethod
    def from_csv(
        cls,
        paths: Paths,
        folder: Folder = None,
        label: str | None = None,
        qid: str | None = None,
        **options: Any,
    ) -> BinnedDataset:
        """Put CSV files in bins; they have the same header. Options are those of `from_stream`."""
        return cls.from_stream(CsvStream(paths, label, qid), folder, **options)

    @classmethod
    def from_letor(
        cls, paths: Paths, folder: Folder = None, n_features: int | None = None, **options: Any
    ) -> BinnedDataset:
        """Put LETOR (SVMlight) files in bins. Options are those of `from_stream`."""
        return cls.from_stream(LetorStream(paths, n_features), folder, **options)

    @classmethod
    def from_stream(
        cls,
        stream: RowStream,
        folder: Folder = None,
        max_bins: int = MAX_BINS,
        like: BinnedDataset | None = None,
        n_jobs: int | None = None,
    ) -> BinnedDataset:
        """Put the rows of a stream in bins, in a folder (by default `FILE.bins` beside the first file).

        What an earlier call with the same files has done there is not done again. `like` takes the cuts of another set:
        validation and test data must lie in the bins of the training data.
        """
        if like is not None and (like.features != stream.features or like.max_bins != max_bins):
            raise ValueError("`like` must have the same features and max_bins: its bins are used for these rows.")
        cuts = None if like is None else (like.data.cuts, like.data.n_bins)
        place = Path(folder) if folder is not None else stream.paths[0].with_name(stream.paths[0].name + ".bins")
        _Writer(stream, place, max_bins, cuts, n_jobs).write()
        return cls(place)

    def __len__(self) -> int:
        return self.data.n_rows

    def __repr__(self) -> str:
        return f"BinnedDataset('{self.folder}', {self.shape[0]} × {self.shape[1]})"

    @property
    def shape(self) -> tuple[int, int]:
        return self.data.n_rows, self.data.n_features

    def blocks(self, features: Any) -> Iterator[tuple[slice, np.ndarray]]:
        """The rows as numbers in their bins, block by block, for these features; zero in all others."""
        size = max(1, DECODED_CELLS // self.shape[1])
        for first in range(0, len(self), size):
            rows = slice(first, min(first + size, len(self)))
            yield rows, self.data.values(rows, features)


class _Writer:
    """Writes a folder, or what is missing of it."""

    def __init__(
        self,
        stream: RowStream,
        folder: Path,
        max_bins: int,
        cuts: tuple[np.ndarray, np.ndarray] | None,
        n_jobs: int | None,
    ) -> None:
        self._stream, self._folder, self._max_bins, self._cuts = stream, folder, max_bins, cuts
        self._n_threads = n_threads(n_jobs)
        like = None if cuts is None else hashlib.sha256(cuts[0].tobytes()).hexdigest()
        self._identity = stream.identity | {"max_bins": max_bins, "like": like}

    def write(self) -> None:
        """All that is missing. Who comes while another writes waits, and finds it done."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with locked(self._folder):
            self._write()

    def _write(self) -> None:
        survey = self._known_survey()
        if (self._folder / "header.json").exists():
            return
        if survey is None:
            survey = self._survey()
        arrays = {name: _load(self._folder, name) for name in _ARRAYS}
        blocks = self._encode(survey["n_rows"], arrays["cuts"])
        header: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "n_rows": survey["n_rows"],
            "features": list(self._stream.features),
            "named": self._stream.named,
            "max_bins": self._max_bins,
            "blocks": blocks,
        }
        header["checksum"] = _digest(arrays, header)
        write_whole(self._folder / "header.json", json.dumps(header))

    def _known_survey(self) -> dict[str, Any] | None:
        """What the first pass of an earlier call found; an error if that was about other files."""
        place = self._folder / "survey.json"
        survey = self._survey_of(place) if place.exists() else None
        unfinished = [left for name in _WHOLE for left in self._folder.glob(f".{name}.*")]
        known = {*(self._folder / name for name in _WHOLE), *unfinished}
        others = [] if survey is not None else [p.name for p in self._folder.iterdir() if p not in known]
        if others:
            raise BinnedFileError(f"'{self._folder}' holds other things ({others[0]}). Give a folder of its own.")
        for left in unfinished:
            left.unlink(missing_ok=True)
        return survey

    def _survey_of(self, place: Path) -> dict[str, Any]:
        survey = _read_json(place)
        if not isinstance(survey.get("n_rows"), int):
            raise BinnedFileError(f"'{place}' is damaged. Delete the folder and make the bins again.")
        if survey.get("identity") != json.loads(json.dumps(self._identity)):
            raise BinnedFileError(
                f"'{self._folder}' holds bins of other files or settings, or the files have changed since. Delete the "
                "folder or give another one."
            )
        return survey

    def _survey(self) -> dict[str, Any]:
        """The first pass: labels, query ids, and the cuts from a sample."""
        sample = _Sample(len(self._stream.features), self._stream.dtype, 0 if self._cuts is not None else SAMPLE)
        columns: tuple[list[Any], list[Any]] = ([], [])
        for block in self._stream:
            if np.isinf(block.X).any():
                f = int(np.isinf(block.X).any(axis=0).argmax())
                raise ValueError(
                    f"The column {block.features[f]!r} holds infinity. Replace it; NaN is a missing value."
                )
            sample.take(block.X)
            for held, column in zip(columns, (block.y, block.qid)):
                held.append(column)
        if not sample.n_rows:
            raise ValueError(f"'{self._stream.paths[0]}' has no rows.")
        cuts, n_bins = self._cuts or sample.cuts(self._max_bins, self._n_threads)
        for name, array in zip(_ARRAYS, (cuts, n_bins, *map(_joined, columns))):
            _save(self._folder, name, array)
        survey = {"n_rows": sample.n_rows, "identity": self._identity}
        write_whole(self._folder / "survey.json", json.dumps(survey))
        return survey

    def _encode(self, n_rows: int, cuts: Any) -> list[tuple[int, int]]:
        """The second pass: the bins, block by block; returns each block's rows and checksum."""
        notes, place = self._folder / "blocks.jsonl", self._folder / "words"
        blocks, size = _noted(notes) if place.exists() else ([], 0)
        done = sum(n for n, _ in blocks)
        n_tiles = -(-len(self._stream.features) // LANES)
        with (
            writing(place, "The blocks before are kept: call again to go on."),
            place.open("r+b" if blocks else "w+b") as file,
            notes.open("r+b" if blocks else "wb") as note,
        ):
            file.truncate(8 * n_tiles * n_rows)
            note.truncate(size)
            note.seek(size)
            for block in self._stream.after(done):
                words = encode_rows(block.X, cuts, self._n_threads)
                for tile, line in enumerate(words):
                    file.seek(8 * (tile * n_rows + done))
                    file.write(line)
                file.flush()
                os.fsync(file.fileno())
                blocks.append((len(block.X), zlib.crc32(words)))
                note.write(json.dumps(blocks[-1]).encode() + b"\n")
                note.flush()
                done += len(block.X)
        if done != n_rows:
            raise BinnedFileError("The files have changed between the two passes. Delete the folder and begin again.")
        return blocks


class _Sample:
    """The rows with the smallest hashes of their numbers among those that went by."""

    def __init__(self, n_features: int, dtype: type, size: int) -> None:
        self.n_rows = 0
        self._size, self._held, self._limit = size, 0, np.uint64(2**64 - 1)
        self._rows: np.ndarray = np.empty((2 * size, n_features), dtype)
        self._hashes = np.empty(2 * size, np.uint64)

    def take(self, X: np.ndarray) -> None:
        for first in range(0, len(X), self._size) if self._size else ():
            self._take(X[first : first + self._size], self.n_rows + first)
        self.n_rows += len(X)

    def _take(self, X: np.ndarray, number: int) -> None:
        """Rows from `number` on, not more than the sample; what can be among the smallest no more is dropped."""
        h = hashes(number, number + len(X))
        if self._held + len(X) > len(self._rows):
            self._keep_smallest()
        small = np.flatnonzero(h <= self._limit)
        place = slice(self._held, self._held + len(small))
        self._rows[place], self._hashes[place] = X[small], h[small]
        self._held += len(small)

    def _keep_smallest(self) -> None:
        order = np.argpartition(self._hashes[: self._held], self._size - 1)[: self._size]
        self._rows[: self._size] = self._rows[order]
        self._hashes[: self._size] = self._hashes[order]
        self._held, self._limit = self._size, self._hashes[: self._size].max()

    def cuts(self, max_bins: int, n_threads: int) -> tuple[np.ndarray, np.ndarray]:
        if self._held > self._size:
            self._keep_smallest()
        n_features = self._rows.shape[1]
        cuts, n_bins = no_cuts(n_features)

        def work(first: int) -> None:
            columns = self._rows[: self._held, first : first + COLUMNS_AT_ONCE].T
            cut_columns(np.array(columns, np.float64, order="C"), max_bins, first, cuts, n_bins)

        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(work, range(0, n_features, COLUMNS_AT_ONCE)))
        return cuts, n_bins


def _joined(parts: list[Any]) -> np.ndarray | None:
    return None if parts[0] is None else np.concatenate(parts)


def _private_copy(place: Path) -> IO[bytes]:
    """A copy of a file that has no name, so nobody else can write to it or cut it; the file itself if that fails."""
    copy: IO[bytes] | None = None
    try:
        copy = tempfile.TemporaryFile(dir=place.parent)  # noqa: SIM115 (the caller closes it)
        with place.open("rb") as file:
            shutil.copyfileobj(file, copy, 1 << 20)
        copy.flush()
        return copy
    except OSError as error:
        if copy is not None:
            copy.close()
        logger.warning("'%s' is mapped itself (%s): do not change it while it is in use.", place, error.strerror)
        return place.open("rb")


def _words_agree(file: IO[bytes], shape: tuple[int, int], blocks: list[tuple[int, int]]) -> bool:
    """Whether the words of every block have the checksum that was noted when it was written."""
    done = 0
    for n_rows, checksum in blocks:
        crc = 0
        for tile in range(shape[0]):
            file.seek(8 * (tile * shape[1] + done))
            crc = zlib.crc32(file.read(8 * n_rows), crc)
        if crc != checksum:
            return False
        done += n_rows
    return done == shape[1]


def _digest(arrays: dict[str, np.ndarray | None], header: dict[str, Any]) -> str:
    """A checksum of all small things and of the checksums of the large one."""
    noted = {name: value for name, value in header.items() if name != "checksum"}
    covered = header["blocks"] if header["version"] == 1 else noted
    digest = hashlib.sha256(json.dumps(covered, sort_keys=True).encode())
    for array in arrays.values():
        digest.update(b"none" if array is None else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _noted(place: Path) -> tuple[list[tuple[int, int]], int]:
    """The blocks that were written, and the size of their notes; a last line that was cut off is not one."""
    content = place.read_bytes() if place.exists() else b""
    size = content.rfind(b"\n") + 1
    try:
        blocks = [json.loads(line) for line in content[:size].splitlines()]
        return [(int(n_rows), int(checksum)) for n_rows, checksum in blocks], size
    except (ValueError, TypeError):
        return [], 0  # all blocks are written again


def _read_json(place: Path) -> dict[str, Any]:
    try:
        found = json.loads(place.read_text())
    except (OSError, ValueError) as error:
        raise BinnedFileError(f"'{place.parent}' holds no bins: '{place.name}' cannot be read ({error}).") from error
    if not isinstance(found, dict):
        raise BinnedFileError(f"'{place}' is damaged. Make the bins again.")
    return found


def _load(folder: Path, name: str) -> np.ndarray | None:
    place = folder / f"{name}.npy"
    if not place.exists() and name in ("y", "qid"):
        return None
    try:
        array: np.ndarray = np.load(place, allow_pickle=False)
    except Exception as error:  # numpy lets the errors of Python's own tokenizer through
        raise BinnedFileError(f"'{place}' is damaged: {error}. Make the bins again.") from error
    return array


def _save(folder: Path, name: str, array: np.ndarray | None) -> None:
    place = folder / f"{name}.npy"
    if array is None:
        place.unlink(missing_ok=True)
        return
    array = np.ascontiguousarray(array)
    with whole_file(place) as file:  # np.save does not tell why it failed
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        file.write(array.data)
