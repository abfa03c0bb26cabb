"""The learners, one file per paper. Each ends as a `Plan` in `plan_`."""

from miserly.estimators._base import DICTIONARY as DICTIONARY
from miserly.estimators._base import FIRST_ROWS as FIRST_ROWS
from miserly.estimators._base import (
    Anytime,
    KernelClassifier,
    PlanClassifier,
    PlanEstimator,
    PlanRegressor,
    constraints,
    tree_dictionary,
)
from miserly.estimators._base import GraphEstimator as GraphEstimator
from miserly.estimators._base import Learners as Learners
from miserly.estimators._base import Posed as Posed
from miserly.estimators._base import Reading as Reading
from miserly.estimators._base import RemoteTable as RemoteTable
from miserly.estimators._base import Scorer as Scorer
from miserly.estimators._base import TwoClasses as TwoClasses
from miserly.estimators._base import as_codes as as_codes
from miserly.estimators._base import dense_blocks as dense_blocks
from miserly.estimators._base import dense_rows as dense_rows
from miserly.estimators._base import find_categories as find_categories
from miserly.estimators._base import order_of_columns as order_of_columns
from miserly.estimators._base import row_weights as row_weights
from miserly.estimators.active import ActiveClassifier, ActiveRegressor
from miserly.estimators.afr import AFRClassifier
from miserly.estimators.astc import ASTCClassifier, ASTCRegressor
from miserly.estimators.cronus import CronusClassifier, CronusRegressor
from miserly.estimators.cstc import CSCCClassifier, CSTCClassifier, CSTCRegressor
from miserly.estimators.cvm import CompressedSVC
from miserly.estimators.fast_frugal import FastFrugalTreeClassifier, FrugalLevel
from miserly.estimators.greedy_miser import (
    AnytimeMiserClassifier,
    AnytimeMiserRegressor,
    BoostedClassifier,
    BoostedEstimator,
    BoostedRanker,
    BoostedRegressor,
    GreedyMiserClassifier,
    GreedyMiserRanker,
    GreedyMiserRegressor,
    Purchase,
)
from miserly.estimators.pipeline import PricedPipeline

__all__ = [
    "AFRClassifier",
    "ASTCClassifier",
    "ASTCRegressor",
    "ActiveClassifier",
    "ActiveRegressor",
    "Anytime",
    "AnytimeMiserClassifier",
    "AnytimeMiserRegressor",
    "BoostedClassifier",
    "BoostedEstimator",
    "BoostedRanker",
    "BoostedRegressor",
    "CSCCClassifier",
    "CSTCClassifier",
    "CSTCRegressor",
    "CompressedSVC",
    "CronusClassifier",
    "CronusRegressor",
    "FastFrugalTreeClassifier",
    "FrugalLevel",
    "GreedyMiserClassifier",
    "GreedyMiserRanker",
    "GreedyMiserRegressor",
    "KernelClassifier",
    "PlanClassifier",
    "PlanEstimator",
    "PlanRegressor",
    "PricedPipeline",
    "Purchase",
    "constraints",
    "tree_dictionary",
]
