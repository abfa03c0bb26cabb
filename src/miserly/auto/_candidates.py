"""Candidates for the frontier: what each is worth on rows that it was not fitted on, and how its plan is made."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from miserly._typing import Floats
from miserly.auto._assemble import assemble
from miserly.auto._labels import SoftLabels
from miserly.auto._policy import UNLIMITED, Decision, StageGraph, StagePolicy
from miserly.plan import Plan, Trees, stack_trees
from miserly.solvers import weighted_mean

LEAST_VALUES = 10  # distinct values of a column by which rows can be divided
STEP = 0.12  # in log cost, between mixtures
MOST_STEPS = 10
FEW_ROWS = 1000  # validation rows that are measured together with out-of-fold predictions


@dataclass(frozen=True)
class TriedPlan:
    """A plan that may stand on the frontier: its quality (higher is better), where each measured row ends, what it
    pays, how many it stands for (None: all alike), and the policy that it follows. `plan(True)` is the plan with the
    models of the first fold."""

    member: str
    quality: float
    costs: Floats
    ends: np.ndarray
    policy: StagePolicy | None
    plan: Callable[[bool], Plan]
    rate: float = math.nan
    weights: Floats | None = None

    @property
    def mean_cost(self) -> float:
        """Mean cost per row."""
        return weighted_mean(self.costs, self.weights)


class Scale:
    """Measures candidates: on the user's validation rows if there are any, otherwise on out-of-fold predictions. Few
    validation rows are measured together with out-of-fold predictions: alone they would choose by chance."""

    def __init__(self, graph: StageGraph) -> None:
        task = graph.task
        self.graph, self.task = graph, task
        out_of_fold = task.train.part(graph.rows)
        self.uses_held = task.held is not None
        self.uses_folds = task.held is None or (task.kind != "lists" and len(task.held) < FEW_ROWS and bool(task.folds))
        used = [rows for rows, on in ((out_of_fold, self.uses_folds), (task.held, self.uses_held)) if on and rows]
        self.rows = used[0] if len(used) == 1 else used[0].with_more(used[1])
        self.paid = graph.paid(self.rows)
        self._weights = graph.weights(self.rows)
        out, n_held = np.zeros(len(task.train), bool), 0 if task.held is None else len(task.held)
        out[graph.rows] = self.uses_folds
        self.counted = np.concatenate([out, np.full(n_held, self.uses_held)])  # of the training rows, then the held
        parts = [graph.stages[s] for s in graph.order]
        self.outputs = np.stack([self._joined(p.oof[graph.rows], p.held) for p in parts])
        for output, part in zip(self.outputs, parts):
            if not part.plan.nodes:  # a constant, of which each fold has its own, tells no rows apart
                output[:] = output.mean(axis=0)
        self.every = np.arange(len(self.rows))
        self._labels = None
        if self.uses_folds and task.folds and task.kind != "lists":
            teacher = self.outputs[graph.number[graph.teacher]]
            self._labels = SoftLabels(task, self.rows.y, teacher, self.rows.mistakes)

    def _joined(self, of_folds: np.ndarray, of_held: np.ndarray | None) -> np.ndarray:
        """What is known of the measured rows: first those of folds, then those of the user."""
        if of_held is None or not self.uses_held:
            return of_folds
        return np.concatenate([of_folds, of_held]) if self.uses_folds else of_held

    def weights(self, ends: np.ndarray) -> Floats | None:
        """How many rows each stands for that ends there, where purchases were logged; None: all alike."""
        return None if self._weights is None else self._weights[ends, self.every]

    def quality(self, ends: np.ndarray) -> float:
        """The metric (higher is better) if each row ends at the state of this number."""
        output, weights = self.outputs[ends, self.every], self.weights(ends)
        labels = None if weights is not None or (output == output[0]).all() else self._labels
        value = None if labels is None else labels.quality(output)
        value = self.task.quality(self.rows, output, weights) if value is None else value
        return value if math.isfinite(value) else -math.inf

    def add(self, output: Floats) -> np.ndarray:
        """Where rows end whose predictions are not those of stages."""
        self.outputs = np.concatenate([self.outputs, output[None]])
        return np.full(len(self.rows), len(self.outputs) - 1)

    def singles(self) -> list[TriedPlan]:
        """Each stage alone."""
        found = []
        for k, state in enumerate(self.graph.order):
            stage = self.graph.stages[state]
            ends = np.full(len(self.rows), k)
            member = "subset" if stage.plan.nodes else "constant"
            costs = self.rows.paid(stage.acquired, stage.plan.tables.most_expensive, stage.evaluations)
            policy = _straight_to(state, ends)
            plan = stage.model if self.task.max_rounds is None else self._plan_of([policy])  # the latter in one order
            weights = self.weights(ends)
            found.append(TriedPlan(member, self.quality(ends), costs, ends, policy, plan, weights=weights))
        return found

    def policies(self, policies: Sequence[StagePolicy]) -> list[TriedPlan]:
        """The policies of one sweep.

        Without validation rows quality is that of rules that have not seen the row, at what these spend; the plan has
        the mean of the rules, which spends a little more or less: quality is moved along the sweep as cost is.
        """
        ends = [self._joined(policy.end, policy.end_of_held) for policy in policies]
        spent = [self.paid[self._joined(p.end_of_all, p.end_of_held), self.every] for p in policies]
        measured = [self.quality(e) for e in ends]
        costs = [weighted_mean(self.paid[e, self.every], self.weights(e)) for e in ends]
        along = curve(costs, measured)
        weights = [self.weights(self._joined(p.end_of_all, p.end_of_held)) for p in policies]
        means = [weighted_mean(s, w) for s, w in zip(spent, weights)]
        qualities = [q + along(s) - along(c) for q, c, s in zip(measured, costs, means)]
        if float(np.max(self.task.costs.evaluation)) > 0:  # paid for every stage on the way, which prices leave out
            own = self.rows.prices
            spent = [self._plan_of([policy])(False).predict_cost(self.rows.X, prices=own) for policy in policies]
        return [
            TriedPlan("policy", q, s, e, policy, self._plan_of([policy]), policy.rate, w)
            for policy, q, s, e, w in zip(policies, qualities, spent, ends, weights)
        ]

    def _plan_of(self, policies: Sequence[StagePolicy], chooser: Trees | None = None) -> Callable[[bool], Plan]:
        return partial(assemble, self.graph, policies, chooser)

    def mixtures(self, candidates: Sequence[TriedPlan]) -> list[TriedPlan]:
        """Between neighbours on the hull of the frontier: some rows follow one, the others the other, divided by the
        value of a cheap column, which all rows buy. A share for every budget in between."""
        found = []
        for column in self._dividers():
            for first, second in _neighbours(candidates):
                found += self._between(first, second, column)
        return found

    def _dividers(self) -> list[int]:
        """The cheapest columns with enough values to divide rows by; no order is spent on it where orders are few."""
        costs, X = self.task.costs, self.rows.X
        names, masks = costs.features, costs.feature_masks
        marked = {f for features in costs.not_ordered.values() for f in features}
        offered = [f for f in range(X.shape[1]) if f not in marked and (self.task.max_rounds is None or not masks[f])]
        enough = [f for f in offered if len(np.unique(X[~np.isnan(X[:, f]), f])) >= LEAST_VALUES]
        ranked = sorted(enough, key=lambda f: (costs.price([names[f]]), -len(np.unique(X[:, f])), f))
        return ranked[:1]

    def _between(self, first: TriedPlan, second: TriedPlan, column: int) -> list[TriedPlan]:
        mask = self.task.costs.feature_masks[column]
        low = self._costs_with(first, mask)
        high = self._costs_with(second, mask)
        a, b = weighted_mean(low, first.weights), weighted_mean(high, second.weights)
        floor = max(a, self.task.costs.price([self.task.costs.features[column]]), 1e-12)
        if not floor < b or first.policy is None or second.policy is None:
            return []
        n_steps = min(MOST_STEPS, math.ceil(math.log(b / floor) / STEP))
        values = np.where(np.isnan(self.rows.X[:, column]), -np.inf, self.rows.X[:, column])
        found = []
        for target in np.geomspace(floor * 1.02, b, n_steps + 1)[:-1]:
            share = (target - a) / (b - a) if b > a else 0.0
            if not 0.0 < share < 1.0:
                continue
            options = [self._divided(first, second, low, high, values, column, share, side) for side in (1, -1)]
            best = max((o for o in options if o is not None), key=lambda o: o.quality, default=None)
            if best is not None:
                found.append(best)
        return found

    def _costs_with(self, candidate: TriedPlan, mask: int) -> Floats:
        """What rows pay if all of them buy something at first."""
        price, rows = self.graph.price, self.rows
        costs = candidate.costs.copy()
        for k in np.unique(candidate.ends):
            here, s = candidate.ends == k, self.graph.order[k]
            extra = rows.paid(s | mask, price(s | mask)) - rows.paid(s, price(s))
            costs[here] += extra[here]
        return costs

    def _divided(
        self,
        first: TriedPlan,
        second: TriedPlan,
        low: Floats,
        high: Floats,
        values: Floats,
        column: int,
        share: float,
        side: int,
    ) -> TriedPlan | None:
        """The share of rows with the largest (side 1) or smallest values follows the second, the others the first."""
        cut = float(np.quantile(values, 1 - share if side > 0 else share, method="lower"))
        passed = values > cut if side > 0 else values <= cut
        if not math.isfinite(cut) or not 0.005 < passed.mean() < 0.995:
            return None
        ends = np.where(passed, second.ends, first.ends)
        moved = [c.quality - self.quality(c.ends) for c in (first, second)]
        weights = None
        if first.weights is not None and second.weights is not None:
            weights = np.where(passed, second.weights, first.weights)
        part = float(passed.mean())
        quality = self.quality(ends) + (1 - part) * moved[0] + part * moved[1]
        policies = [c.policy for c in (first, second) if c.policy is not None]
        plan = self._plan_of(policies, _stump(column, cut, side))
        return TriedPlan("mixture", quality, np.where(passed, high, low), ends, None, plan, second.rate, weights)


def pareto(candidates: Sequence[TriedPlan]) -> list[TriedPlan]:
    """Those that no other beats in both mean cost and quality, cheapest first; the free constant is always one."""
    kept: list[TriedPlan] = []
    for candidate in sorted(candidates, key=lambda c: (c.mean_cost, c.member != "constant", -c.quality)):
        if not kept or candidate.quality > kept[-1].quality:
            kept.append(candidate)
    return kept


def _neighbours(candidates: Sequence[TriedPlan]) -> list[tuple[TriedPlan, TriedPlan]]:
    """Neighbours on the upper hull of quality over cost."""
    hull: list[TriedPlan] = []
    for candidate in pareto([c for c in candidates if c.policy is not None and math.isfinite(c.quality)]):
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) <= _slope(hull[-1], candidate):
            hull.pop()
        hull.append(candidate)
    return list(pairwise(hull))


def _slope(a: TriedPlan, b: TriedPlan) -> float:
    return (b.quality - a.quality) / max(b.mean_cost - a.mean_cost, 1e-300)


def _straight_to(state: int, ends: np.ndarray) -> StagePolicy:
    """The policy of one stage for all rows."""
    start, end = (UNLIMITED, 0), (UNLIMITED, state)
    decisions = {start: Decision(True, (end,)), end: Decision(False)}  # the same place where nothing is bought
    return StagePolicy(math.nan, start, decisions, ends, ends, ends)


def curve(costs: Sequence[float], qualities: Sequence[float]) -> Callable[[float], float]:
    """Quality by cost along a sweep, never falling."""
    order = np.argsort(costs, kind="stable")
    x, y = np.array(costs)[order], np.maximum.accumulate(np.array(qualities)[order])
    y = np.where(np.isfinite(y), y, -1e300)
    return lambda cost: float(np.interp(cost, x, y))


def _stump(column: int, cut: float, side: int) -> Trees:
    """Positive for values above the cut (side 1), or for the others (side -1)."""
    table = {
        "feature": np.array([column, 0, 0], np.int32),
        "threshold": np.array([cut, np.inf, np.inf]),
        "left": np.array([1, 1, 2], np.int32),
        "missing_right": np.zeros(3, bool),
        "value": np.array([0.0, -side, side], np.float64),
    }
    return stack_trees([table])
