"""Numerical solvers behind the linear models: arrays in, coefficients out."""

from miserly.solvers._calibration import common_temperature as common_temperature
from miserly.solvers._calibration import discriminant, platt
from miserly.solvers._calibration import softmax_scaling as softmax_scaling
from miserly.solvers._calibration import temperature as temperature
from miserly.solvers._descent import Memory as Memory
from miserly.solvers._descent import Metric as Metric
from miserly.solvers._descent import descend as descend
from miserly.solvers._descent import drop_small as drop_small
from miserly.solvers._descent import line_search as line_search
from miserly.solvers._descent import repeat_until_converged as repeat_until_converged
from miserly.solvers._design import Design, RawDesign, TreeDesign, raw_weights
from miserly.solvers._design import RawRows as RawRows
from miserly.solvers._design import TreeRows as TreeRows
from miserly.solvers._design import as_table as as_table
from miserly.solvers._design import shares as shares
from miserly.solvers._design import standardise_features as standardise_features
from miserly.solvers._design import standardise_trees as standardise_trees
from miserly.solvers._kernel_functions import RBF as RBF
from miserly.solvers._kernel_functions import Chi2 as Chi2
from miserly.solvers._kernel_functions import KernelFunction as KernelFunction
from miserly.solvers._kernel_functions import Polynomial as Polynomial
from miserly.solvers._logged import LoggedPurchases as LoggedPurchases
from miserly.solvers._logged import LoggedRows as LoggedRows
from miserly.solvers._logged import effective_number as effective_number
from miserly.solvers._logged import weighted_mean as weighted_mean
from miserly.solvers._mixed_norm import AcquisitionNorm as AcquisitionNorm
from miserly.solvers._mixed_norm import MixedNorm as MixedNorm
from miserly.solvers._mixed_norm import centred_gram as centred_gram
from miserly.solvers._newton_svm import Inside as Inside
from miserly.solvers._newton_svm import minimise as minimise
from miserly.solvers._newton_svm import newton_svm
from miserly.solvers._traversal import EXIT as EXIT
from miserly.solvers._traversal import GateGraph as GateGraph
from miserly.solvers._traversal import Traversal as Traversal
from miserly.solvers._traversal import soft_gate as soft_gate
from miserly.solvers._window import Asked as Asked
from miserly.solvers._window import Held as Held
from miserly.solvers._window import Window as Window

__all__ = [
    "Design",
    "RawDesign",
    "TreeDesign",
    "centred_gram",
    "discriminant",
    "newton_svm",
    "platt",
    "raw_weights",
]
