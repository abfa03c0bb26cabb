"""The whole trade-off: sweep an estimator's axis, keep the Pareto front, choose under a budget."""

from miserly.frontier.front import Frontier, Point
from miserly.frontier.sweep import frontier

__all__ = ["Frontier", "Point", "frontier"]
