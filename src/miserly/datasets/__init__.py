"""Data with prices: the papers' synthetic sets and an imitation of the Yahoo! ranking set, and
readers of tables: LETOR, CSV, Parquet, data frames."""

from miserly.datasets._by_suffix import read_table
from miserly.datasets._dataset import Dataset
from miserly.datasets._frames import from_frame, read_parquet
from miserly.datasets._letor import read_letor
from miserly.datasets._registry import NAMES, load
from miserly.datasets._streams import CsvStream, LetorStream, ParquetStream, RowStream
from miserly.datasets._streams import Paths as Paths
from miserly.datasets._synthetic import bent_sum, circle, four_quadrants, noisy_xor
from miserly.datasets._tables import Table, read_csv, write_csv
from miserly.datasets._yahoo import yahoo_like

__all__ = [
    "NAMES",
    "CsvStream",
    "Dataset",
    "LetorStream",
    "ParquetStream",
    "RowStream",
    "Table",
    "bent_sum",
    "circle",
    "four_quadrants",
    "from_frame",
    "load",
    "noisy_xor",
    "read_csv",
    "read_letor",
    "read_parquet",
    "read_table",
    "write_csv",
    "yahoo_like",
]
