"""A table file in blocks of some megabytes: each is read by the reader of whole files, with the dialect of the file."""

from __future__ import annotations

import codecs
import gzip
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from miserly.datasets import FileFormat, Scan, TableError, find_dialect, format_suffix, raw_frame, scan_raw

BLOCK = 4 << 20  # bytes of a block of text: large enough that starting a reader counts for nothing
ROWS = 50_000  # of a block of Parquet
SAMPLE = 1 << 18
MOST_QUOTES = 64  # quotes before the end of a block that are looked at
TEXT, PARQUET = (".csv", ".tsv", ".txt"), (".parquet", ".pq")
ReadFile = Callable[[str, FileFormat], Scan]


@dataclass(frozen=True)
class TextBlock:
    """Lines of a text file, after its header."""

    path: str
    content: bytes
    n_lines_before: int
    form: FileFormat


@dataclass(frozen=True)
class FrameBlock:
    """Rows of a Parquet file."""

    path: str
    frame: Any
    n_rows_before: int


@dataclass(frozen=True)
class WholeFile:
    """A file that is not read in blocks: small, or of a format that cannot be."""

    path: str
    form: FileFormat


@dataclass(frozen=True)
class FileBlocks:
    """The blocks of a file, in its order.

    Parameters
    ----------
    path : str or Path
        CSV, TSV or text (also with .gz) or Parquet; other formats are one block.
    form : FileFormat, default=FileFormat()
        What is known about the way it is written.
    size : int, default=4194304
        Bytes of a block of text, 1 or more.

    Examples
    --------
    >>> from pathlib import Path
    >>> from miserly.batch import FileBlocks
    >>> _ = Path("rows.csv").write_text("a,b\\n1,2\\n3,4\\n")
    >>> len(list(FileBlocks("rows.csv", size=6)))
    2
    """

    path: str | Path
    form: FileFormat = field(default_factory=FileFormat)
    size: int = BLOCK

    def __iter__(self) -> Iterator[TextBlock | FrameBlock | WholeFile]:
        path, suffix = str(self.path), format_suffix(self.path)
        if suffix in PARQUET:
            yield from self._frames()
        elif suffix in TEXT and Path(path).stat().st_size > self.size and (form := self._dialect()) is not None:
            yield from self._texts(form)
        else:
            yield WholeFile(path, self.form)

    def _frames(self) -> Iterator[FrameBlock]:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise ImportError(f"Reading '{self.path}' needs pyarrow: pip install 'miserly[io]'.") from None
        n = 0
        try:
            file = pq.ParquetFile(self.path)
            for batch in file.iter_batches(ROWS):
                yield FrameBlock(str(self.path), pa.Table.from_batches([batch]), n)
                n += batch.num_rows
            if not n:
                yield FrameBlock(str(self.path), file.schema_arrow.empty_table(), 0)
        except pa.ArrowInvalid as error:
            raise ValueError(f"'{self.path}' is not a Parquet file or is damaged: {error}") from error

    def _open(self) -> Any:
        with Path(self.path).open("rb") as file:
            is_zipped = file.read(2) == b"\x1f\x8b"
        return gzip.open(self.path, "rb") if is_zipped else Path(self.path).open("rb")

    def _dialect(self) -> FileFormat | None:
        """How the file is written, after one pass over its bytes; None where it must be read as a whole."""
        encoding = self.form.encoding or "utf-8"
        if codecs.lookup(encoding).name not in ("utf-8", "cp1252", "iso8859-1", "ascii"):
            return None
        with self._open() as file:
            sample = file.read(SAMPLE)
            if sample[:2] in (b"\xff\xfe", b"\xfe\xff"):
                return None
            decoder = codecs.getincrementaldecoder(encoding)()
            try:
                data = sample
                while data:
                    if b"\0" in data:
                        return None
                    decoder.decode(data)
                    data = file.read(BLOCK)
                decoder.decode(b"", final=True)
            except UnicodeDecodeError:
                if self.form.encoding is not None:
                    return None  # the reader of whole files says what is wrong
                encoding = "cp1252"
        text = sample.decode(encoding, "replace").removeprefix("\ufeff")
        found = find_dialect(text, encoding, self.form.separator, self.form.quote, self.form.decimal)
        first = text.partition("\n")[0]
        if first.count(found.quote) % 2 or any(not cell.strip() for cell in first.split(found.separator)):
            return None  # names with line breaks, or a column without a name, which may count the rows
        return replace(
            self.form, separator=found.separator, quote=found.quote, decimal=found.decimal, encoding=encoding
        )

    def _texts(self, form: FileFormat) -> Iterator[TextBlock]:
        quote = (form.quote or '"').encode()
        with self._open() as file:
            header, rest, n_lines = file.readline().removeprefix(b"\xef\xbb\xbf"), b"", 0
            while data := file.read(self.size):
                rest += data
                end = _last_end(rest, quote)
                if end:
                    yield TextBlock(str(self.path), header + rest[:end], n_lines, form)
                    n_lines += rest.count(b"\n", 0, end)
                    rest = rest[end:]
            if rest:
                yield TextBlock(str(self.path), header + rest, n_lines, form)


def _last_end(text: bytes, quote: bytes) -> int:
    """The end of the last line that is complete, outside of quotes."""
    end = text.rfind(b"\n") + 1
    for _ in range(MOST_QUOTES):
        if not end or text.count(quote, 0, end) % 2 == 0:
            return end
        end = text.rfind(b"\n", 0, text.rfind(quote, 0, end)) + 1
    return 0  # quotes that do not pair: the block grows


def read_block(block: TextBlock | FrameBlock | WholeFile, read: ReadFile, **how: Any) -> Scan:
    """The rows of a block; `read` reads a file, `how` goes to `scan_raw`. Errors name the line of the whole file."""
    if isinstance(block, WholeFile):
        return read(block.path, block.form)
    if isinstance(block, FrameBlock):
        raw = raw_frame(block.frame, block.path)
        raw.lines = range(block.n_rows_before + 1, block.n_rows_before + 1 + block.frame.num_rows)
        return scan_raw(raw, **how)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "block.csv")
        path.write_bytes(block.content)
        form = replace(block.form, encoding=None) if block.form.encoding == "utf-8" else block.form
        try:
            scan = read(str(path), form)
        except TableError as error:
            raise TableError([_moved(problem, block) for problem in error.problems]) from None
    scan.problems = [_moved(problem, block) for problem in scan.problems]
    return scan


def _moved(problem: Any, block: TextBlock) -> Any:
    """A problem with the name of the file and the line in it."""

    def number(found: re.Match[str]) -> str:
        line = int(found[1])
        return f"line {line + block.n_lines_before if line > 1 else line}"

    return problem._replace(path=block.path, where=re.sub(r"line (\d+)", number, problem.where))
