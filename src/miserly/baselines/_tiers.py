"""What cascades with pre-assigned prices share: before anything is learned, each stage has a highest price.

The papers of Cronus and CSCC compare with two of them, in five stages of prices up to 5, 20, 50, 150 and 200. An
expensive feature, however good, cannot be bought before its stage: that is what they are shown for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from miserly._blas import blas_threads
from miserly._typing import Floats
from miserly.baselines._tiered_cascade import Loss, Stages, fit_stages
from miserly.estimators import DICTIONARY, GraphEstimator, Learners, Posed, TwoClasses, constraints

MOST_STAGES = 5


@dataclass(frozen=True)
class Tiers:
    """The highest price of each stage, and which column (line) each stage may use."""

    limits: Floats
    allowed: NDArray[np.bool_]


class TieredCascade(TwoClasses, GraphEstimator):
    """The parameters and the fit of all stages together; what is minimised, and the plan, are the subclasses'."""

    cost_axis = "cost_weight"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "costs": constraints.COSTS,
        "cost_weight": [constraints.not_negative()],
        "tiers": ["array-like", None],
        "class_weight": [constraints.one_of("balanced"), dict, None],
        "dictionary": DICTIONARY,
        "alpha": [constraints.not_negative()],
        "max_iter": [constraints.at_least(1)],
        "tol": [constraints.not_negative()],
    }
    cost_weight: float
    tiers: Sequence[float] | None
    alpha: float
    max_iter: int
    tol: float

    def rank_score(self, X: Any, budget: float | None = None) -> np.ndarray:
        """The order to show: rows that were rejected stand below all that went on."""
        return self._by_blocks(X, lambda plan, block: plan.rank_score(block, budget=budget))

    def suggest_grid(self, y: Any, n_points: int = 8, sample_weight: Any = None) -> np.ndarray:
        """Weights of the cost from nearly none to all that counts; they have no unit."""
        return np.geomspace(1e-4, 1.0, n_points)

    def _stages(self, posed: Posed, tiers: Tiers, loss: Loss, penalty: Floats, bias: float) -> Stages:
        first = np.full(len(tiers.limits), bias)
        design = posed.learners.design
        with blas_threads(posed.n_cells):
            found = fit_stages(design, tiers.allowed, loss, penalty, first, self.max_iter, self.tol)
        self.n_stages_, self.n_iter_ = len(tiers.limits), found.n_iter
        return found

    def _tiers(self, learners: Learners) -> Tiers:
        """Stages as asked for, but for those that add no column; by default five with as many new features each."""
        of_feature = np.array(list(learners.costs.marginal().values()))
        price = np.array(
            [of_feature[learners.dictionary.features_of(int(t))].max(initial=0.0) for t in learners.number]
        )
        if self.tiers is None:
            shares = np.arange(1, MOST_STAGES + 1) / MOST_STAGES
            limits = np.unique(np.quantile(of_feature, shares, method="inverted_cdf"))
        else:
            limits = np.unique(np.asarray(self.tiers, np.float64))
        allowed = price[:, None] <= limits
        new = np.diff(allowed.sum(axis=0), prepend=0) > 0
        if not new.any():
            raise ValueError(
                f"No learner costs at most {limits[-1]:g}, the highest of tiers. The cheapest costs {price.min():g}."
            )
        return Tiers(limits[new], allowed[:, new])
