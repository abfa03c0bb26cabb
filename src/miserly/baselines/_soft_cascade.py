"""The soft cascade (Raykar, Krishnapuram, Yu, KDD 2010): linear stages with pre-assigned prices, all learned together.

A row is positive if every stage says yes, P(y = 1) = Π_k σ(z^k). What is minimised is the mean −log-likelihood, plus a
weight times the expected cost of the stages that a row comes to, plus the size of the weights (a Laplace prior):
`_tiered_cascade`. The gates of the running cascade look at the product so far. Since the factors to come are at
most one, a row that is not above the threshold would not be above it at the end either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from miserly._typing import Floats
from miserly.baselines._tiered_cascade import Stages, expected_cost, soft_likelihood
from miserly.baselines._tiers import TieredCascade, Tiers
from miserly.costs import CostTable
from miserly.estimators import Learners, Posed, Reading, constraints
from miserly.plan import EXIT, Gate, Node, Plan, sigmoid


class SoftCascadeClassifier(TieredCascade):
    """A cascade for two classes, the second of which is rare; probabilities of stages are multiplied.

    P(y = 1) = Π_k σ(z^k). A stage costs all that its tier adds, as in the paper; the plan charges what is in use.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    cost_weight : float, default=0.01
        Weight of the cost, 0 or more.
    tiers : sequence of float or None, default=None
        Highest price of each stage; None is up to five stages with about as many new features each.
    threshold : float in [0, 1], default=0.5
        Probability so far that a row needs to go on.
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
    V. Raykar, B. Krishnapuram, S. Yu. Designing Efficient Cascaded Classifiers. KDD 2010.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> from miserly.baselines import SoftCascadeClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = SoftCascadeClassifier(costs).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TieredCascade._parameter_constraints,
        "threshold": [constraints.limits(0, 1)],
    }

    def __init__(
        self,
        costs: CostTable | None = None,
        cost_weight: float = 1e-2,
        tiers: Sequence[float] | None = None,
        threshold: float = 0.5,
        class_weight: Any = None,
        dictionary: Any = None,
        alpha: float = 1e-3,
        max_iter: int = 300,
        tol: float = 1e-9,
    ) -> None:
        self.costs = costs
        self.cost_weight = cost_weight
        self.tiers = tiers
        self.threshold = threshold
        self.class_weight = class_weight
        self.dictionary = dictionary
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn all stages."""
        posed = self._pose(X, y, sample_weight)
        tiers = self._tiers(posed.learners)
        positive, omega, share = posed.targets[:, 0] > 0, posed.omega, posed.share
        prices = self.cost_weight * _stage_prices(posed.learners, tiers)

        def loss(scores: Floats) -> tuple[float, Floats]:
            each, slopes = soft_likelihood(scores, positive)
            paid, cost_slopes = expected_cost(scores, prices)
            return float(omega @ each + share @ paid), omega[:, None] * slopes + share[:, None] * cost_slopes

        each = float(omega @ positive) ** (1.0 / len(tiers.limits))  # so that the product is the share of positives
        penalty = np.full(len(tiers.allowed), float(self.alpha))
        found = self._stages(posed, tiers, loss, penalty, math.log(each / (1.0 - each)))
        self.plan_ = self._product_plan(posed, found)
        return self

    def decision_function(self, X: Any, budget: float | None = None, confidence: float | None = None) -> np.ndarray:
        """Log-odds as calibrated; the plan's own score is the product of the stages that a row came to."""
        return self._by_blocks(X, lambda plan, block: plan.run(block, budget=budget).z[:, 0], confidence)

    def _product_plan(self, posed: Posed, found: Stages) -> Plan:
        last = len(found.bias) - 1
        reading = self._reading(posed, self._products(posed, found)[:, None])
        nodes = []
        for k in range(last + 1):
            number, weights, bias = posed.learners.for_node(found.beta[:, [k]], found.bias[k])
            nodes.append(
                Node(
                    number,
                    weights,
                    bias=bias,
                    combine="multiply" if k else "replace",
                    activation="logistic",
                    scale=reading.matrix[0],
                    offset=reading.offset,
                    gate=Gate.above(self.threshold) if k < last else Gate(),
                    passed=k + 1 if k < last else EXIT,
                    tier=k,
                )
            )
        return _plan(self, posed, nodes, reading)

    def _products(self, posed: Posed, found: Stages) -> Floats:
        """The product with which each training row leaves."""
        inside, product = np.ones(len(posed.weights), bool), np.ones(len(posed.weights))
        for k, bias in enumerate(found.bias):
            factor = sigmoid(np.ascontiguousarray(posed.learners.design.scores(found.beta[:, k]) + bias)[:, None])[:, 0]
            product[inside] *= factor[inside]
            inside = inside & (product > self.threshold)
        return product


def _stage_prices(learners: Learners, tiers: Tiers) -> Floats:
    """What each stage may buy beyond the stages before, as shares of all that can be bought."""
    totals = [learners.price(np.flatnonzero(column)) for column in tiers.allowed.T]
    return np.diff(totals, prepend=0.0) / (totals[-1] or 1.0)


def _plan(model: SoftCascadeClassifier, posed: Posed, nodes: list[Node], reading: Reading) -> Plan:
    bought = any(len(node.learners) for node in nodes)
    return model._with_background(
        Plan(
            costs=posed.costs,
            dictionary=posed.learners.dictionary,
            nodes=tuple(nodes) if bought else (),
            prior=reading.prior,
            link="logistic",
            classes=model.classes_,
            roots=(0,) if bought else (),
            notes={"estimator": type(model).__name__, **model._category_notes()},
        )
    )
