"""Approximately submodular trees of classifiers (Kusner et al., AAAI 2014)."""

from miserly.estimators.astc._astc import ASTCClassifier, ASTCRegressor

__all__ = ["ASTCClassifier", "ASTCRegressor"]
