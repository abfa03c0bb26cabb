"""What linear models share: finite data, row weights, and weights of raw features that end as a plan of one node."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.sparse import issparse

from miserly._typing import Floats
from miserly.baselines._standard import Standard, standardise
from miserly.costs import CostTable
from miserly.estimators import PlanEstimator
from miserly.plan import Node, Plan, RawFeatures
from miserly.solvers import platt

Link = Literal["identity", "logistic", "softmax"]


class LinearPlan(PlanEstimator):
    """A linear model: it cannot read missing values, and its plan is one node over raw features."""

    coef_: Floats
    intercept_: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, Floats]:
        """Checked rows that have a weight, and their weights; sparse data are made dense."""
        X, y, weights = self._fit_data(X, y, sample_weight, y_numeric=self.numeric_labels)
        if self.categories_:
            raise ValueError(
                f"{type(self).__name__} is linear and cannot read categories as numbers: {sorted(self.categories_)}. "
                "Give one column per category (sklearn.preprocessing.OneHotEncoder) that all need one acquisition."
            )
        return X.toarray() if issparse(X) else X, y, np.ones(len(y)) if weights is None else weights

    def _one_node(
        self,
        costs: CostTable,
        data: Standard,
        beta: Floats,
        constant: Floats,
        prior: Floats,
        link: Link = "identity",
        classes: Any = None,
    ) -> Plan:
        """The plan, `coef_` and `intercept_` for weights of standardised columns; the most influential come first.

        Learners are added up in an order that does not depend on where their columns stand.
        """
        weights, bias = data.raw(beta, constant)
        used = np.flatnonzero(weights.any(axis=1))
        used = used[np.argsort(-np.linalg.norm(beta[used], axis=1), kind="stable")]
        node = Node(
            data.order[used].astype(np.int32),
            weights[used],
            bias=bias,
            outputs=tuple(range(weights.shape[1])),
            combine="replace",
        )
        nodes = (node,) if len(used) else ()
        coef = np.zeros((weights.shape[1], self.n_features_in_))
        coef[:, data.order] = weights.T
        self.coef_, self.intercept_ = (coef, bias) if classes is not None else (coef[0], float(bias[0]))
        return self._with_background(
            Plan(
                costs=costs,
                dictionary=RawFeatures(np.arange(self.n_features_in_)),
                nodes=nodes,
                prior=prior if nodes else bias,
                link=link,
                classes=classes,
                roots=tuple(range(len(nodes))),
                notes={"estimator": type(self).__name__},
            )
        )


def standard(X: np.ndarray, weights: Floats) -> Standard:
    """The columns standardised under the rows' weights."""
    return standardise(X, weights / weights.sum())


def feature_prices(costs: CostTable) -> Floats:
    """What each feature costs a row that owns nothing: all that it needs, and its evaluation."""
    evaluation = costs.evaluation_prices(len(costs.features))
    return np.array(list(costs.marginal().values())) + evaluation


def signs(y: np.ndarray, classes: np.ndarray) -> Floats:
    """±1 for each class against the rest, row × class; for two classes one column, +1 for the second."""
    against = classes[1:] if len(classes) == 2 else classes
    return np.where(y[:, None] == against, 1.0, -1.0)


def log_odds(targets: Floats, weights: Floats) -> Floats:
    """The log-odds of each output's +1 when nothing is known, softened as Platt's are."""
    positive = weights @ (targets > 0)
    return np.log((positive + 1.0) / (weights.sum() - positive + 1.0))


def log_shares(targets: Floats, weights: Floats) -> Floats:
    """The logarithm of each class's share, softened in the same way."""
    counts = weights @ (targets > 0)
    return np.log((counts + 1.0) / (weights.sum() + len(counts)))


def calibrated(scores: Floats, targets: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Platt's scale and offset of each output."""
    pairs = [platt(scores[:, k], targets[:, k] > 0, weights) for k in range(scores.shape[1])]
    return np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])
