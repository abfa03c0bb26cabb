"""The lines of a CSV file: the names of its columns, then its cells with the number of their line."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

Line = tuple[int, list[str]]


@contextmanager
def csv_lines(path: str | Path) -> Iterator[tuple[list[str], Iterator[Line]]]:
    """The header and the lines after it, empty ones left out; what is wrong with the file tells where."""
    with Path(path).open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(_without_nul(file))

        def refuse(what: str) -> NoReturn:
            raise ValueError(f"'{path}', line {reader.line_num}: {what}") from None

        def rows() -> Iterator[Line]:
            for cells in reader:
                if len(cells) not in (0, len(header)):
                    refuse(f"{len(cells)} cells, the header has {len(header)}.")
                if cells:
                    yield reader.line_num, cells

        try:
            header = [name.strip() for name in next(reader, [])]
            if not header:
                raise ValueError(f"'{path}' is empty. The first line must name the columns.")
            twice = next((name for i, name in enumerate(header) if name in header[:i]), None)
            if twice is not None:
                raise ValueError(f"'{path}' has two columns {twice!r}. Give each its own name.")
            yield header, rows()
        except UnicodeDecodeError:
            raise ValueError(f"'{path}' is not text in UTF-8. Save it as CSV in UTF-8.") from None
        except csv.Error as error:
            refuse(f"this is not CSV: {error}.")


def _without_nul(lines: Iterable[str]) -> Iterator[str]:
    """Text holds no NUL; arrays of words would drop it at their ends."""
    for line in lines:
        if "\0" in line:
            raise csv.Error("it holds a NUL character")
        yield line
