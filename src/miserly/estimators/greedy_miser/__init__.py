"""Greedy Miser (Xu, Weinberger, Chapelle, ICML 2012): boosted trees that pay for each first use of an acquisition."""

from miserly.estimators.greedy_miser._anytime_miser import AnytimeMiserClassifier, AnytimeMiserRegressor
from miserly.estimators.greedy_miser._boosted import BoostedEstimator
from miserly.estimators.greedy_miser._boosted_kinds import BoostedClassifier, BoostedRanker, BoostedRegressor
from miserly.estimators.greedy_miser._chain import Purchase
from miserly.estimators.greedy_miser._miser import GreedyMiserClassifier, GreedyMiserRanker, GreedyMiserRegressor

__all__ = [
    "AnytimeMiserClassifier",
    "AnytimeMiserRegressor",
    "BoostedClassifier",
    "BoostedEstimator",
    "BoostedRanker",
    "BoostedRegressor",
    "GreedyMiserClassifier",
    "GreedyMiserRanker",
    "GreedyMiserRegressor",
    "Purchase",
]
