"""What each acquisition is worth: the quality that is lost when a model is learned again without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from sklearn.base import clone, is_classifier

from miserly.costs import CostTable
from miserly.metrics import Metric, get_metric
from miserly.plan import as_matrix
from miserly.report._intervals import half_width, parts_left, replicates
from miserly.report._observed import LabelledRows, Observed
from miserly.report.figures._style import COLOURS, FAINT, INK, Picture


class PurchaseValue(NamedTuple):
    """What one acquisition is worth.

    Parameters
    ----------
    acquisition : str
        Its name.
    price : float
        Its price.
    bought : float
        The share of rows that buy it.
    paid : float
        What a row pays for it on average.
    value : float
        The quality that is lost without it, above 0 if it helps.
    low, high : float
        The ends of the 95 % interval of `value`.
    rate : float
        `value` per unit that is paid for it; NaN if nothing is.
    cost_without : float
        Mean cost of a row by the model that was learned without it.

    Examples
    --------
    >>> from miserly.report import PurchaseValue
    >>> PurchaseValue("crp", 10.0, 0.5, 5.0, 0.1, 0.05, 0.15, 0.02, 3.0).is_sure
    True
    """

    acquisition: str
    price: float
    bought: float
    paid: float
    value: float
    low: float
    high: float
    rate: float
    cost_without: float

    @property
    def is_sure(self) -> bool:
        """Whether the interval of the value lies on one side of 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, eq=False)
class PurchaseValuesPicture(Picture):
    """The acquisitions of a model as bars with 95 % intervals, the best value per price first.

    `purchase_values` makes one.

    Parameters
    ----------
    values : sequence of PurchaseValue
        What each is worth.
    metric : Metric
        What quality is measured by.
    unit : str
        The unit of the prices.
    quality, cost : float
        Quality and mean cost of the model with all of them.

    Examples
    --------
    >>> from miserly.metrics import get_metric
    >>> from miserly.report import PurchaseValue, PurchaseValuesPicture
    >>> crp = PurchaseValue("crp", 10.0, 0.5, 5.0, 0.1, 0.05, 0.15, 0.02, 3.0)
    >>> PurchaseValuesPicture([crp], get_metric("accuracy"), "usd", 0.9, 8.0).frame()[0]["value"]
    0.1
    """

    values: Sequence[PurchaseValue]
    metric: Metric
    unit: str
    quality: float
    cost: float

    def frame(self) -> list[dict[str, Any]]:
        """One record for each acquisition."""
        return [value._asdict() for value in self.values]

    def draw(self, ax: Axes) -> None:
        for i, one in enumerate(self.values):
            ax.barh(-i, one.value, color=COLOURS[0] if one.is_sure else FAINT, height=0.6)
            ax.plot([one.low, one.high], [-i, -i], color=INK, linewidth=1.2)
        names = [f"{one.acquisition}\n{one.paid:.3g} {self.unit} per row" for one in self.values]
        ax.set_yticks([-i for i in range(len(names))], names, fontsize=8)
        ax.axvline(0.0, color=INK, linewidth=0.8)
        ax.set_xlabel(f"{self.metric.name} that is lost without it (95 % interval)")
        ax.grid(axis="x", alpha=0.3)


def purchase_values(
    model: Any, train: Sequence[Any], test: Sequence[Any], metric: str | Metric | None = None
) -> PurchaseValuesPicture:
    """Learn a model again without each acquisition, and measure what is lost.

    Parameters
    ----------
    model : estimator
        With `costs`; it is copied and fitted, so its own state does not matter.
    train : (X, y) or (X, y, qid)
        What it learns from.
    test : (X, y) or (X, y, qid)
        Other rows, on which it is measured.
    metric : str, Metric or None, default=None
        The quality; None is accuracy for classifiers, the mean squared error for others.

    Returns
    -------
    PurchaseValuesPicture
        The acquisitions that the model buys, best value per price first. Both models of a difference are measured on
        the same groups of rows, so the intervals are paired.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.report import purchase_values
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> model = ms.GreedyMiserRegressor(ms.CostTable.per_feature({"age": 1.0, "crp": 5.0}), n_estimators=10)
    >>> found = purchase_values(model, (X[:200], X[:200, 0]), (X[200:], X[200:, 0]))
    >>> found.values[0].acquisition, found.values[0].is_sure
    ('age', True)
    """
    chosen = get_metric(metric or ("accuracy" if is_classifier(model) else "mse"))
    names = _names(model.costs, train[0])
    costs = model.costs.bind(names)
    whole = _Fitted(model, costs, names, train, test)
    sign = 1.0 if chosen.greater_is_better else -1.0
    parts = parts_left(whole.seen.rows)
    quality, figures = whole.seen.quality(chosen), replicates(whole.seen, chosen, parts)
    found = whole.seen.plan.contributions(whole.seen.rows.X, whole.seen.rows.qid)
    values = []
    for a, name in enumerate(found.acquisitions):
        if not found.bought[:, a].any():
            continue
        left = [f for f in names if name not in costs.needs[f]]
        if left:
            other = _Fitted(model, costs.restrict(left), left, train, test).seen
            value = sign * (quality - other.quality(chosen))
            half, cost = half_width(sign * (figures - replicates(other, chosen, parts))), float(other.cost.mean())
        else:
            value = half = cost = float("nan")
        paid = float(found.paid[:, a].mean())
        rate = value / paid if paid else float("nan")
        bought = float(found.bought[:, a].mean())
        values.append(
            PurchaseValue(name, costs.prices[name], bought, paid, value, value - half, value + half, rate, cost)
        )
    values.sort(key=lambda one: (-np.nan_to_num(one.rate, nan=np.inf), -one.value))
    return PurchaseValuesPicture(values, chosen, costs.unit, quality, float(whole.seen.cost.mean()))


class _Fitted:
    """A copy of a model that was fitted on some of the columns, and what it did to the test rows."""

    def __init__(
        self, model: Any, costs: CostTable, names: Sequence[str], train: Sequence[Any], test: Sequence[Any]
    ) -> None:
        copy = clone(model).set_params(costs=costs)
        qid = {} if len(train) < 3 else {"qid": train[2]}
        copy.fit(_columns(train[0], model, names), train[1], **qid)
        plan = copy.plan_
        X = as_matrix(_columns(test[0], model, names), plan.costs.features, plan.costs.named, plan.schema)
        rows = LabelledRows(X, np.asarray(test[1]), None if len(test) < 3 else np.asarray(test[2]))
        self.seen = Observed.of(plan, rows)


def _names(costs: CostTable, X: Any) -> list[str]:
    if hasattr(X, "columns"):
        return [str(name) for name in X.columns]
    if costs.each is None:
        return list(costs.features)
    return [f"x{i}" for i in range(X.shape[1])]


def _columns(X: Any, model: Any, names: Sequence[str]) -> Any:
    """Some columns, by name in frames, by place otherwise."""
    if hasattr(X, "columns"):
        return X[list(names)]
    place = {name: i for i, name in enumerate(_names(model.costs, X))}
    return X[:, [place[name] for name in names]]
