"""What every estimator shares: the contract, its parameters' constraints, dictionaries of learners, categories."""

from miserly.estimators._base._anytime import Anytime, falling_tradeoffs
from miserly.estimators._base._base import (
    PlanClassifier,
    PlanEstimator,
    PlanRegressor,
    check_numbers,
    dense_blocks,
    row_weights,
)
from miserly.estimators._base._categories import as_codes, find_categories
from miserly.estimators._base._dictionary import DICTIONARY, FIRST_ROWS, Learners, RemoteTable, order_of_columns
from miserly.estimators._base._eval_set import check_eval_set
from miserly.estimators._base._graphs import GraphEstimator, HeldOutRows, Posed, Scorer
from miserly.estimators._base._kernel_base import KernelClassifier, dense_rows
from miserly.estimators._base._learner_base import LearnerEstimator
from miserly.estimators._base._target import ClassTarget, NumberTarget, Reading, Target
from miserly.estimators._base._tree_dictionary import tree_dictionary
from miserly.estimators._base._two_classes import TwoClasses

__all__ = [
    "DICTIONARY",
    "FIRST_ROWS",
    "Anytime",
    "ClassTarget",
    "GraphEstimator",
    "HeldOutRows",
    "KernelClassifier",
    "LearnerEstimator",
    "Learners",
    "NumberTarget",
    "PlanClassifier",
    "PlanEstimator",
    "PlanRegressor",
    "Posed",
    "Reading",
    "RemoteTable",
    "Scorer",
    "Target",
    "TwoClasses",
    "as_codes",
    "check_eval_set",
    "check_numbers",
    "dense_blocks",
    "dense_rows",
    "falling_tradeoffs",
    "find_categories",
    "order_of_columns",
    "row_weights",
    "tree_dictionary",
]
