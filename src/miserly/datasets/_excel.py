"""Excel sheets as cells of text, where openpyxl is installed."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any


def read_sheet(path: str | Path, sheet: str | None = None) -> list[tuple[int, list[str]]]:
    """The rows of a sheet (the first unless named), with their numbers; empty ones are left out."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise ImportError(f"Reading '{path}' needs openpyxl: pip install openpyxl. Or save the sheet as CSV.") from None
    book = load_workbook(path, read_only=True, data_only=True)
    try:
        if sheet is not None and sheet not in book.sheetnames:
            raise ValueError(f"'{path}' has no sheet {sheet!r}. It has: {', '.join(book.sheetnames)}.")
        found = book[sheet] if sheet is not None else book.worksheets[0]
        rows = [(number, [_text(cell) for cell in row]) for number, row in enumerate(found.values, start=1)]
    finally:
        book.close()
    return [(number, row) for number, row in rows if any(row)]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == datetime.min.time() else value.isoformat(" ", "seconds")
    if isinstance(value, date):
        return value.isoformat()
    return repr(value) if isinstance(value, float) else str(value)
