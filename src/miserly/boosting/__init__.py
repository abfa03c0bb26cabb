"""Gradient boosting whose splits pay for each first use of an acquisition."""

from miserly.boosting.backend import Backend, LocalBackend, NodeSums, Split
from miserly.boosting.binning import BinnedData, bin_data
from miserly.boosting.boost import Boosted, Round, Settings, boost, tree_table
from miserly.boosting.grower import Grower, GrownTree, Limits
from miserly.boosting.importing import import_trees
from miserly.boosting.losses import LogLoss, Loss, SoftmaxLoss, SquaredHingeLoss, SquaredLoss
from miserly.boosting.ranking import LambdaRankLoss
from miserly.boosting.shop import PathShop, Shop

__all__ = [
    "Backend",
    "BinnedData",
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
    "Round",
    "Settings",
    "Shop",
    "SoftmaxLoss",
    "Split",
    "SquaredHingeLoss",
    "SquaredLoss",
    "bin_data",
    "boost",
    "import_trees",
    "tree_table",
]
