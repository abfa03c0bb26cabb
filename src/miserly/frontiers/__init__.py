"""The whole trade-off: sweep an estimator's axis, keep the Pareto front, choose under a budget."""

from miserly.frontiers.front import Frontier, Point, figure
from miserly.frontiers.sweep import SweepError, frontier

__all__ = ["Frontier", "Point", "SweepError", "figure", "frontier"]
