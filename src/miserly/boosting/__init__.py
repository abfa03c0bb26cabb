"""Gradient boosting whose splits pay for each first use of an acquisition."""

from miserly.boosting._backend import BackendOfRows, LocalBackend, check_row_count, weight_unit
from miserly.boosting._binned_dataset import BinnedDataset, BinnedFileError
from miserly.boosting._binned_traversal import traverse_binned
from miserly.boosting._binning import COLUMNS_AT_ONCE as COLUMNS_AT_ONCE
from miserly.boosting._binning import BinnedData, bin_data
from miserly.boosting._binning import chosen_rows as chosen_rows
from miserly.boosting._binning import cut_columns as cut_columns
from miserly.boosting._binning import encode_rows as encode_rows
from miserly.boosting._binning import no_cuts as no_cuts
from miserly.boosting._boost import Boosted, boost
from miserly.boosting._boost import boost_from as boost_from
from miserly.boosting._checkpoint import Checkpoint
from miserly.boosting._constraints import Constraints as Constraints
from miserly.boosting._each_row import EachRowPricing as EachRowPricing
from miserly.boosting._exact import mean_of_sums as mean_of_sums
from miserly.boosting._grower import Grower
from miserly.boosting._import_plan import import_plan
from miserly.boosting._importing import import_trees
from miserly.boosting._loss_registry import LossContext, loss_names, make_loss, register_loss
from miserly.boosting._loss_registry import Task as Task
from miserly.boosting._losses import LogLoss, Loss, SoftmaxLoss, SquaredHingeLoss, SquaredLoss, SummedLoss
from miserly.boosting._losses import is_steady as is_steady
from miserly.boosting._nodes import Ahead, NodeSums, TreeSplit
from miserly.boosting._pricing import ModelPricing, Pricing, RowPricing
from miserly.boosting._ranking import LambdaRankLoss
from miserly.boosting._remote import BackendLostError, RowsLostError, backend_for, fetch, is_remote
from miserly.boosting._rows import TrainingRows
from miserly.boosting._seen import SeenRows, SeenRowsWarning, seen_rows
from miserly.boosting._seen import warn_of_seen_rows as warn_of_seen_rows
from miserly.boosting._trees import GrownTree, Round, Settings, Table, TreeLimits, tree_table

__all__ = [
    "Ahead",
    "BackendLostError",
    "BackendOfRows",
    "BinnedData",
    "BinnedDataset",
    "BinnedFileError",
    "Boosted",
    "Checkpoint",
    "Grower",
    "GrownTree",
    "LambdaRankLoss",
    "LocalBackend",
    "LogLoss",
    "Loss",
    "LossContext",
    "ModelPricing",
    "NodeSums",
    "Pricing",
    "Round",
    "RowPricing",
    "RowsLostError",
    "SeenRows",
    "SeenRowsWarning",
    "Settings",
    "SoftmaxLoss",
    "SquaredHingeLoss",
    "SquaredLoss",
    "SummedLoss",
    "Table",
    "TrainingRows",
    "TreeLimits",
    "TreeSplit",
    "backend_for",
    "bin_data",
    "boost",
    "check_row_count",
    "fetch",
    "import_plan",
    "import_trees",
    "is_remote",
    "loss_names",
    "make_loss",
    "register_loss",
    "seen_rows",
    "traverse_binned",
    "tree_table",
    "weight_unit",
]
