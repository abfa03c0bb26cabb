"""The methods that the command line can fit and sweep, by name: a new estimator needs one line here."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

ESTIMATORS, BASELINES = "miserly.estimators", "miserly.baselines"


@dataclass(frozen=True)
class Method:
    """A family of estimators: one line about it, its package, its class for each task; linear ones read no words."""

    about: str
    package: str
    classes: Mapping[str, str]
    is_linear: bool = False

    def make(self, task: str, **params: Any) -> Any:
        """A model of this family for a task; parameters that it does not have are refused."""
        kind = getattr(import_module(self.package), self.classes[task])
        unknown = sorted(set(params) - set(kind._get_param_names()))
        if unknown:
            options = ", ".join("--" + name.replace("_", "-") for name in unknown)
            raise click.UsageError(f"{kind.__name__} has no {options}. Leave it out, or use another --method.")
        return kind(**params)


def _family(about: str, package: str, stem: str, *kinds: str, is_linear: bool = False) -> Method:
    suffix = {"classification": "Classifier", "regression": "Regressor", "ranking": "Ranker"}
    return Method(about, package, {kind: stem + suffix[kind] for kind in kinds}, is_linear)


def _linear(about: str, package: str, stem: str, *kinds: str) -> Method:
    return _family(about, package, stem, *kinds, is_linear=True)


BOTH = ("classification", "regression")
METHODS: dict[str, Method] = {
    "auto": _family(
        "The best of a portfolio of the others, and of cascades between them, for every budget.",
        "miserly.auto",
        "AutoMiser",
        *BOTH,
        "ranking",
    ),
    "greedy-miser": _family(
        "One boosted forest that weighs each new feature's price against its gain.",
        ESTIMATORS,
        "GreedyMiser",
        *BOTH,
        "ranking",
    ),
    "anytime-miser": _family(
        "One forest ordered so that every prefix is the best for its cost.", ESTIMATORS, "AnytimeMiser", *BOTH
    ),
    "active": _family("Predicts from whatever is known and buys what is worth most next.", ESTIMATORS, "Active", *BOTH),
    "afr": _family("Trees as dimensions of a linear model, refined as money is spent.", ESTIMATORS, "AFR", BOTH[0]),
    "astc": _linear("A tree of linear models, features chosen by submodular selection.", ESTIMATORS, "ASTC", *BOTH),
    "cstc": _linear("A tree of linear models that sends rows to different features.", ESTIMATORS, "CSTC", *BOTH),
    "cscc": _linear("A cascade of linear models for unbalanced classes.", ESTIMATORS, "CSCC", BOTH[0]),
    "cronus": _linear("A soft cascade whose stages are optimised together.", ESTIMATORS, "Cronus", *BOTH),
    "compressed-svc": Method(
        "A support vector machine with few vectors, fast to evaluate.", ESTIMATORS, {BOTH[0]: "CompressedSVC"}, True
    ),
    "path-tree": _family("One decision tree; a row pays for the splits on its path.", BASELINES, "PathTree", *BOTH),
    "fast-frugal": _family(
        "One cue a level, an exit at every level: trees that fit on a card.", ESTIMATORS, "FastFrugalTree", BOTH[0]
    ),
    "feature-subset": _family("A forest on the features up to a price.", BASELINES, "FeatureSubset", *BOTH),
    "stagewise": _family("A cost-blind forest, cut after some rounds.", BASELINES, "Stagewise", *BOTH),
    "weighted-l1": _linear("A linear model whose L1 penalty follows the prices.", BASELINES, "CostWeightedL1", *BOTH),
    "adaboost-rs": _family("AdaBoost that draws features by reward and price.", BASELINES, "AdaBoostRS", BOTH[0]),
    "soft-cascade": _linear("A cascade of linear stages by price tier.", BASELINES, "SoftCascade", BOTH[0]),
    "and-or-cascade": _linear("A noisy-or cascade of linear stages.", BASELINES, "AndOrCascade", BOTH[0]),
    "reduced-svc": Method("A support vector machine on a subset of rows.", BASELINES, {BOTH[0]: "ReducedSVC"}, True),
}


def get_method(name: str, task: str) -> Method:
    """The method of that name, if it can do the task."""
    if name not in METHODS:
        near = difflib.get_close_matches(name, METHODS, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise click.UsageError(f"There is no method {name!r}.{hint} `miserly methods` lists them.")
    if task not in METHODS[name].classes:
        able = [other for other, method in METHODS.items() if task in method.classes]
        raise click.UsageError(f"{name} does no {task}. These do: {', '.join(able)}.")
    return METHODS[name]
