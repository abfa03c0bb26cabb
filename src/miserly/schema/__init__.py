"""What the columns of a table mean: their kinds, categories, missing marks; and how a cell becomes a number."""

from miserly.schema._cells import DATE_FORMATS, MISSING, CellRules
from miserly.schema._cells import date_format as date_format
from miserly.schema._cells import days as days
from miserly.schema._names import nearest_names as nearest_names
from miserly.schema._schema import BOOLEANS, Column, Kind, Schema

__all__ = ["BOOLEANS", "DATE_FORMATS", "MISSING", "CellRules", "Column", "Kind", "Schema"]
