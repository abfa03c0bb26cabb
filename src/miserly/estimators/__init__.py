"""The learners, one file per paper. Each ends as a `Plan` in `plan_`."""

from miserly.estimators.miser import GreedyMiserClassifier, GreedyMiserRanker, GreedyMiserRegressor, Purchase

__all__ = ["GreedyMiserClassifier", "GreedyMiserRanker", "GreedyMiserRegressor", "Purchase"]
