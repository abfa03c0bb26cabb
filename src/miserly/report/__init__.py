"""Pictures of frontiers and plans, and the page that holds them."""

from miserly.report._observed import LabelledRows, Observed
from miserly.report._protocol import Protocol, ProtocolStep, Rate, protocol
from miserly.report._runs import SavedRun, load_run, save_run
from miserly.report._tree_text import export_text
from miserly.report.figures import (
    BoundaryPicture,
    CalibrationPicture,
    FrontierPicture,
    FrugalPicture,
    LeavesPicture,
    PlanPicture,
    PurchaseValue,
    PurchaseValuesPicture,
    SpendingPicture,
    StagesPicture,
    TiersPicture,
    TreePicture,
    plot_frontier,
    plot_plan,
    plot_tree,
    purchase_values,
)
from miserly.report.figures import CloudPanel as CloudPanel
from miserly.report.figures import FrontierPanel as FrontierPanel
from miserly.report.figures import LinePanel as LinePanel
from miserly.report.figures import Panel as Panel
from miserly.report.figures import TablePanel as TablePanel
from miserly.report.figures import plot_panels as plot_panels
from miserly.report.page import write_report

__all__ = [
    "BoundaryPicture",
    "CalibrationPicture",
    "FrontierPicture",
    "FrugalPicture",
    "LabelledRows",
    "LeavesPicture",
    "Observed",
    "PlanPicture",
    "Protocol",
    "ProtocolStep",
    "PurchaseValue",
    "PurchaseValuesPicture",
    "Rate",
    "SavedRun",
    "SpendingPicture",
    "StagesPicture",
    "TiersPicture",
    "TreePicture",
    "export_text",
    "load_run",
    "plot_frontier",
    "plot_plan",
    "plot_tree",
    "protocol",
    "purchase_values",
    "save_run",
    "write_report",
]
