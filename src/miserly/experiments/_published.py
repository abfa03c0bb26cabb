"""Where our methods depart from the papers, as parameters: the papers' own value of each.

What is no parameter cannot be taken back: Newton steps of leaves under the logistic loss, standardised columns, the
score of the exit (the paper of Cronus predicts −1 there), acquisitions that several features share.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Departures = Mapping[str, Mapping[str, Any]]

# by the first part of a class's name
PUBLISHED: Departures = {
    "GreedyMiser": {"purchases": "every_round"},
    "CSTC": {"steepness": 1.0, "reweight": False, "swaps": False},
    "CSCC": {"steepness": 1.0, "reweight": False},
    "Cronus": {"steepness": 50.0, "reweight": False},
    "ASTC": {"threshold": "half", "penalty": 0.0, "l2_regularization": 0.0, "min_samples_leaf": 1},
}


def stem_of(model: Any) -> str:
    """The method of an estimator: its class's name without the kind of label."""
    name = type(model).__name__
    return name.removesuffix("Classifier").removesuffix("Regressor").removesuffix("Ranker")


def single_departures(stem: str) -> dict[str, Departures]:
    """One departure of a method at a time, by a name for a curve."""
    return {f"{stem}, {name}={value}": {stem: {name: value}} for name, value in PUBLISHED[stem].items()}
