"""Pictures of frontiers and plans, and the page that holds them."""

from miserly.report.boundary import BoundaryPicture
from miserly.report.calibration import CalibrationPicture
from miserly.report.drawing import PlanPicture, plot_plan
from miserly.report.frontier import FrontierPicture, plot_frontier
from miserly.report.leaves import LeavesPicture
from miserly.report.observed import Observed, Rows
from miserly.report.page import write_report
from miserly.report.runs import SavedRun, load_run, save_run
from miserly.report.spending import SpendingPicture
from miserly.report.stages import StagesPicture
from miserly.report.tiers import TiersPicture

__all__ = [
    "BoundaryPicture",
    "CalibrationPicture",
    "FrontierPicture",
    "LeavesPicture",
    "Observed",
    "PlanPicture",
    "Rows",
    "SavedRun",
    "SpendingPicture",
    "StagesPicture",
    "TiersPicture",
    "load_run",
    "plot_frontier",
    "plot_plan",
    "save_run",
    "write_report",
]
