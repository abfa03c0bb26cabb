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

    A positive row must pass every stage, a negative one must be rejected by any one of them.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    cost_weight : float, default=0.001
        Weight of the cost, 0 or more.
    tiers : sequence of float or None, default=None
        Highest price of each stage; None is up to five stages with about as many new features each.
    negatives : {"noisy_or", "minimum"}, default="noisy_or"
        The OR of the loss: the product of the stages' losses, or the smallest.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes in the loss, as in scikit-learn; never in the cost.
    dictionary : None, "trees", Trees, Plan or estimator, default=None
        The learners that are weighed: the raw features (None), trees of mixed depth grown on the same rows
        ("trees", see `tree_dictionary`), what `import_trees` gives, a plan, or a model of boosted trees, which is
        fitted first unless it is fitted already.
    alpha : float, default=0.001
        Penalty on all weights alike, 0 or more.
    max_iter : int, default=300
        Most steps of L-BFGS, 1 or more.
    tol : float, default=1e-09
        Relative fall of the objective at which it stops, 0 or more.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    classes_ : ndarray
        The classes, in order.
    n_stages_ : int
        Stages.
    n_iter_ : int
        Steps done.

    References
    ----------
    M. Dundar, J. Bi. Joint Optimization of Cascaded Classifiers for Computer Aided Detection. CVPR 2007.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> from miserly.baselines import AndOrCascadeClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = AndOrCascadeClassifier(costs).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 9)
    True
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
