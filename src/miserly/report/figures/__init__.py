"""Figures of frontiers and plans, drawn with matplotlib; each offers `frame` and `plot`."""

from miserly.report.figures._boundary import BoundaryPicture
from miserly.report.figures._calibration import CalibrationPicture
from miserly.report.figures._comparison import ComparisonPicture, plot_comparison
from miserly.report.figures._comparison import plot_comparison_svg as plot_comparison_svg
from miserly.report.figures._drawing import PlanPicture, plot_plan
from miserly.report.figures._frontier import FrontierPicture, plot_frontier
from miserly.report.figures._frontier import plot_frontier_interactive as plot_frontier_interactive
from miserly.report.figures._frugal import FrugalPicture
from miserly.report.figures._leaves import LeavesPicture
from miserly.report.figures._panels import CloudPanel, FrontierPanel, LinePanel, Panel, TablePanel, plot_panels
from miserly.report.figures._purchase_values import PurchaseValue, PurchaseValuesPicture, purchase_values
from miserly.report.figures._spending import SpendingPicture
from miserly.report.figures._stages import StagesPicture
from miserly.report.figures._tiers import Tier, TiersPicture, price_tiers
from miserly.report.figures._tree import TreePicture, plot_tree

__all__ = [
    "BoundaryPicture",
    "CalibrationPicture",
    "CloudPanel",
    "ComparisonPicture",
    "FrontierPanel",
    "FrontierPicture",
    "FrugalPicture",
    "LeavesPicture",
    "LinePanel",
    "Panel",
    "PlanPicture",
    "PurchaseValue",
    "PurchaseValuesPicture",
    "SpendingPicture",
    "StagesPicture",
    "TablePanel",
    "Tier",
    "TiersPicture",
    "TreePicture",
    "plot_comparison",
    "plot_frontier",
    "plot_panels",
    "plot_plan",
    "plot_tree",
    "price_tiers",
    "purchase_values",
]
