"""Cost-sensitive trees and cascades of classifiers (Xu et al., ICML 2013; JMLR 2014)."""

from miserly.estimators.cstc._cscc import CSCCClassifier
from miserly.estimators.cstc._cstc import CSTCClassifier, CSTCRegressor

__all__ = [
    "CSCCClassifier",
    "CSTCClassifier",
    "CSTCRegressor",
]
