"""How a text file is written: its encoding, separator, quotes and decimal mark, found from the file itself."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from miserly.files import is_gzip, open_gzip
from miserly.schema import BOOLEANS, MISSING, date_format

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
SAMPLE_CHARACTERS = 1 << 16  # enough for hundreds of lines, little enough to try eight dialects on
SAMPLE_ROWS = 200
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_NUMBER = re.compile(r"[<>]?=?\s*[-+]?(\d+([.,]\d+)*|[.,]\d+)([eE][-+]?\d+)?\s*%?")
_COMMA = re.compile(r"(0|\d*),(\d{1,2}|\d{4,})|0,\d{3}|\d{1,3}(\.\d{3})+,\d+")
_POINT = re.compile(r"(0|\d*)\.(\d{1,2}|\d{4,})|0\.\d{3}|\d{1,3}(,\d{3})+\.\d+")
_UNSURE = re.compile(r"\d{1,3},\d{3}")
_SINGLE_QUOTED = re.compile(f"(^|[{re.escape(''.join(SEPARATORS))}])'", re.MULTILINE)
_SIGNS = "<>=≤≥~+-−% "
_WORDS = MISSING.union(*BOOLEANS)


@dataclass(frozen=True)
class Dialect:
    """How a text file is written."""

    separator: str
    quote: str
    decimal: Literal[".", ","]
    encoding: str

    def __str__(self) -> str:
        name = SEPARATORS.get(self.separator, repr(self.separator))
        return f"separator {name}, decimal mark {self.decimal!r}, encoding {self.encoding}"


def read_text(path: str | Path, encoding: str | None = None) -> tuple[str, str]:
    """The text of a file, plain or gzipped, and its encoding: as given, by its byte-order mark, UTF-8, or cp1252."""
    with open_gzip(path) if is_gzip(path) else Path(path).open("rb") as file:
        raw = file.read()
    known = encoding or next((name for mark, name in _MARKS.items() if raw.startswith(mark)), "utf-8")
    try:
        text = raw.decode(known)
    except LookupError:
        raise ValueError(f"There is no encoding {known!r}. Use utf-8, cp1252, latin-1 or utf-16.") from None
    except UnicodeDecodeError:
        if encoding is not None or b"\0" in raw[:4096]:
            raise ValueError(
                f"'{path}' is not text in {known}. Say its encoding, or save it as CSV in UTF-8."
            ) from None
        known, text = "cp1252", raw.decode("cp1252", "replace")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ValueError(f"'{path}', line {line}: it holds a NUL character. Save the file as CSV text.")
    return text.removeprefix("\ufeff"), known


def find_dialect(
    text: str, encoding: str, separator: str | None = None, quote: str | None = None, decimal: str | None = None
) -> Dialect:
    """The dialect of a text; what is given is taken as it is."""
    sample = text[:SAMPLE_CHARACTERS]
    if len(text) > len(sample) and "\n" in sample:
        sample = sample[: sample.rindex("\n") + 1]
    separators = SEPARATORS if separator is None else (separator,)
    quotes = (quote,) if quote is not None else ('"', "'") if _SINGLE_QUOTED.search(sample) else ('"',)
    tried = {(s, q): list(_rows(sample, s, q)) for q in quotes for s in separators}
    best = max(tried, key=lambda pair: _score(tried[pair], pair[0]))
    return Dialect(best[0], best[1], _decimal(tried[best], best[0], decimal), encoding)


def _rows(sample: str, separator: str, quote: str) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=separator, quotechar=quote, skipinitialspace=True)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield row
                if reader.line_num > SAMPLE_ROWS:
                    return
    except csv.Error:
        return


def _score(rows: Sequence[Sequence[str]], separator: str) -> float:
    """How much this looks like a table: rows of one length, cells that are numbers, dates, marks or plain words."""
    if not rows:
        return 0.0
    lengths = [len(row) for row in rows]
    usual = max(set(lengths), key=lengths.count)
    if usual < 2:
        return 0.01 if separator == "," else 0.0
    same = lengths.count(usual) / len(lengths)
    cells = [cell for row in rows[1:] or rows for cell in row]
    clean = sum(_cleanness(cell) for cell in cells) / max(1, len(cells))
    header = sum(not any(s in cell for s in SEPARATORS) for cell in rows[0]) / len(rows[0])
    return same**2 * (0.2 + clean) * header * (1.0 - 0.5 / usual)


def _cleanness(cell: str) -> float:
    text = cell.strip()
    if text.lower() in _WORDS or _NUMBER.fullmatch(text):
        return 1.0
    if any(s in text for s in SEPARATORS) or text[:1] in "\"'" or text[-1:] in "\"'":
        return 0.0  # a separator or a quote inside a cell is what the wrong dialect leaves
    return 1.0 if date_format([text]) else 0.8


def _decimal(rows: Sequence[Sequence[str]], separator: str, given: str | None) -> Literal[".", ","]:
    if given is not None:
        if given not in (".", ","):
            raise ValueError(f"The decimal mark is '.' or ',', not {given!r}.")
        return "." if given == "." else ","
    cells = [cell.strip().strip(_SIGNS) for row in rows[1:] for cell in row]
    commas = sum(_COMMA.fullmatch(cell) is not None for cell in cells)
    points = sum(_POINT.fullmatch(cell) is not None for cell in cells)
    if commas == points == 0:
        return "," if separator != "," and any(_UNSURE.fullmatch(cell) for cell in cells) else "."
    return "," if commas > points else "."
