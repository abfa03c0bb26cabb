"""The learners, one file per paper. Each ends as a `Plan` in `plan_`."""

from miserly.estimators import constraints
from miserly.estimators.afr import AFRClassifier
from miserly.estimators.anytime import Anytime
from miserly.estimators.anytime_miser import AnytimeMiserClassifier, AnytimeMiserRegressor
from miserly.estimators.astc import ASTCClassifier, ASTCRegressor
from miserly.estimators.base import PlanClassifier, PlanEstimator, PlanRegressor
from miserly.estimators.boosted import BoostedEstimator
from miserly.estimators.boosted_kinds import BoostedClassifier, BoostedRanker, BoostedRegressor
from miserly.estimators.chain import Purchase
from miserly.estimators.cronus import CronusClassifier, CronusRegressor
from miserly.estimators.cscc import CSCCClassifier
from miserly.estimators.cstc import CSTCClassifier, CSTCRegressor
from miserly.estimators.cvm import CompressedSVC
from miserly.estimators.kernel_base import KernelClassifier
from miserly.estimators.miser import GreedyMiserClassifier, GreedyMiserRanker, GreedyMiserRegressor

__all__ = [
    "AFRClassifier",
    "ASTCClassifier",
    "ASTCRegressor",
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
    "GreedyMiserClassifier",
    "GreedyMiserRanker",
    "GreedyMiserRegressor",
    "KernelClassifier",
    "PlanClassifier",
    "PlanEstimator",
    "PlanRegressor",
    "Purchase",
    "constraints",
]
