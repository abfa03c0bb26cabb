"""What rows looked like when a plan was made, so that one can notice when rows to come look otherwise."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from miserly._typing import Array, Floats
from miserly.plan._background import MOST_ROWS

if TYPE_CHECKING:
    from miserly.plan._plan import Plan

N_BINS = 10  # tenths of the training rows, as the index is mostly used; its rules of thumb are for about so many
HALF = 0.5  # a row that is added to each bin, so that an empty bin gives a large index and not an infinite one
MODERATE, LARGE = 0.1, 0.25  # the usual rules of thumb for the population stability index


@dataclass(frozen=True)
class Histogram:
    """Shares of rows between edges.

    Parameters
    ----------
    name : str
        The feature, or "score".
    edges : tuple of float
        Rising; a value belongs to the first edge that it does not exceed, or to the last bin.
    shares : tuple of float
        The share of each bin among the values that are there; one more than edges.
    missing : float, default=0.0
        The share of rows without a value.

    Examples
    --------
    >>> from miserly.plan import Histogram
    >>> Histogram("age", (40.0, 60.0), (0.2, 0.5, 0.3)).bin(60.0)
    1
    """

    name: str
    edges: tuple[float, ...]
    shares: tuple[float, ...]
    missing: float = 0.0

    def __post_init__(self) -> None:
        given = [*self.edges, *self.shares, self.missing]
        if len(self.shares) != len(self.edges) + 1 or not all(map(math.isfinite, given)):
            raise ValueError(f"The histogram of {self.name!r} has one share more than edges, all of them numbers.")
        if any(a >= b for a, b in zip(self.edges, self.edges[1:])) or not 0 <= self.missing <= 1:
            raise ValueError(f"The histogram of {self.name!r} has edges that do not rise, or an impossible share.")
        if any(share < 0 for share in self.shares):
            raise ValueError(f"The histogram of {self.name!r} has a negative share.")

    @classmethod
    def of(cls, name: str, values: Array) -> Histogram:
        """The histogram of some values: a bin for each of a few distinct ones, else tenths."""
        known = np.sort(values[np.isfinite(values)].astype(np.float64))
        distinct = known[np.r_[True, np.diff(known) > 0]] if len(known) else known
        if len(distinct) <= N_BINS:
            edges = distinct[:-1] / 2.0 + distinct[1:] / 2.0
        else:
            edges = np.unique(known[[len(known) * k // N_BINS for k in range(1, N_BINS)]])
            edges = edges[edges < known[-1]]
        counts = np.bincount(np.searchsorted(edges, known), minlength=len(edges) + 1)
        shares = counts / max(1, len(known))
        return cls(name, tuple(edges.tolist()), tuple(shares.tolist()), 1.0 - len(known) / max(1, len(values)))

    def bin(self, value: float) -> int:
        """The bin of a value; the last, one more, for a missing one."""
        return len(self.shares) if value != value else bisect_left(self.edges, value)

    def counts(self, values: Array) -> Floats:
        """How many values are in each bin; the last is for missing ones."""
        known = values[~np.isnan(values)]
        found = np.bincount(np.searchsorted(self.edges, known), minlength=len(self.shares))
        return np.append(found, len(values) - len(known)).astype(np.float64)

    def stability(self, counts: Sequence[float] | Floats, n_reference: int) -> float:
        """The population stability index of counted values (as `counts` gives them) against this histogram, less what
        chance alone makes of so few rows; 0 or more."""
        n = float(sum(counts[:-1]))
        n_bins = len(self.shares)
        if n == 0 or n_bins < 2:
            return 0.0
        now = (np.asarray(counts[:-1]) + HALF) / (n + HALF * n_bins)
        m = max(1.0, n_reference * (1.0 - self.missing))
        then = (np.asarray(self.shares) * m + HALF) / (m + HALF * n_bins)
        index = float(((now - then) * np.log(now / then)).sum())
        return max(0.0, index - (n_bins - 1) * (1.0 / n + 1.0 / m))


@dataclass(frozen=True)
class TrainingProfile:
    """The training rows of a plan: a histogram of each feature that it may look at.

    Parameters
    ----------
    n_rows : int
        How many rows were looked at.
    features : tuple of Histogram
        One for each feature.

    Examples
    --------
    >>> import numpy as np
    >>> from miserly.plan import TrainingProfile
    >>> TrainingProfile.of(["age"], [0], np.array([[50.0], [60.0], [np.nan]])).features[0].missing
    0.33333333333333337
    """

    n_rows: int
    features: tuple[Histogram, ...]

    @classmethod
    def of(cls, names: Sequence[str], used: Iterable[int], X: Array) -> TrainingProfile:
        """The profile of some rows."""
        rows = X[:: max(1, -(-len(X) // MOST_ROWS))]
        return cls(len(rows), tuple(Histogram.of(names[f], rows[:, f]) for f in used))


@dataclass(frozen=True)
class Promise:
    """What a plan did on validation rows, without a budget: what is to be expected of rows to come.

    Parameters
    ----------
    n_rows : int
        How many rows.
    cost : float
        Their mean cost.
    spread : float
        The standard deviation of the cost of a row.
    score : Histogram
        The predictions or, with classes, the probabilities of the predicted classes.
    classes : dict, default={}
        The share of each predicted class, by its name as text.
    quality : float or None, default=None
        Accuracy with classes, mean squared error without; None without labels.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> plan = Plan(ms.CostTable.per_feature({"age": 2.0}), RawFeatures([0]), (Node([0], [1.0]),), [0.0])
    >>> promise = plan.with_promise(np.array([[1.0], [3.0]]), y=[1.0, 4.0]).promise
    >>> promise.cost, promise.quality
    (2.0, 0.5)
    """

    n_rows: int
    cost: float
    spread: float
    score: Histogram
    classes: Mapping[str, float]
    quality: float | None = None

    def __post_init__(self) -> None:
        numbers = [self.cost, self.spread, *self.classes.values(), *([] if self.quality is None else [self.quality])]
        if self.n_rows < 1 or not all(math.isfinite(x) and x >= 0 for x in numbers):
            raise ValueError("A promise is made by rows, and its figures are numbers of zero or more.")

    @classmethod
    def of(cls, plan: Plan, run: Any, y: Any = None) -> Promise:
        """What the run of a plan on validation rows was."""
        said, scores = predictions_and_scores(plan, run.z)
        shares = {}
        if plan.classes is not None:
            counted = Counter(map(str, said.tolist()))
            shares = {name: n / len(said) for name, n in counted.items()}
        quality = None
        if y is not None and (plan.classes is not None or plan.n_outputs == 1):
            quality = quality_of(plan, said, np.asarray(y))
        cost = run.cost
        return cls(len(cost), float(cost.mean()), float(cost.std()), Histogram.of("score", scores), shares, quality)


def predictions_and_scores(plan: Plan, z: Floats) -> tuple[Array, Floats]:
    """Predictions, and the number of each row whose distribution is watched: the probability of the predicted class or,
    without classes, the prediction (the first of several)."""
    said = plan.read(z)
    if plan.classes is None:
        return said, np.asarray(said if said.ndim == 1 else said[:, 0], np.float64)
    return said, np.asarray(plan.probabilities(z).max(axis=1), np.float64)


def quality_of(plan: Plan, said: Array, y: Array) -> float:
    """Accuracy with classes, mean squared error without."""
    if plan.classes is not None:
        return float(np.mean(np.array(said.tolist(), object).astype(str) == np.array(y.tolist(), object).astype(str)))
    return float(np.mean((said - y.astype(np.float64)) ** 2))
