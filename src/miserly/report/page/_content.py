"""What the page shows, as plain data: every figure is made here, by the plans, the ledger and the metrics.

A *stop* is a model that the slider can stand at: one on its method's front, the chosen and the cost-blind one. What all
stops share, and their figures, are one part; the details of each stop are parts of their own, read when it is shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from miserly import __version__
from miserly.costs import CostTable
from miserly.frontiers import Frontier, Point, figure
from miserly.metrics import Metric
from miserly.plan import Plan
from miserly.report._graph import everything, names
from miserly.report._intervals import half_width, parts_left, replicates
from miserly.report._observed import LabelledRows, Observed
from miserly.report._runs import SavedRun
from miserly.report.figures import Tier, price_tiers
from miserly.report.page._agreement import check_point, check_runs, spelled
from miserly.report.page._details import details
from miserly.report.page._groups import Group, named_groups
from miserly.report.page._trust import confusion, spent
from miserly.report.page._walks import choose_rows
from miserly.schema import Schema

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class SliderStop:
    """A model that can be looked at: its method's number, its point, what it did to the rows."""

    method: int
    point: Point
    seen: Observed
    replicates: np.ndarray

    @property
    def plan(self) -> Plan:
        """What it runs."""
        return self.seen.plan

    @property
    def cost(self) -> float:
        """The mean cost of a validation row."""
        return self.point.validation.cost["mean"]


