"""Fast-and-frugal trees (Phillips, Neth, Woike, Gaissmaier 2017) whose cues have prices."""

from miserly.estimators.fast_frugal._fast_frugal import FastFrugalTreeClassifier
from miserly.estimators.fast_frugal._levels import FrugalLevel

__all__ = ["FastFrugalTreeClassifier", "FrugalLevel"]
