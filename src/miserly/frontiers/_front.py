"""The points of a sweep, and what a user asks of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from miserly import _display
from miserly.frontiers._totals import PredictedRows, TotalCost, costs_of_mistakes, deciding, total_cost
from miserly.metrics import Metric
from miserly.plan import Menu, draw
from miserly.solvers import effective_number, weighted_mean

STATISTICS = ("mean", "median", "p95", "p99", "max")
NOT_IN_TABLE = ("pareto", "median_cost", "p99_cost")


@dataclass(frozen=True)
class Measured:
    """Quality and cost per row on one data set; where purchases were logged, the effective number of rows that say
    so."""

    quality: float
    cost: Mapping[str, float]
    rows: float | None = None

    @classmethod
    def of(cls, quality: float, costs: np.ndarray, weights: np.ndarray | None = None) -> Measured:
        """Summarise the costs of all rows; with weights, of those that count."""
        if weights is None:
            values = (np.mean(costs), *np.percentile(costs, [50, 95, 99]), np.max(costs))
            return cls(float(quality), {name: float(v) for name, v in zip(STATISTICS, values)})
        there = np.flatnonzero(weights)
        if not len(there):
            return cls(math.nan, dict.fromkeys(STATISTICS, math.nan), 0.0)
        paid, counted = costs[there], weights[there]
        rising = np.argsort(paid, kind="stable")
        share = np.cumsum(counted[rising]) / counted.sum()
        last = len(there) - 1
        at = [paid[rising[min(last, int(np.searchsorted(share, q)))]] for q in (0.5, 0.95, 0.99)]
        figures = (weighted_mean(paid, counted), *at, paid.max())
        cost = {name: float(v) for name, v in zip(STATISTICS, figures)}
        return cls(float(quality), cost, effective_number(counted))

    def record(self) -> dict[str, Any]:
        """As plain data, for files; `Measured(**record)` gives it back."""
        rows = {} if self.rows is None else {"rows": self.rows}
        return {"quality": self.quality, "cost": dict(self.cost), **rows}


@dataclass(frozen=True)
class Point:
    """One fitted model of a sweep; after cross-validation of a classifier with what it says of rows that its fits have
    not seen."""

    params: Mapping[str, Any]
    model: Any
    validation: Measured
    test: Measured | None
    seconds: float
    out_of_fold: PredictedRows | None = field(default=None, compare=False, repr=False)

    def on(self, part: str) -> Measured:
        """What was measured on "validation" or "test" data."""
        if part not in ("validation", "test"):
            raise ValueError(f"A point is measured on 'validation' or 'test', not on {part!r}.")
        measured = self.validation if part == "validation" else self.test
        if measured is None:
            raise ValueError("This frontier has no test data: give test=(X, y) to frontier().")
        return measured


@dataclass(frozen=True)
class Frontier:
    """All points of a sweep, in the order of the grid.

    Parameters
    ----------
    points : tuple of Point
        Models with what was measured.
    metric : Metric
        What their quality is measured by.
    unit : str
        The unit of their costs.
    name : str, default=""
        What figures call it.
    complete : bool, default=True
        False if the sweep was interrupted.
    offer : callable, default=None
        Makes the menu of these models.
    held_out : callable, default=None
        Gives, for the number of a point, its probabilities, the numbers of the true classes and the costs of rows that
        it was not fitted on.
    baseline : Point or None, default=None
        The free constant prediction, where it is not among the points. It is what `choose` gives if nothing fits the
        budget, or if nothing that fits is better.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = ms.GreedyMiserRegressor(ms.CostTable.per_feature([1.0, 5.0]), n_estimators=5)
    >>> front = ms.frontier(model, (X, X[:, 0]), (X, X[:, 0]), grid={"tradeoff": [0.0, 0.1]})
    >>> front.choose_point(budget=2).validation.cost["mean"] <= 2
    True
    """

    points: tuple[Point, ...]
    metric: Metric
    unit: str
    name: str = ""
    complete: bool = True
    offer: Callable[[], Menu] | None = field(default=None, compare=False, repr=False)
    held_out: Callable[[int], PredictedRows] | None = field(default=None, compare=False, repr=False)
    baseline: Point | None = field(default=None, compare=False, repr=False)

    @property
    def candidates(self) -> tuple[Point, ...]:
        """What can be chosen: the points, and the free constant."""
        return self.points if self.baseline is None else (self.baseline, *self.points)

    def menu(self) -> Menu:
        """All models of the front in one thing that answers under any budget, and can be saved and served."""
        if self.offer is None:
            raise ValueError("This frontier has no validation rows to measure a menu on. Use one that was just fitted.")
        return self.offer()

    def __or__(self, other: Frontier) -> Frontier:
        """The points of two sweeps of the same data as one frontier; each point says the name of its sweep."""
        if not isinstance(other, Frontier):
            return NotImplemented
        if (self.metric.name, self.unit) != (other.metric.name, other.unit):
            raise ValueError(
                f"One frontier has {self.metric.name} and {self.unit}, the other {other.metric.name} and {other.unit}. "
                "Sweep both with the same metric and prices."
            )
        points = [
            replace(point, params={"model": front.name, **point.params})
            for front in (self, other)
            for point in front.points
        ]
        names = f"{self.name} | {other.name}"
        complete = self.complete and other.complete
        baseline = self.baseline or other.baseline
        return Frontier(tuple(points), self.metric, self.unit, names, complete, baseline=baseline)

    def pareto(self, statistic: str = "mean") -> list[Point]:
        """Points that no other point beats in both cost and quality on validation, cheapest first; the free constant is
        one of them."""
        front: list[Point] = []
        for point in sorted(self.candidates, key=lambda p: (_cost(p, statistic), -self._worth(p))):
            if not front or self._worth(point) > self._worth(front[-1]):
                front.append(point)
        return front

    def choose(
        self,
        budget: float | None = None,
        quality: float | None = None,
        statistic: str = "mean",
        error_costs: Any = None,
    ) -> Any:
        """The best fitted model within a budget, the cheapest that reaches a quality, or the one with the least total
        of tests and mistakes (all on validation rows).

        A model is given only if it is better than the free constant; where no other fits the budget, the constant is
        given itself.

        Parameters
        ----------
        budget : float or None, default=None
            The most that `statistic` of the cost may be.
        quality : float or None, default=None
            The quality to reach.
        statistic : {"mean", "median", "p95", "p99", "max"}, default="mean"
            Of the costs of rows.
        error_costs : array-like of shape (n_classes, n_classes) or (n_rows, n_classes), or None, default=None
            What predictions cost, in the unit of the prices, 0 or more: rows are true classes, columns predictions; or
            a line for each row that points were measured on. The model that is returned predicts the class with the
            least expected cost. With a budget, the least total within it.
        """
        point = self.choose_point(budget, quality, statistic, error_costs)
        if error_costs is None:
            return point.model
        assert self.held_out is not None  # the totals were counted on it
        return deciding(point.model, costs_of_mistakes(self.held_out(0), error_costs)[0])

    def choose_point(
        self,
        budget: float | None = None,
        quality: float | None = None,
        statistic: str = "mean",
        error_costs: Any = None,
    ) -> Point:
        """The point behind `choose`; arguments as there."""
        if error_costs is not None:
            if quality is not None:
                raise ValueError("error_costs say what a mistake costs: give no quality to reach beside them.")
            return self._least_total(error_costs, math.inf if budget is None else float(budget), statistic)
        if (budget is None) == (quality is None):
            raise ValueError("Give choose() either a budget or a quality to reach, or error_costs.")
        if budget is not None:
            if math.isnan(budget):
                raise ValueError("The budget is not a number.")
            within = [p for p in self.candidates if _cost(p, statistic) <= budget]
            if not within:
                return min(self.candidates, key=lambda p: (_cost(p, statistic), -self._worth(p)))
            return max(within, key=lambda p: (self._worth(p), -_cost(p, statistic)))
        sign = 1.0 if self.metric.greater_is_better else -1.0
        good = [p for p in self.candidates if self._worth(p) >= sign * float(quality or 0.0)]
        if not good:
            best = max(self.candidates, key=self._worth).validation.quality
            raise ValueError(f"No model reaches {self.metric.name} {quality:g}; the best has {best:.4g}.")
        return min(good, key=lambda p: (_cost(p, statistic), -self._worth(p)))

    def _least_total(self, error_costs: Any, budget: float, statistic: str) -> Point:
        """The point with the least total of tests and mistakes within a budget."""
        pairs = list(zip(self.points, self.totals(error_costs)))
        within = [pair for pair in pairs if _cost(pair[0], statistic) <= budget]
        within = within or [min(pairs, key=lambda pair: _cost(pair[0], statistic))]
        return min(within, key=lambda pair: (pair[1].for_choice, pair[1].tests))[0]

    def totals(self, error_costs: Any) -> list[TotalCost]:
        """What tests and mistakes cost per row for each point, in the order of `points`, with the rates of two classes.

        Parameters
        ----------
        error_costs : array-like of shape (n_classes, n_classes) or (n_rows, n_classes)
            As in `choose`.
        """
        if self.held_out is None:
            raise ValueError(
                "error_costs are counted on validation rows, with probabilities: this frontier has none. Use one of "
                "classifiers that was just fitted."
            )
        return [total_cost(self.held_out(k), error_costs) for k in range(len(self.points))]

    def area(self, low: float | None = None, high: float | None = None, on: str = "validation") -> float:
        """Mean quality over the logarithm of the budget, from `low` to `high`: the best point within each budget.

        Points are chosen on validation and read on `on` ("validation" or "test"). Where all points of the front cost
        the same, or nothing, it is the quality of the best of them.
        """
        front = self.pareto()
        costs = [_cost(p, "mean") for p in front]
        is_given = low is not None or high is not None
        low = min((c for c in costs if c > 0), default=1.0) if low is None else low
        high = max(*costs, 0.0) or low if high is None else high
        if (is_given or low > high) and not 0 < low < high:
            raise ValueError(f"area goes from a budget above 0 to a larger one, got {low:g} to {high:g}.")
        if low == high:
            return front[-1].on(on).quality
        area = 0.0
        for i, point in enumerate(front):
            first = max(low, costs[i]) if i else low
            last = min(high, costs[i + 1]) if i + 1 < len(front) else high
            if last > first:
                area += point.on(on).quality * math.log(last / first)
        return area / math.log(high / low)

    def frame(self) -> Any:
        """The points as a pandas data frame, a row each; see `records` for the columns."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("A data frame needs pandas: pip install pandas. Or use records().") from None
        return pd.DataFrame(self.records())

    def records(self) -> list[dict[str, Any]]:
        """The points as plain records: parameters, quality, costs, whether on the front, seconds. The first may be the
        free constant.

        A parameter that has the name of another column, as `max_cost`, is called `param_max_cost`.
        """
        on_front = {id(p) for p in self.pareto()}
        taken = {self.metric.name, f"test_{self.metric.name}", "test_mean_cost", "pareto", "seconds"}
        taken |= {"effective_rows", *(f"{name}_cost" for name in STATISTICS)}
        rows = []
        for point in self.candidates:
            row = {(f"param_{name}" if name in taken else name): value for name, value in point.params.items()}
            row[self.metric.name] = point.validation.quality
            row |= {f"{name}_cost": value for name, value in point.validation.cost.items()}
            if point.validation.rows is not None:
                row["effective_rows"] = point.validation.rows
            if point.test is not None:
                row |= {f"test_{self.metric.name}": point.test.quality, "test_mean_cost": point.test.cost["mean"]}
            rows.append({**row, "pareto": id(point) in on_front, "seconds": point.seconds})
        return rows

    def table(self) -> str:
        """The points as text, a star at those on the Pareto front."""
        rows = self.records()
        columns = [c for c in dict.fromkeys(c for row in rows for c in row) if c not in NOT_IN_TABLE]
        lines = [[*columns, ""]]
        lines += [
            [*(figure(row[c]) if c in row else "" for c in columns), "*" if row["pareto"] else ""] for row in rows
        ]
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)

    def __repr__(self) -> str:
        front = self.pareto()
        costs = [figure(_cost(p, "mean")) for p in front]
        between = f", mean costs {costs[0]} to {costs[-1]} {self.unit}" if front else ""
        return f"<Frontier {self.name!r}: {len(self.points)} models, {len(front)} on the front{between}>"

    def _repr_html_(self) -> str:
        front = [(_cost(p, "mean"), p.validation.quality) for p in self.pareto()]
        hidden = {*NOT_IN_TABLE, "seconds"} - {"pareto"}
        rows = [{k: v for k, v in row.items() if k not in hidden} for row in self.records()]
        return _display.steps(front, f"{self.metric.name} against mean cost") + _display.table(rows, repr(self)[1:-1])

    def plot(
        self, path: str | Path | None = None, ax: Any = None, interactive: bool | None = None, **options: Any
    ) -> Any:
        """Draw quality against cost; with a path, write the picture there.

        Parameters
        ----------
        path : str, Path or None, default=None
            Where to write; the end of the name says how (.png, .svg, .pdf).
        ax : matplotlib Axes or None, default=None
            Where to draw.
        interactive : bool or None, default=None
            A plotly figure, with the settings of each model under the pointer; None: if plotly is installed, and
            neither a path nor an axis is given.
        **options
            As in `report.plot_frontier`.
        """
        if interactive is None:
            interactive = path is None and ax is None and find_spec("plotly") is not None
        if interactive:
            return draw("frontier_interactive", [self], **options)
        return draw("frontier", [self], path=path, ax=ax, **options)

    def _worth(self, point: Point) -> float:
        return point.validation.quality if self.metric.greater_is_better else -point.validation.quality


def figure(value: Any) -> str:
    """A number as people read it: four digits, large ones whole."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"


def _cost(point: Point, statistic: str) -> float:
    if statistic not in point.validation.cost:
        raise ValueError(f"statistic is one of {', '.join(STATISTICS)}, got {statistic!r}.")
    return point.validation.cost[statistic]
