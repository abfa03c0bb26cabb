"""The linear SVM on raw features that the papers draw as one point: it looks at everything, whatever it costs."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from miserly._blas import blas_threads
from miserly.baselines._linear import LinearPlan, calibrated, log_odds, signs, standard
from miserly.costs import CostTable
from miserly.estimators import PlanClassifier, constraints
from miserly.solvers import newton_svm


class LinearSVM(PlanClassifier, LinearPlan):
    """The linear SVM on raw features: it looks at everything, whatever it costs.

    It minimises ½‖w‖² + ½C Σ μ_i max(0, 1 − y_i(wᵀx_i + b))² on standardised features; each class against the rest,
    calibrated by Platt's scaling. It has no cost axis.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    C : float, default=1.0
        Weight of the loss, above 0; twice the C of scikit-learn's `LinearSVC(loss="squared_hinge")`.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    classes_ : ndarray
        The classes, in order.
    coef_ : ndarray
        Weights of the features.
    intercept_ : ndarray
        Constants.
    n_iter_ : int
        Newton steps.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> from miserly.baselines import LinearSVM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = LinearSVM(costs).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "costs": constraints.COSTS,
        "C": [constraints.positive()],
    }

    def __init__(self, costs: CostTable | None = None, C: float = 1.0) -> None:
        self.costs = costs
        self.C = C

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVM:
        """Find the widest margin; `sample_weight` multiplies the loss of a row."""
        X, y, weights = self._fit_rows(X, y, sample_weight)
        self.classes_ = self._find_classes(y)
        targets, costs = signs(y, self.classes_), self._bound_costs()
        data = standard(X, weights)
        with blas_threads(data.Z.size):
            found = [newton_svm(data.Z, target, float(self.C), weights) for target in targets.T]
        w, b = np.column_stack([w for w, _, _ in found]), np.array([b for _, b, _ in found])
        self.n_iter_ = max(steps for _, _, steps in found)
        scale, offset = calibrated(data.Z @ w + b, targets, weights)
        prior = log_odds(targets, weights)
        self.plan_ = self._one_node(costs, data, w * scale, b * scale + offset, prior, "logistic", self.classes_)
        return self
