"""Cronus (Chen et al., AISTATS 2012): a cascade of linear classifiers, optimised as a whole."""

from miserly.estimators.cronus._cronus import CronusClassifier, CronusRegressor

__all__ = ["CronusClassifier", "CronusRegressor"]
