"""AND-OR (Dundar, Bi, CVPR 2007): linear stages with pre-assigned prices, all learned together.

A positive row must pass every stage, so its loss is the largest over the stages; a negative one must be rejected by any
one of them, so its loss is their product, or the smallest. Squared hinges in place of hinges make the whole smooth
(`_tiered_cascade`). The cost enters as in the thesis, where the stages choose among what they may use: a penalty
on each weight that grows with the learner's price.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np

from miserly._typing import Floats
from miserly.baselines._tiered_cascade import Stages, and_or
from miserly.baselines._tiers import TieredCascade
from miserly.costs import CostTable
from miserly.estimators import Posed, Scorer, constraints
from miserly.solvers import GateGraph


class AndOrCascadeClassifier(TieredCascade):
    """A cascade for two classes, the second of which is rare: a row leaves at the first stage that says no.

    `cost_weight` is the weight of the cost: the penalty on a learner of the mean price, beside `alpha`, which is on all
    alike. `tiers` are the highest prices of the stages; unless given, five with as many new features in each.
    `negatives` is the OR: "noisy_or", the product of the stages' losses, or "minimum". `class_weight` as in
    scikit-learn; `dictionary` is what stages weigh: raw features, or trees.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TieredCascade._parameter_constraints,
        "negatives": [constraints.one_of("noisy_or", "minimum")],
    }

    def __init__(
        self,
        costs: CostTable | None = None,
        cost_weight: float = 1e-3,
        tiers: Sequence[float] | None = None,
        negatives: Literal["noisy_or", "minimum"] = "noisy_or",
        class_weight: Any = None,
        dictionary: Any = None,
        alpha: float = 1e-3,
        max_iter: int = 300,
        tol: float = 1e-9,
    ) -> None:
        self.costs = costs
        self.cost_weight = cost_weight
        self.tiers = tiers
        self.negatives = negatives
        self.class_weight = class_weight
        self.dictionary = dictionary
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn all stages."""
        posed = self._pose(X, y, sample_weight)
        positive, omega = posed.targets[:, 0] > 0, posed.omega

        def loss(scores: Floats) -> tuple[float, Floats]:
            each, slopes = and_or(scores, positive, self.negatives)
            return float(omega @ each), omega[:, None] * slopes

        found = self._stages(posed, self._tiers(posed.learners), loss, self._penalty(posed), 0.0)
        scorers, exit_scores = self._hard(posed, found)
        reading = self._reading(posed, exit_scores[:, None])
        graph = GateGraph.cascade(len(scorers))
        self.plan_ = self._graph_plan(posed, graph, scorers, reading, list(range(len(scorers))))
        return self

    def _penalty(self, posed: Posed) -> Floats:
        learners = posed.learners
        price = np.array([learners.price([j]) for j in range(len(learners.number))])
        return self.cost_weight * price / (float(price.mean()) or 1.0) + self.alpha

    def _hard(self, posed: Posed, found: Stages) -> tuple[list[Scorer], Floats]:
        """The stages without those that reject no training row, or that nobody comes to; the scores at the exits."""
        inside = np.ones(len(posed.weights), bool)
        at_exit, scorers = np.zeros(len(inside)), []
        for k in range(len(found.bias)):
            beta, bias = found.beta[:, k], float(found.bias[k])
            scores = posed.learners.design.scores(beta) + bias
            goes_on = inside & (scores > 0)
            if k < len(found.bias) - 1 and goes_on.sum() == inside.sum():
                continue
            at_exit[inside] = scores[inside]
            scorers.append(Scorer(beta[:, None].copy(), np.array([bias]), beta.copy(), -bias))
            inside = goes_on
            if not inside.any():
                break
        return scorers, at_exit
