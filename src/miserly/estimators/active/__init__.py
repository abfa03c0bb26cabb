"""Ours: the best next purchase from any state of knowledge, with boosted trees."""

from miserly.estimators.active._active import ActiveClassifier, ActiveRegressor

__all__ = ["ActiveClassifier", "ActiveRegressor"]
