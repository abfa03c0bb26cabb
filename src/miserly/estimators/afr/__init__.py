"""Anytime feature representations (Xu, Kusner, Huang, Weinberger, ICML 2013)."""

from miserly.estimators.afr._afr import AFRClassifier

__all__ = ["AFRClassifier"]
