"""Gradient boosting whose splits pay for each first use of an acquisition."""

from miserly.boosting.backend import Backend, BackendOfRows, LocalBackend, check_row_count, weight_unit
from miserly.boosting.binned_dataset import BinnedDataset, BinnedFileError
from miserly.boosting.binning import BinnedData, bin_data
from miserly.boosting.boost import Boosted, Round, Settings, boost, tree_table
from miserly.boosting.elsewhere import backend_for, fetched, is_elsewhere
from miserly.boosting.grower import Grower, GrownTree, Limits
from miserly.boosting.importing import import_trees
from miserly.boosting.losses import LogLoss, Loss, SoftmaxLoss, SquaredHingeLoss, SquaredLoss, SummedLoss
from miserly.boosting.lost import BackendLostError, RowsLostError
from miserly.boosting.nodes import Ahead, NodeSums, Split
from miserly.boosting.progress import Progress
from miserly.boosting.ranking import LambdaRankLoss
from miserly.boosting.rows import Rows
from miserly.boosting.shop import PathShop, Shop
from miserly.boosting.walk import walk

__all__ = [
    "Ahead",
    "Backend",
    "BackendLostError",
    "BackendOfRows",
    "BinnedData",
    "BinnedDataset",
    "BinnedFileError",
    "Boosted",
    "Grower",
    "GrownTree",
    "LambdaRankLoss",
    "Limits",
    "LocalBackend",
    "LogLoss",
    "Loss",
    "NodeSums",
    "PathShop",
    "Progress",
    "Round",
    "Rows",
    "RowsLostError",
    "Settings",
    "Shop",
    "SoftmaxLoss",
    "Split",
    "SquaredHingeLoss",
    "SquaredLoss",
    "SummedLoss",
    "backend_for",
    "bin_data",
    "boost",
    "check_row_count",
    "fetched",
    "import_trees",
    "is_elsewhere",
    "tree_table",
    "walk",
    "weight_unit",
]
