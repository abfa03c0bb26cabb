"""Data with prices: the papers' synthetic sets and an imitation of the Yahoo! ranking set, and
readers of tables: LETOR, CSV, Parquet, data frames."""

from miserly.datasets._dataset import Dataset
from miserly.datasets._dialect import find_dialect as find_dialect
from miserly.datasets._frames import from_frame, read_parquet
from miserly.datasets._hospital import hospital_csv
from miserly.datasets._letor import read_letor
from miserly.datasets._problems import TableError, TableProblem
from miserly.datasets._problems import did_you_mean as did_you_mean
from miserly.datasets._raw import FileFormat as FileFormat
from miserly.datasets._raw import format_suffix as format_suffix
from miserly.datasets._raw import is_letor as is_letor
from miserly.datasets._raw import raw_frame as raw_frame
from miserly.datasets._raw import raw_table as raw_table
from miserly.datasets._reading import Roles as Roles
from miserly.datasets._reading import Scan as Scan
from miserly.datasets._reading import read_table
from miserly.datasets._reading import scan_raw as scan_raw
from miserly.datasets._reading import scan_table as scan_table
from miserly.datasets._registry import NAMES, load
from miserly.datasets._splitting import split_table
from miserly.datasets._streams import CsvStream, LetorStream, ParquetStream, RowStream
from miserly.datasets._streams import Paths as Paths
from miserly.datasets._survey import ColumnSurvey as ColumnSurvey
from miserly.datasets._survey import survey_table as survey_table
from miserly.datasets._synthetic import bent_sum, circle, four_quadrants, noisy_xor
from miserly.datasets._tables import Table, read_csv, write_csv
from miserly.datasets._tables import safe_cells as safe_cells
from miserly.datasets._triage import triage_like
from miserly.datasets._yahoo import yahoo_like

__all__ = [
    "NAMES",
    "CsvStream",
    "Dataset",
    "LetorStream",
    "ParquetStream",
    "RowStream",
    "Table",
    "TableError",
    "TableProblem",
    "bent_sum",
    "circle",
    "four_quadrants",
    "from_frame",
    "hospital_csv",
    "load",
    "noisy_xor",
    "read_csv",
    "read_letor",
    "read_parquet",
    "read_table",
    "split_table",
    "triage_like",
    "write_csv",
    "yahoo_like",
]
