"""The best frontier in one call: a portfolio of models, policies between them, and the choice under a budget."""

from miserly.auto._estimators import AutoMiserClassifier, AutoMiserRanker, AutoMiserRegressor

__all__ = ["AutoMiserClassifier", "AutoMiserRanker", "AutoMiserRegressor"]
