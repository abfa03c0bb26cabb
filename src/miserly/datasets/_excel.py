"""Excel sheets as cells of text, where openpyxl is installed."""

from __future__ import annotations

import zipfile
from datetime import date, datetime
from pathlib import Path
from typing import Any

from miserly.files import check_zip


def read_sheet(path: str | Path, sheet: str | None = None) -> list[tuple[int, list[str]]]:
    """The rows of a sheet (the first unless named), with their numbers; empty ones are left out."""
    try:
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError:
        raise ImportError(
            f"Reading '{path}' needs openpyxl: pip install 'miserly[excel]'. Or save the sheet as CSV."
        ) from None
    check_zip(path)
    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except (zipfile.BadZipFile, KeyError, InvalidFileException) as error:
        raise ValueError(
            f"'{path}' is not an Excel file of the kind .xlsx, or is damaged ({error}). Save it again as .xlsx or CSV."
        ) from None
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
