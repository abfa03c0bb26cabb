"""Files larger than memory, as blocks of rows that can be read again and again: Parquet, CSV, LETOR."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from miserly.datasets._csv_lines import csv_lines
from miserly.datasets._frames import as_table, exact
from miserly.datasets._letor import letor_width, stream_letor
from miserly.datasets._tables import Table, feature_names, table_of, whole_if_possible

BLOCK_CELLS = 1 << 23
Paths = str | Path | Sequence[str | Path]


class RowStream(ABC):
    """The rows of some files, one after another. Iterating gives a `Table` for every block of a few thousand rows."""

    features: tuple[str, ...]
    named = True
    dtype: type = np.float64

    def __init__(self, paths: Paths) -> None:
        self.paths = tuple(Path(p) for p in ([paths] if isinstance(paths, (str, Path)) else paths))
        if not self.paths:
            raise ValueError("No files are given. Give one path or a list of them.")
        for path in self.paths:
            if not path.is_file():
                raise FileNotFoundError(f"There is no file '{path}'.")

    def __iter__(self) -> Iterator[Table]:
        return self.after(0)

    @property
    def rows_at_once(self) -> int:
        """The rows of a block."""
        return max(1, min(1 << 16, BLOCK_CELLS // len(self.features)))

    def after(self, n_rows: int) -> Iterator[Table]:
        """The blocks after so many rows, which must be whole blocks: the last block of all may be shorter."""
        parts: list[Table] = []
        held = 0
        for table in self._tables(n_rows):
            parts.append(table)
            held += len(table.X)
            while held >= self.rows_at_once:
                block, rest = _parted(parts, self.rows_at_once)
                yield block
                parts, held = [rest], len(rest.X)
        if held:
            yield _parted(parts, held)[0]

    @property
    def identity(self) -> dict[str, Any]:
        """What tells these files from others, or from the same ones when they have changed."""
        files = [[str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns] for p in self.paths]
        return {"kind": type(self).__name__, "files": files, "features": list(self.features)}

    @abstractmethod
    def _tables(self, skip: int) -> Iterator[Table]:
        """The rows after the first `skip` as tables of any length."""


class ParquetStream(RowStream):
    """Parquet files with the same columns of numbers, as blocks of rows. They need pyarrow.

    Parameters
    ----------
    paths : str, Path or sequence of these
        The files, one after another.
    label : str, default=None
        The column to predict.
    qid : str, default=None
        The column of query ids.

    Attributes
    ----------
    features : tuple of str
        The names of the columns.

    Examples
    --------
    >>> stream = ParquetStream("part-0.parquet", label="y")  # doctest: +SKIP
    """

    def __init__(self, paths: Paths, label: str | None = None, qid: str | None = None) -> None:
        super().__init__(paths)
        self._label, self._qid = label, qid
        first = self._open(self.paths[0]).schema_arrow
        self.features = feature_names(self.paths[0], first.names, label, qid)
        for path in self.paths[1:]:
            schema = self._open(path).schema_arrow
            if schema.names != first.names or schema.types != first.types:
                raise ValueError(
                    f"'{path}' has other columns than '{self.paths[0]}': {_difference(first, schema)}. "
                    "All files must have the same columns of the same types."
                )
        as_table(first.empty_table().select(self.features), None, None, f"'{self.paths[0]}'", empty=True)
        single = all(str(first.field(name).type) == "float" for name in self.features)
        self.dtype = np.float32 if single else np.float64

    @property
    def identity(self) -> dict[str, Any]:
        return super().identity | {"label": self._label, "qid": self._qid}

    def _open(self, path: Path) -> Any:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise ImportError(f"Reading '{path}' needs pyarrow. Install it with: pip install 'miserly[io]'.") from None
        try:
            return pq.ParquetFile(path, buffer_size=1 << 18)
        except pa.ArrowInvalid as error:
            raise ValueError(f"'{path}' is not a Parquet file or is damaged: {error}") from error

    def _tables(self, skip: int) -> Iterator[Table]:
        import pyarrow as pa

        for path in self.paths:
            file = self._open(path)
            groups = []
            for g in range(file.metadata.num_row_groups):
                n_rows = file.metadata.row_group(g).num_rows
                if skip >= n_rows:
                    skip -= n_rows
                else:
                    groups.append(g)
            batches = file.iter_batches(self.rows_at_once, row_groups=groups, use_threads=False) if groups else ()
            for batch in batches:
                if batch.num_rows <= skip:
                    skip -= batch.num_rows
                    continue
                yield self._table(pa.Table.from_batches([batch.slice(skip)]), path)
                skip = 0

    def _table(self, frame: Any, path: Path) -> Table:
        """As `as_table` makes it, but column by column: for hundreds of columns that is several times as fast."""
        columns = np.empty((len(self.features), frame.num_rows), self.dtype)
        for column, name in zip(columns, self.features):
            values = frame.column(name).combine_chunks()
            column[:] = values.cast("uint8" if str(values.type) == "bool" else values.type).to_numpy(False)
        y, ids = (self._exact(frame, path, *what) for what in ((self._label, "label"), (self._qid, "query id")))
        return Table(columns.T, self.features, y, ids)

    def _exact(self, frame: Any, path: Path, name: str | None, what: str) -> np.ndarray | None:
        import narwhals as nw

        if name is None:
            return None
        return exact(nw.from_native(frame.column(name), series_only=True), f"'{path}'", f"the {what} {name!r}")


class CsvStream(RowStream):
    """CSV files with the same header.

    Parameters
    ----------
    paths : str, Path or sequence of these
        The files, one after another.
    label : str, default=None
        The column to predict.
    qid : str, default=None
        The column of query ids.

    Attributes
    ----------
    features : tuple of str
        The names of the columns.

    Examples
    --------
    >>> stream = CsvStream("large.csv", label="y")  # doctest: +SKIP
    """

    def __init__(self, paths: Paths, label: str | None = None, qid: str | None = None) -> None:
        super().__init__(paths)
        self._label, self._qid = label, qid
        self._header = self._read_header(self.paths[0])
        for path in self.paths[1:]:
            if self._read_header(path) != self._header:
                raise ValueError(f"'{path}' has another header than '{self.paths[0]}'. All files must have the same.")
        self.features = feature_names(self.paths[0], self._header, label, qid)

    @property
    def identity(self) -> dict[str, Any]:
        return super().identity | {"label": self._label, "qid": self._qid}

    def _read_header(self, path: Path) -> list[str]:
        with csv_lines(path) as (header, _):
            return header

    def _tables(self, skip: int) -> Iterator[Table]:
        for path in self.paths:
            with csv_lines(path) as (header, lines):
                skip -= sum(1 for _ in islice(lines, skip))
                while rows := list(islice(lines, self.rows_at_once)):
                    yield table_of(path, header, rows, self._label, self._qid)


class LetorStream(RowStream):
    """LETOR (SVMlight) files; their features are numbers and have no names.

    Parameters
    ----------
    paths : str, Path or sequence of these
        The files, one after another.
    n_features : int, default=None
        How many features there are, 1 or more; None looks for the greatest number in the files.

    Attributes
    ----------
    features : tuple of str
        The names of the columns.

    Examples
    --------
    >>> stream = LetorStream("train.letor.gz")  # doctest: +SKIP
    """

    named = False
    dtype = np.float32

    def __init__(self, paths: Paths, n_features: int | None = None) -> None:
        super().__init__(paths)
        n = n_features or max(letor_width(path) for path in self.paths)
        self.features = tuple(str(j + 1) for j in range(n))

    def _tables(self, skip: int) -> Iterator[Table]:
        for path in self.paths:
            for X, y, qid in stream_letor(path, len(self.features)):
                if len(X) > skip:
                    rest = None if qid is None else qid[skip:]
                    yield Table(X[skip:], self.features, whole_if_possible(y[skip:]), rest)
                skip = max(0, skip - len(X))


def _parted(tables: list[Table], n_rows: int) -> tuple[Table, Table]:
    """The first rows of some tables as one, and the rest as another."""
    parts = [[getattr(table, name) for table in tables] for name in ("X", "y", "qid")]
    if any(part is None for part in parts[2]) and not all(part is None for part in parts[2]):
        raise ValueError("Some files have query ids and others have none. Give files of one kind.")
    kinds = {part.dtype.kind in "US" for part in parts[1] if part is not None}
    if len(kinds) > 1:
        raise ValueError("The label is a number in some rows and a word in others. Make all of them words, or numbers.")
    X, y, qid = (part[0] if len(part) == 1 or part[0] is None else np.concatenate(part) for part in parts)
    features = tables[0].features
    cut = [None if column is None else column[:n_rows] for column in (y, qid)]
    rest = [None if column is None else column[n_rows:] for column in (y, qid)]
    return Table(X[:n_rows], features, cut[0], cut[1]), Table(X[n_rows:], features, rest[0], rest[1])


def _difference(one: Any, other: Any) -> str:
    """The first column in which two schemas differ, in words."""
    for a, b in zip(one, other):
        if a.name != b.name:
            return f"{b.name!r} where the other has {a.name!r}"
        if a.type != b.type:
            return f"{b.name!r} is {b.type}, there {a.type}"
    return f"{len(other.names)} columns, there {len(one.names)}"
