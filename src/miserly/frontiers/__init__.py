"""The whole trade-off: sweep an estimator's axis, keep the Pareto front, choose under a budget."""

from miserly.frontiers._compare import Comparison, compare
from miserly.frontiers._folds import divide as divide
from miserly.frontiers._front import Frontier, Point, figure
from miserly.frontiers._front import Measured as Measured
from miserly.frontiers._job import Job as Job
from miserly.frontiers._job import logged_purchases as logged_purchases
from miserly.frontiers._job import measured_where_logged as measured_where_logged
from miserly.frontiers._sweep import SweepError, frontier
from miserly.frontiers._totals import PredictedRows as PredictedRows
from miserly.frontiers._totals import TotalCost as TotalCost
from miserly.frontiers._verdicts import Verdict as Verdict
from miserly.frontiers._verdicts import common_range as common_range
from miserly.frontiers._verdicts import interval as interval
from miserly.frontiers._verdicts import within as within
from miserly.frontiers._workers import WorkerDiedError as WorkerDiedError

__all__ = ["Comparison", "Frontier", "Point", "SweepError", "compare", "figure", "frontier"]