@dataclass(frozen=True, eq=False)
class Content:
    """The content of a page about one or several runs on the same rows."""

    runs: Sequence[SavedRun]
    title: str
    progress: Progress = field(default=lambda done, of: None)
    columns: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_runs(self.runs)

    @property
    def metric(self) -> Metric:
        """What all models are measured by."""
        return self.runs[0].front.metric

    @cached_property
    def rows(self) -> LabelledRows:
        """What all models are measured on; a run on disk knows only the columns that its own models look at."""
        first = self.runs[0].rows
        X = first.X.copy()
        for run in self.runs[1:]:
            unknown = np.isnan(X).all(axis=0)
            X[:, unknown] = run.rows.X[:, unknown]
        return LabelledRows(X, first.y, first.qid)

    @cached_property
    def stops(self) -> list[SliderStop]:
        """Models of the fronts, the chosen and the cost-blind ones; by method, cheapest first."""
        extra = [run.chosen for run in self.runs] + [self.blind]
        wanted = []
        for method, run in enumerate(self.runs):
            on_front = {id(p) for p in (*run.front.pareto(), *extra) if p is not None}
            points = [p for p in run.front.candidates if id(p) in on_front]
            wanted += [(method, p) for p in sorted(points, key=lambda p: p.validation.cost["mean"])]
        parts = parts_left(self.rows)
        stops = []
        for done, (method, point) in enumerate(wanted):
            self.progress(done, 2 * len(wanted))
            seen = Observed.of(point.model.plan_, self.rows)
            check_point(point, seen, self.metric)
            stops.append(SliderStop(method, point, seen, replicates(seen, self.metric, parts)))
        return stops

    @cached_property
    def blind(self) -> Point:
        """The model that ignores prices (a tradeoff of zero); without one, the most expensive of all."""
        points = [p for run in self.runs for p in run.front.candidates]
        blind = [p for p in points if p.params.get("tradeoff") == 0]
        return blind[0] if blind else max(points, key=lambda p: p.validation.cost["mean"])

    @cached_property
    def constant(self) -> float | None:
        """The quality of the free constant prediction: the prior of the cost-blind plan, the same for every row."""
        plan, rows, metric = self.blind.model.plan_, self.rows, self.metric
        z = np.tile(np.asarray(plan.prior, float), (len(rows), 1))
        if metric.input == "proba":
            output = plan.probabilities(z)
        elif metric.input == "score":
            output = z[:, 0] if z.shape[1] == 1 else z
        else:
            output = plan.read(z)
        try:
            value = metric(rows.y, output, qid=rows.qid, classes=plan.classes)
        except ValueError:
            return None
        return None if math.isnan(value) else float(value)

    @property
    def blind_name(self) -> str:
        """What to call it."""
        return "cost-blind model" if self.blind.params.get("tradeoff") == 0 else "most expensive model"

    @cached_property
    def prices(self) -> dict[str, float]:
        """All that can be bought, of all plans."""
        return {a: p for stop in self.stops for a, p in stop.plan.costs.prices.items()}

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each acquisition on this page."""
        return {name: i for i, name in enumerate(self.prices)}

    @cached_property
    def tiers(self) -> list[Tier]:
        """All acquisitions by their price."""
        return price_tiers(CostTable.per_feature(self.prices))

    @cached_property
    def groups(self) -> dict[str, Group]:
        """The rows of the groups that the user named."""
        return named_groups(self.columns, self.rows)

    @cached_property
    def walked(self) -> np.ndarray:
        """The rows that can be walked."""
        return choose_rows([stop.seen for stop in self.stops])

    def main(self) -> dict[str, Any]:
        """What all stops share, and the figures of each."""
        classes = self.stops[0].plan.classes
        return {
            "title": self.title,
            "version": __version__,
            "unit": self.runs[0].front.unit,
            "metric": {"name": self.metric.name, "greater": self.metric.greater_is_better},
            "rows": len(self.rows),
            "byQuery": self.rows.qid is not None,
            "queries": None if self.rows.qid is None else len(np.unique(self.rows.qid)),
            "classes": None if classes is None else [str(c) for c in classes],
            "outcome": self.schema and self.schema.label,
            "labels": self._label_range(),
            "acquisitions": [{"name": name, "price": price} for name, price in self.prices.items()],
            "tiers": [[t.label, t.members.bit_count()] for t in self.tiers],
            "methods": [self._method(number, run.front) for number, run in enumerate(self.runs)],
            "stops": [self._stop(stop) for stop in self.stops],
            "paths": self._paths,
            "chosen": next((self._number(run.chosen) for run in self.runs if run.chosen is not None), None),
            "blind": self._number(self.blind),
            "blindName": self.blind_name,
            "constant": self.constant,
            "features": self._features(),
            "walked": [self._row(int(i)) for i in self.walked],
        }

    def details(self) -> list[dict[str, Any]]:
        """The details of each stop, in their order."""
        found = []
        for done, stop in enumerate(self.stops):
            self.progress(len(self.stops) + done, 2 * len(self.stops))
            found.append(details(stop.seen, self.metric, self.numbers, self.walked, self.groups))
            found[-1]["gains"] = self._gains(done)
        self.progress(2 * len(self.stops), 2 * len(self.stops))
        return found

    def _gains(self, number: int) -> list[list[float | None]]:
        """The models that cost more on the slider's paths: by how much each is better than this one, and half of the
        interval of the difference."""
        here, sign = self.stops[number], 1.0 if self.metric.greater_is_better else -1.0
        ways = {j for way in self._paths for j in way["stops"] if number in way["stops"]}
        found: list[list[float | None]] = []
        for j in sorted(ways, key=lambda j: self.stops[j].cost):
            other = self.stops[j]
            if other.cost > here.cost:
                gain = sign * (other.point.validation.quality - here.point.validation.quality)
                found.append([j, gain, _or_none(half_width(other.replicates - here.replicates))])
        return found

    # ---- the parts of `main` ----------------------------------------------------------------------------------

    def _number(self, point: Point | None) -> int | None:
        return next((i for i, stop in enumerate(self.stops) if stop.point is point), None)

    @cached_property
    def schema(self) -> Schema | None:
        """How the table is written; the free constant alone does not know it."""
        return next((stop.plan.schema for stop in self.stops if stop.plan.schema is not None), None)

    def _label_range(self) -> list[float] | None:
        """Between which labels colours are spread, where labels are numbers."""
        if self.stops[0].plan.classes is not None:
            return None
        return [float(v) for v in np.quantile(self.rows.y, [0.05, 0.95])]

    def _method(self, number: int, front: Frontier) -> dict[str, Any]:
        on_front = {id(p) for p in front.pareto()}
        return {
            "name": front.name,
            "complete": front.complete,
            "points": [
                {
                    "params": spelled(p),
                    "cost": p.validation.cost["mean"],
                    "p95": p.validation.cost["p95"],
                    "quality": p.validation.quality,
                    "test": None if p.test is None else [p.test.quality, p.test.cost["mean"]],
                    "seconds": p.seconds,
                    "front": id(p) in on_front,
                    "stop": self._number(p),
                }
                for p in front.candidates
            ],
        }

    def _stop(self, stop: SliderStop) -> dict[str, Any]:
        blind = self.stops[self._number(self.blind) or 0]
        measured, test = stop.point.validation, stop.point.test
        bought = sorted(self.numbers[name] for name in names(stop.plan, everything(stop.plan)))
        sign = 1.0 if self.metric.greater_is_better else -1.0
        return {
            "method": stop.method,
            "params": spelled(stop.point),
            "cost": dict(measured.cost),
            "quality": measured.quality,
            "half": _or_none(half_width(stop.replicates)),
            "test": None if test is None else {"quality": test.quality, "cost": test.cost["mean"]},
            "lost": sign * (blind.point.validation.quality - measured.quality),
            "lostHalf": _or_none(half_width(blind.replicates - stop.replicates)),
            "times": blind.cost / stop.cost if stop.cost else None,
            "bought": bought,
            "tiers": [sum(t.members >> a & 1 for a in bought) for t in self.tiers],
            "confusion": confusion(stop.seen),
            "spent": spent(stop.seen),
            "verdict": self._verdict(stop, blind),
        }

    def _verdict(self, stop: SliderStop, blind: SliderStop) -> str:
        """The stop in two sentences, quality first; what counts stands between stars."""
        unit, name = self.runs[0].front.unit, self.metric.name
        half = half_width(stop.replicates)
        doubt = "" if math.isnan(half) else f" ± {figure(float(f'{half:.2g}'))}"
        has = f"{name} **{figure(stop.point.validation.quality)}{doubt}** for **{figure(stop.cost)} {unit}** a row"
        if stop is blind:
            return f"The {self.blind_name}: {has}.{self._over_constant(stop)}"
        times = blind.cost / stop.cost if stop.cost else math.inf
        if not stop.cost:
            ratio = "costs nothing"
        elif f"{max(times, 1 / times):.1f}" == "1.0":
            ratio = "costs about the same"
        else:
            ratio = (
                f"is **{times:.1f} times cheaper**" if times >= 1 else f"is **{1 / times:.1f} times more expensive**"
            )
        beside = f"the {self.blind_name} ({figure(blind.point.validation.quality)} for {figure(blind.cost)})"
        return f"{has[0].upper()}{has[1:]}. {self._against(stop, blind)} {beside}, and {ratio}."

    def _over_constant(self, stop: SliderStop) -> str:
        """How far the reference is from a prediction that looks at nothing."""
        return "" if self.constant is None else f" A constant prediction, free, has {figure(self.constant)}."

    def _against(self, stop: SliderStop, blind: SliderStop) -> str:
        """How the quality compares with the reference: a significant loss is said, not hidden."""
        sign = 1.0 if self.metric.greater_is_better else -1.0
        lost = sign * (blind.point.validation.quality - stop.point.validation.quality)
        half = half_width(blind.replicates - stop.replicates)
        size = figure(float(f"{abs(lost):.2g}"))
        if math.isnan(half):
            return f"It is {size} {'worse' if lost > 0 else 'better'} than" if lost else "It is as good as"
        spread = f"{size} ± {figure(float(f'{half:.2g}'))}"
        if abs(lost) <= half:
            return f"It differs by {spread}, within the noise of these rows, from"
        return f"It **loses {spread}** against" if lost > 0 else f"It gains {spread} over"

    @cached_property
    def _paths(self) -> list[dict[str, Any]]:
        """Ways for the slider: the best of all methods, then each method alone."""
        paths = []
        chosen = {id(run.chosen) for run in self.runs if run.chosen is not None}
        for number, run in enumerate(self.runs):
            on_front = {id(p) for p in run.front.pareto()} | chosen
            mine = [i for i, s in enumerate(self.stops) if s.method == number and id(s.point) in on_front]
            paths.append({"name": run.front.name, "stops": mine})
        if len(self.runs) > 1:
            points = tuple(p for run in self.runs for p in run.front.candidates)
            best = Frontier(points, self.metric, self.runs[0].front.unit).pareto()
            paths.insert(0, {"name": "Best of all", "stops": [self._number(p) for p in best]})
        return paths

    def _features(self) -> list[list[Any]]:
        """Features that some stop looks at, with the acquisitions that each needs."""
        return [[name, [self.numbers[a] for a in needs]] for name, needs, _ in self._used]

    @cached_property
    def _used(self) -> list[tuple[str, tuple[str, ...], int]]:
        found: dict[str, tuple[tuple[str, ...], int]] = {}
        for stop in self.stops:
            costs = stop.plan.costs
            found |= {costs.features[f]: (costs.needs[costs.features[f]], f) for f in stop.plan.used_features}
        return [(name, needs, column) for name, (needs, column) in found.items()]

    def _row(self, number: int) -> dict[str, Any]:
        label, query = self.rows.y[number], self.rows.qid
        return {
            "row": number,
            "label": figure(float(label)) if self.rows.y.dtype.kind == "f" else str(label),
            "query": None if query is None else str(query[number]),
            "values": [_value(float(self.rows.X[number, column]), name, self.schema) for name, _, column in self._used],
        }


def _value(value: float, name: str, schema: Schema | None) -> Any:
    if math.isnan(value):
        return None
    if schema is not None and schema[name].kind != "number":
        return str(schema.word(name, value))
    return float(f"{value:.4g}")


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
