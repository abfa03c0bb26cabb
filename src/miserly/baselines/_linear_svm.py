"""The linear SVM on raw features that the papers draw as one point: it looks at everything, whatever it costs."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from miserly.baselines._linear import LinearPlan, calibrated, log_odds, signs, standard
from miserly.costs import CostTable
from miserly.estimators import PlanClassifier, constraints
from miserly.solvers import blas_threads, newton_svm


class LinearSVM(PlanClassifier, LinearPlan):
    """L2-regularised squared hinge on standardised features: ½‖w‖² + ½C Σ μ_i max(0, 1 − y_i(wᵀx_i + b))².

    Our C is twice the C of scikit-learn's `LinearSVC(loss="squared_hinge")`; the intercept b is free. Several classes
    are taken each against the rest. Scores are brought to log-odds by Platt's scaling on the training data. It buys
    every feature that varies, so it has no cost axis: to draw it beside others, give `frontier` a grid of C.
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
