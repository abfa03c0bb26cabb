"""Data with prices: the papers' synthetic sets and an imitation of the Yahoo! ranking set, and tables."""

from miserly.datasets.dataset import Dataset
from miserly.datasets.registry import NAMES, load
from miserly.datasets.synthetic import circle, four_quadrants, noisy_xor
from miserly.datasets.tables import Table, read_csv, write_csv
from miserly.datasets.yahoo import yahoo_like

__all__ = [
    "NAMES",
    "Dataset",
    "Table",
    "circle",
    "four_quadrants",
    "load",
    "noisy_xor",
    "read_csv",
    "write_csv",
    "yahoo_like",
]
