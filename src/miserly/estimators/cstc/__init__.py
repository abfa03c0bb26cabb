"""Cost-sensitive trees and cascades of classifiers (Xu et al., ICML 2013; JMLR 2014)."""

from miserly.estimators.cstc._cscc import CSCCClassifier
from miserly.estimators.cstc._cstc import CSTCClassifier, CSTCRegressor
from miserly.estimators.cstc._graphs import Elsewhere, GraphEstimator, Posed, Reading, Scorer

__all__ = [
    "CSCCClassifier",
    "CSTCClassifier",
    "CSTCRegressor",
    "Elsewhere",
    "GraphEstimator",
    "Posed",
    "Reading",
    "Scorer",
]
