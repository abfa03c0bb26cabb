"""The learners, one file per paper. Each ends as a `Plan` in `plan_`."""

from miserly.estimators.miser import GreedyMiserClassifier, GreedyMiserRegressor, Purchase

__all__ = ["GreedyMiserClassifier", "GreedyMiserRegressor", "Purchase"]
