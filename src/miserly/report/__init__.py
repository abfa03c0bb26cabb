"""Pictures of frontiers and plans, and the page that holds them."""

from miserly.report._error_costs import TotalAtBudget, totals_by_budget
from miserly.report._observed import LabelledRows, Observed
from miserly.report._protocol import Protocol, ProtocolStep, Rate, protocol
from miserly.report._runs import SavedRun, load_run, save_run
from miserly.report._showing import ShownPage, show
from miserly.report._tree_text import export_text
from miserly.report.figures import (
    BoundaryPicture,
    CalibrationPicture,
    ComparisonPicture,
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
    plot_comparison,
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
from miserly.report.figures import plot_comparison_svg as plot_comparison_svg
from miserly.report.figures import plot_frontier_interactive as plot_frontier_interactive
from miserly.report.figures import plot_panels as plot_panels
from miserly.report.page import write_report

__all__ = [
    "BoundaryPicture",
    "CalibrationPicture",
    "ComparisonPicture",
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
    "ShownPage",
    "SpendingPicture",
    "StagesPicture",
    "TiersPicture",
    "TotalAtBudget",
    "TreePicture",
    "export_text",
    "load_run",
    "plot_comparison",
    "plot_frontier",
    "plot_plan",
    "plot_tree",
    "protocol",
    "purchase_values",
    "save_run",
    "show",
    "totals_by_budget",
    "write_report",
]
