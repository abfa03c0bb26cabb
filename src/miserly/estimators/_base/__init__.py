"""What every estimator shares: the contract, its parameters' constraints, dictionaries of learners, categories."""

from miserly.estimators._base._anytime import Anytime
from miserly.estimators._base._base import PlanClassifier, PlanEstimator, PlanRegressor, dense_blocks, row_weights
from miserly.estimators._base._categories import as_codes, find_categories
from miserly.estimators._base._dictionary import DICTIONARY, FIRST_ROWS, Learners, TableElsewhere, order_of_columns
from miserly.estimators._base._kernel_base import KernelClassifier, dense_rows
from miserly.estimators._base._learner_base import LearnerEstimator
from miserly.estimators._base._two_classes import TwoClasses

__all__ = [
    "DICTIONARY",
    "FIRST_ROWS",
    "Anytime",
    "KernelClassifier",
    "LearnerEstimator",
    "Learners",
    "PlanClassifier",
    "PlanEstimator",
    "PlanRegressor",
    "TableElsewhere",
    "TwoClasses",
    "as_codes",
    "dense_blocks",
    "dense_rows",
    "find_categories",
    "order_of_columns",
    "row_weights",
]
