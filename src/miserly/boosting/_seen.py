"""Whether a boosted model was trained on some rows: its late trees tell.

A round of boosting fits what is left to explain of its training rows. So on these rows a tree that says v meets a
residual of v / learning rate in the mean, in the last rounds as in the first. On rows that the model has not seen, late
rounds fit noise that is not there: the same quotient falls, often to zero or below. The quotient of each round is its
slope, Σ g v / Σ h v², with the gradients and second derivatives of the loss before the round; no learning rate and no
reference rows are needed.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from miserly._typing import Array, Floats
from miserly.boosting._ranking import LambdaRankLoss
from miserly.plan import Plan, Trees, as_matrix

LEAST_ROUNDS = 10  # fewer have no late ones
STEADY = 0.8  # of 36 models, rows that were seen gave at least 0.82, others less, unless nothing was overfitted
MOST_ROWS = 20_000  # slopes of so many rows vary by less than a hundredth


class SeenRowsWarning(UserWarning):
    """Rows that should be new to an imported model look as if it was trained on them.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", SeenRowsWarning)  # stop instead
    >>> warnings.simplefilter("default", SeenRowsWarning)
    """


@dataclass(frozen=True)
class SeenRows:
    """How the rounds of a boosted model fare on some rows.

    Parameters
    ----------
    early : float
        The median slope of the first fifth of the rounds (of rankers, of the second fifth).
    late : float
        The same of the last fifth.

    Attributes
    ----------
    steadiness : float
        The late slope as a share of the early one.
    seen : bool
        Whether the rows look as if the model was trained on them.

    Examples
    --------
    >>> SeenRows(early=10.0, late=0.4).seen
    False
    """

    early: float
    late: float

    @property
    def steadiness(self) -> float:
        return self.late / self.early if self.early > 0 else 0.0

    @property
    def seen(self) -> bool:
        return self.steadiness >= STEADY


def seen_rows(plan: Plan, X: Any, y: Any, qid: Any = None) -> SeenRows | None:
    """Tell whether an imported model was trained on these rows, from how its late rounds fare on them.

    Validation on rows that a model has seen promises too much. A model that has not overfitted fares the same on new
    rows; then it is taken for seen, and validation on the rows would not have misled.

    Parameters
    ----------
    plan : Plan
        What `import_plan` made of a boosted model.
    X : array or frame, rows × features
        The rows.
    y : array
        Their labels, grades or numbers.
    qid : array, default=None
        The query of each row; for rankers.

    Returns
    -------
    SeenRows or None
        None where it cannot be said: forests, linear models, fewer than ten rounds, or another loss.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> from miserly import CostTable, import_plan
    >>> rng = np.random.default_rng(0)
    >>> X, new = rng.normal(size=(2, 300, 4))
    >>> y, later = X[:, 0] + rng.normal(size=300), new[:, 0] + rng.normal(size=300)
    >>> plan = import_plan(GradientBoostingRegressor(random_state=0).fit(X, y), CostTable.per_feature(np.ones(4)))
    >>> seen_rows(plan, X, y).seen, seen_rows(plan, new, later).seen
    (True, False)
    """
    rounds = [plan.nodes[k] for k in plan.tables.chain]
    is_boosted = isinstance(plan.dictionary, Trees) and len(rounds) >= LEAST_ROUNDS
    y = np.asarray(y)
    if not is_boosted or plan.link not in ("identity", "logistic", "softmax", "exp") or not len(y):
        return None
    if (qid is None and plan.notes.get("task") == "ranking") or (qid is not None and plan.link != "identity"):
        return None
    if plan.classes is not None and not np.isin(y, plan.classes).all():
        return None
    matrix = as_matrix(X, plan.costs.features, plan.costs.named, plan.schema)
    loss = None
    if qid is not None:
        order = np.argsort(np.asarray(qid), kind="stable")
        matrix, y, loss = matrix[order], y[order].astype(float), LambdaRankLoss(np.asarray(qid)[order])
    elif len(matrix) > MOST_ROWS:
        kept = np.random.default_rng(0).choice(len(matrix), MOST_ROWS, replace=False)
        matrix, y = matrix[kept], y[kept]
    slopes = _slopes(plan, rounds, matrix, _targets(plan, y), loss)
    part = max(1, len(slopes) // 5)
    first = part if loss is not None else 0  # a ranker's first pairs are far from the order that they make
    if not np.isfinite(slopes[first : first + part]).any() or not np.isfinite(slopes[-part:]).any():
        return None
    return SeenRows(float(np.nanmedian(slopes[first : first + part])), float(np.nanmedian(slopes[-part:])))


def warn_of_seen_rows(plan: Plan, X: Any, y: Any, what: str, qid: Any = None) -> None:
    """Warn if an imported model looks as if it was trained on rows that are used as `what`."""
    if plan.notes.get("estimator") != "imported":
        return
    found = seen_rows(plan, X, y, qid)
    if found is not None and found.seen:
        warnings.warn(
            f"The imported model looks as if it was trained on the {what}: its last rounds explain them as well as its "
            f"first ({found.steadiness:.0%}). What is fitted or chosen on them promises too much. Give rows that it has"
            " not seen.",
            SeenRowsWarning,
            stacklevel=3,
        )


def _targets(plan: Plan, y: Array) -> Floats:
    """Labels as the columns that the scores are compared with."""
    if plan.classes is None:
        return y.astype(float)[:, None]
    found = np.equal.outer(y, plan.classes).astype(float)
    return found[:, 1:] if plan.n_outputs == 1 else found


def _slopes(plan: Plan, rounds: list[Any], X: Array, target: Floats, loss: LambdaRankLoss | None) -> Floats:
    """The slope of each round; NaN where a round says nothing."""
    trees = plan.dictionary
    score = np.tile(plan.prior, (len(X), 1))
    slopes = np.full(len(rounds), np.nan)
    for number, node in enumerate(rounds):
        if node.combine == "replace":
            score[:, list(node.outputs)] = 0.0
        score[:, list(node.outputs)] += node.bias
        step = np.zeros_like(score)
        values = np.column_stack([trees.evaluate(X, int(t)) for t in node.learners])  # type: ignore[attr-defined]
        step[:, list(node.outputs)] = values @ node.weights
        gradient, hessian = _derivatives(plan, score, target, loss)
        weight = float((hessian * step * step).sum())
        if weight > 0.0:
            slopes[number] = float((gradient * step).sum()) / weight
        score += step
    return slopes


def _derivatives(plan: Plan, score: Floats, target: Floats, loss: LambdaRankLoss | None) -> tuple[Floats, Floats]:
    """The negative gradient and the second derivative of the loss in each score."""
    if loss is not None:
        gradient, hessian = loss.gradients(target[:, 0], np.ascontiguousarray(score.T))
        return gradient.T, hessian.T
    if plan.link == "identity":
        return target - score, np.ones_like(score)
    if plan.link == "exp":
        mean = np.exp(score)
        return target - mean, mean
    scale = plan.nodes[0].scale
    p = plan.probabilities(np.ascontiguousarray(score if scale is None else score * scale))
    p = p[:, 1:] if plan.n_outputs == 1 else p
    return target - p, p * (1.0 - p)
