"""Text of one cell into a number: decimal marks, missing marks, limits such as `>15`, dates."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Literal

Limits = Literal["value", "missing", "error"]
_SPREADSHEET_ERRORS = ("#n/a", "#na", "#null!", "#div/0!", "#value!", "#ref!", "#num!", "#name?")
MISSING = frozenset(
    ("", "na", "n/a", "n.a.", "nan", "null", "none", "nil", "?", "-", "--", "---", "–", "—", ".", "<na>", "nat")
).union(_SPREADSHEET_ERRORS)
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_LIMIT = re.compile(r"(?:[<>]=?|[≤≥~])\s*(.+)")
_GROUPED = {
    ".": re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?"),
    ",": re.compile(r"[-+]?\d{1,3}(?:\.\d{3})+(?:,\d*)?"),
}
_EPOCH = date(1970, 1, 1).toordinal()
_DATES = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%d %b %Y", "%d-%b-%Y")
_TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", " %H:%M:%S.%f", "T%H:%M:%S.%f", "T%H:%M:%S%z")
DATE_FORMATS = tuple(day + time for time in _TIMES for day in _DATES)
_LOOKS_LIKE_DATE = re.compile(r"\d{1,4}[-./ ](\d{1,2}|[A-Za-z]{3})[-./ ]\d{2,4}(?!\d)")


@dataclass(frozen=True)
class CellRules:
    """How the text of a cell is read as a number.

    Parameters
    ----------
    decimal : {".", ","}, default="."
        The decimal mark. Groups of three digits may be separated by the other one.
    missing : frozenset of str, default=MISSING
        Marks of a missing value, in lower case and without blanks around them.
    limits : {"value", "missing", "error"}, default="value"
        What `>15` and `<0.5` are: their number, a missing value, or no number.

    Examples
    --------
    >>> rules = CellRules(decimal=",")
    >>> rules.number("1.234,5"), rules.number(">15"), rules.number("n/a"), rules.number("high")
    (1234.5, 15.0, nan, None)
    """

    decimal: Literal[".", ","] = "."
    missing: frozenset[str] = MISSING
    limits: Limits = "value"

    def is_missing(self, cell: str) -> bool:
        """Whether a cell is a missing mark."""
        return cell.strip().lower() in self.missing

    def is_limit(self, cell: str) -> bool:
        """Whether a cell is a limit, such as `>15`."""
        found = _LIMIT.fullmatch(cell.strip())
        return found is not None and self._plain(found[1].strip()) is not None

    def number(self, cell: str) -> float | None:
        """The number of a cell, NaN for a missing value, None for what is neither."""
        text = cell.strip()
        if text.lower() in self.missing:
            return math.nan
        number = self._plain(text)
        if number is not None or not (limit := _LIMIT.fullmatch(text)) or self.limits == "error":
            return number
        number = self._plain(limit[1].strip())
        return number if number is None or self.limits == "value" else math.nan

    def _plain(self, text: str) -> float | None:
        text = text.replace("−", "-").removesuffix("%").rstrip()
        if _GROUPED[self.decimal].fullmatch(text):
            text = text.replace("." if self.decimal == "," else ",", "")
        if self.decimal == ",":
            if "." in text:
                return None
            text = text.replace(",", ".")
        if not _NUMBER.fullmatch(text):
            return None
        number = float(text)
        return number if math.isfinite(number) else None


def date_format(cells: Iterable[str]) -> str | None:
    """The first format of `DATE_FORMATS` that reads all of these cells; None if there is none."""
    texts = [cell.strip() for cell in cells]
    if not texts or not _LOOKS_LIKE_DATE.match(texts[0]):
        return None
    formats = [known for known in DATE_FORMATS if _reads(texts[0], known)]
    for text in texts[1:]:
        formats = [known for known in formats if _reads(text, known)]
        if not formats:
            return None
    return formats[0] if formats else None


def days(value: Any, known: str) -> float | None:
    """A date, a time or text of this format as days since 1970-01-01; None if it is none of them."""
    if isinstance(value, str):
        try:
            value = datetime.strptime(value.strip(), known)
        except ValueError:
            return None
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            value = value.astimezone(UTC)
        seconds = value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
        return value.toordinal() - _EPOCH + seconds / 86400
    return float(value.toordinal() - _EPOCH) if isinstance(value, date) else None


def _reads(text: str, known: str) -> bool:
    return days(text, known) is not None
