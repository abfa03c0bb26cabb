"""Data with prices: the papers' synthetic sets and an imitation of the Yahoo! ranking set."""

from miserly.datasets.dataset import Dataset
from miserly.datasets.registry import load
from miserly.datasets.synthetic import circle, four_quadrants, noisy_xor
from miserly.datasets.yahoo import yahoo_like

__all__ = ["Dataset", "circle", "four_quadrants", "load", "noisy_xor", "yahoo_like"]
