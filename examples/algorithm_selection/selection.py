"""Selectors: which probing steps to run on an instance, one after the other, and which solver is best by then.

The steps are ordered by their mean seconds. After each of them a model has learned what every solver would lose; a gate
says whether the seconds that this saves in the mean are worth what the next steps are expected to take on this row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats
from sklearn.isotonic import IsotonicRegression

import miserly as ms
from examples.algorithm_selection.scenarios import Scenario

SOLVERS = 10  # that complement each other best; the others seldom win
FOLDS = 4
TREES: dict[str, Any] = {"n_estimators": 20, "learning_rate": 0.2, "min_samples_leaf": 15, "n_jobs": 1, "tradeoff": 0.0}
GATES: dict[str, Any] = TREES | {"n_estimators": 10, "max_depth": 2}


class LossOfChoice:
    """½ Σₖ (scoreₖ + √regretₖ)², summed over solvers: a loss of one's own. The highest score is the best solver."""

    def __init__(self, regret: np.ndarray) -> None:
        self.target = -np.sqrt(regret.T)  # PAR10 is long-tailed
        self.n_outputs = len(self.target)

    def constant(self, y: np.ndarray, weight: Any = None) -> np.ndarray:
        return self.target.mean(axis=1)

    def gradients(self, y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.target - score, np.ones_like(score)

    def value(self, y: np.ndarray, score: np.ndarray, weight: Any = None) -> float:
        return 0.5 * float(np.square(self.target - score).sum(axis=0).mean())


@dataclass(frozen=True)
class Problem:
    """The rows to learn from, and the solvers to choose among."""

    data: Scenario
    rows: np.ndarray
    solvers: np.ndarray
    costs: ms.CostTable

    @classmethod
    def of(cls, data: Scenario, rows: np.ndarray) -> Problem:
        """A problem with the solvers that are best together."""
        solvers = portfolio(data.par10[rows])
        winners = np.unique(data.par10[np.ix_(rows, solvers)].argmin(axis=1))
        return cls(data, rows, solvers[winners], data.costs(rows))

    def regret(self, rows: np.ndarray) -> np.ndarray:
        """The seconds that each solver loses to the best of them."""
        needed = self.data.par10[np.ix_(rows, self.solvers)]
        return needed - needed.min(axis=1, keepdims=True)

    def known(self, rows: np.ndarray, steps: tuple[str, ...]) -> np.ndarray:
        """The features of rows after some steps; the others are missing."""
        given = [set(needed) <= set(steps) for needed in self.data.needs.values()]
        return np.where(given, self.data.features[rows], np.nan)


def portfolio(par10: np.ndarray) -> np.ndarray:
    """The solvers that are best together, one after the other."""
    best, chosen = np.full(len(par10), np.inf), []
    for _ in range(min(SOLVERS, par10.shape[1])):
        chosen.append(int(np.minimum(best[:, None], par10).mean(axis=0).argmin()))
        best = np.minimum(best, par10[:, chosen[-1]])
    return np.array(list(dict.fromkeys(chosen)))


def chain(data: Scenario, rows: np.ndarray) -> list[tuple[str, ...]]:
    """Sets of steps, each with one step more than the one before: of those that may run the one with the least mean
    seconds. Steps that take no time come together."""
    mean = dict(zip(data.steps, data.seconds[rows].mean(axis=0)))
    requires = {needed[-1]: set(needed[:-1]) for needed in data.needs.values()}
    sets: list[tuple[str, ...]] = [()]
    while len(sets[-1]) < len(requires):
        ready = [step for step in requires if step not in sets[-1] and requires[step] <= set(sets[-1])]
        step = min(ready, key=lambda step: mean[step])
        longer = (*sets[-1], step)
        sets = [*sets[:-1], longer] if mean[step] == 0.0 and len(sets[-1]) > 0 else [*sets, longer]
    return sets


def stage(problem: Problem, rows: np.ndarray, steps: tuple[str, ...]) -> ms.Plan:
    """The plan that chooses a solver after some steps."""
    regret = problem.regret(rows)
    label, loss = _every_label(regret), LossOfChoice(regret)
    model = ms.GreedyMiserClassifier(problem.costs, loss=loss, **TREES).fit(problem.known(rows, steps), label)
    return model.plan_


def _every_label(regret: np.ndarray) -> np.ndarray:
    """The best solver of each row. The loss does not read labels, but each solver must be among them."""
    label = regret.argmin(axis=1)
    absent = np.setdiff1d(np.arange(regret.shape[1]), label)
    label[: len(absent)] = absent
    return label


@dataclass(frozen=True)
class Stages:
    """The plans after each set of steps, and the mean seconds that their choices lose on rows that they have not seen:
    with more steps never more."""

    problem: Problem
    sets: list[tuple[str, ...]]
    plans: list[ms.Plan]
    lost: np.ndarray

    @classmethod
    def fit(cls, problem: Problem) -> Stages:
        """Fit and cross-validate."""
        rows, sets = problem.rows, chain(problem.data, problem.rows)
        lost = np.zeros(len(sets))
        for held in np.array_split(np.random.default_rng(0).permutation(rows), FOLDS):
            fitted, regret = np.setdiff1d(rows, held), problem.regret(held)
            for k, steps in enumerate(sets):
                chosen = stage(problem, fitted, steps).predict(problem.data.features[held]).astype(int)
                lost[k] += regret[np.arange(len(held)), chosen].sum() / len(rows)
        smooth = IsotonicRegression(increasing=False).fit_transform(np.arange(len(sets)), lost)
        return cls(problem, sets, [stage(problem, rows, steps) for steps in sets], smooth)

    def seconds(self, by_row: bool) -> np.ndarray:
        """What going on from each set to the next takes on each row (sets × rows), or in the mean."""
        data, rows = self.problem.data, self.problem.rows
        more = [[data.steps.index(step) for step in after[len(now) :]] for now, after in pairwise(self.sets)]
        own = np.array([data.seconds[np.ix_(rows, columns)].sum(axis=1) for columns in more])
        return own if by_row else np.broadcast_to(own.mean(axis=1, keepdims=True), own.shape)

    def plan(self, by_row: bool) -> ms.Plan:
        """All stages with gates between them, learned from the last to the first: what a row saves by going on, as the
        later gates do, less its seconds."""
        problem, rows = self.problem, self.problem.rows
        total = np.full(len(rows), self.lost[-1])  # what is still to be paid, from each stage on
        gates: list[ms.Plan] = []
        for k, seconds in reversed(list(enumerate(self.seconds(by_row)))):
            saved = self.lost[k] - (seconds + total)
            model = ms.GreedyMiserRegressor(problem.costs, **GATES)
            gates.insert(0, model.fit(problem.known(rows, self.sets[k]), saved).plan_)
            goes = gates[0].predict(problem.data.features[rows]) > 0
            total = np.where(goes, seconds + total, self.lost[k])
        return ms.cascade(self.plans, go_on=gates)

    def outcome(self, plan: ms.Plan, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of each row the penalised seconds of the chosen solver, and the seconds that its features really took."""
        data = self.problem.data
        chosen = self.problem.solvers[plan.predict(data.features[rows]).astype(int)]
        return data.par10[rows, chosen], plan.predict_cost(data.features[rows], prices=data.seconds[rows])


@dataclass(frozen=True)
class Evaluation:
    """Penalised seconds by seed of the folds and row: of the best single solver, of the best for each row, and by kind
    of selector of the chosen solvers and of the features that they looked at."""

    single: np.ndarray
    best: np.ndarray
    solver: dict[str, np.ndarray]
    features: dict[str, np.ndarray]

    def closed(self, kind: str) -> np.ndarray:
        """The share of the gap between the best single solver and the best for each row that is closed, feature time
        included: seeds × rows, whose mean is the share."""
        gap = float((self.single - self.best).mean())
        share: np.ndarray = (self.single - self.solver[kind] - self.features[kind]) / gap
        return share

    def ahead(self, kind: str, other: str) -> tuple[float, float, float]:
        """How much more of the gap one kind closes than another, and two 95 % intervals, as what to add and subtract:
        over seeds (other folds), and over rows (other instances)."""
        more = self.closed(kind) - self.closed(other)
        n_seeds, n = more.shape
        over_seeds = float(stats.t.ppf(0.975, n_seeds - 1) * stats.sem(more.mean(axis=1))) if n_seeds > 1 else np.nan
        return float(more.mean()), over_seeds, float(stats.t.ppf(0.975, n - 1) * stats.sem(more.mean(axis=0)))


KINDS = ("row prices", "mean prices", "all features")


def evaluate(data: Scenario, n_folds: int = 10, seeds: Sequence[int] = (0,)) -> Evaluation:
    """Cross-validate: row prices, mean prices, and all features, which costs all steps."""
    n = len(data.par10)
    solver, features = ({kind: np.zeros((len(seeds), n)) for kind in KINDS} for _ in range(2))
    single = np.zeros((len(seeds), n))
    for k, seed in enumerate(seeds):
        for test in np.array_split(np.random.default_rng(seed).permutation(n), n_folds):
            train = np.setdiff1d(np.arange(n), test)
            single[k, test] = data.par10[test, data.par10[train].mean(axis=0).argmin()]
            stages = Stages.fit(Problem.of(data, train))
            for kind, plan in zip(KINDS, (stages.plan(by_row=True), stages.plan(by_row=False), stages.plans[-1])):
                solver[kind][k, test], features[kind][k, test] = stages.outcome(plan, test)
            features["all features"][k, test] = data.seconds[test].sum(axis=1)
    return Evaluation(single, np.broadcast_to(data.par10.min(axis=1), single.shape), solver, features)
