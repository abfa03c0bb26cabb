"""Selectors: which probing steps to run on an instance, one after the other, and which solver is best by then.

Steps are ordered by what they take. After some of them a model has learned what every solver would lose; a gate says
whether the seconds that this saves in the mean are worth what the next steps are expected to take on this row. Where
each row has its own prices, a step that takes long on few rows comes early: gates spare these rows.
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
FOLDS, REPEATS = 4, 2
LEAST_SHARE = 0.1  # of the seconds of all steps, that a set of steps with a model of its own adds
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

    def known(self, rows: np.ndarray, steps: frozenset[str]) -> np.ndarray:
        """The features of rows after some steps; the others are missing."""
        given = [set(needed) <= steps for needed in self.data.needs.values()]
        return np.where(given, self.data.features[rows], np.nan)


def portfolio(par10: np.ndarray) -> np.ndarray:
    """The solvers that are best together, one after the other."""
    best, chosen = np.full(len(par10), np.inf), []
    for _ in range(min(SOLVERS, par10.shape[1])):
        chosen.append(int(np.minimum(best[:, None], par10).mean(axis=0).argmin()))
        best = np.minimum(best, par10[:, chosen[-1]])
    return np.array(list(dict.fromkeys(chosen)))


def chain(data: Scenario, rows: np.ndarray, by_row: bool) -> list[frozenset[str]]:
    """Sets of steps, each with more than the one before: of those that may run the one that takes least, in the mean
    or, `by_row`, on a typical row (the mean of logarithms). Short steps come together."""
    mean = dict(zip(data.steps, data.seconds[rows].mean(axis=0)))
    order = dict(zip(data.steps, np.log1p(data.seconds[rows]).mean(axis=0))) if by_row else mean
    requires = {needed[-1]: set(needed[:-1]) for needed in data.needs.values()}
    sets, now = [frozenset[str]()], frozenset[str]()
    while now < set(requires):
        ready = [step for step in requires if step not in now and requires[step] <= now]
        now |= {min(ready, key=lambda step: order[step])}
        if sum(mean[step] for step in now - sets[-1]) >= LEAST_SHARE * sum(mean.values()):
            sets.append(now)
    return sets if sets[-1] == now else [*sets[:-1], now]


def stage(problem: Problem, rows: np.ndarray, steps: frozenset[str]) -> ms.Plan:
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
    """The plans after sets of steps, and the mean seconds that their choices lose on rows that they have not seen."""

    problem: Problem
    plans: dict[frozenset[str], ms.Plan]
    lost: dict[frozenset[str], float]

    @classmethod
    def fit(cls, problem: Problem) -> Stages:
        """Fit and cross-validate the sets of both chains."""
        rows, features = problem.rows, problem.data.features
        sets = dict.fromkeys(steps for by_row in (True, False) for steps in chain(problem.data, rows, by_row))
        lost = dict.fromkeys(sets, 0.0)
        for repeat in range(REPEATS):
            for held in np.array_split(np.random.default_rng(repeat).permutation(rows), FOLDS):
                fitted, regret = np.setdiff1d(rows, held), problem.regret(held)
                for steps in sets:
                    chosen = stage(problem, fitted, steps).predict(features[held]).astype(int)
                    lost[steps] += regret[np.arange(len(held)), chosen].sum() / len(rows) / REPEATS
        return cls(problem, {steps: stage(problem, rows, steps) for steps in sets}, lost)

    def smooth(self, sets: Sequence[frozenset[str]]) -> np.ndarray:
        """What is lost after each set of a chain: with more steps never more."""
        lost = [self.lost[steps] for steps in sets]
        smooth: np.ndarray = IsotonicRegression(increasing=False).fit_transform(np.arange(len(sets)), lost)
        return smooth

    def all_features(self) -> ms.Plan:
        """The plan after all steps."""
        return self.plans[frozenset(self.problem.data.steps)]

    def seconds(self, sets: Sequence[frozenset[str]], by_row: bool) -> np.ndarray:
        """What going on from each set to the next takes on each row (sets × rows), or in the mean."""
        data, rows = self.problem.data, self.problem.rows
        more = [[data.steps.index(step) for step in after - now] for now, after in pairwise(sets)]
        own = np.array([data.seconds[np.ix_(rows, columns)].sum(axis=1) for columns in more])
        return own if by_row else np.broadcast_to(own.mean(axis=1, keepdims=True), own.shape)

    def plan(self, by_row: bool) -> ms.Plan:
        """All stages with gates between them, learned from the last to the first: what a row saves by going on, as the
        later gates do, less its seconds."""
        problem, rows = self.problem, self.problem.rows
        sets = chain(problem.data, rows, by_row)
        lost = self.smooth(sets)
        total = np.full(len(rows), lost[-1])  # what is still to be paid, from each stage on
        gates: list[ms.Plan] = []
        for k, seconds in reversed(list(enumerate(self.seconds(sets, by_row)))):
            saved = lost[k] - (seconds + total)
            model = ms.GreedyMiserRegressor(problem.costs, **GATES)
            gates.insert(0, model.fit(problem.known(rows, sets[k]), saved).plan_)
            goes = gates[0].predict(problem.data.features[rows]) > 0
            total = np.where(goes, seconds + total, lost[k])
        return ms.cascade([self.plans[steps] for steps in sets], go_on=gates)

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
            for kind, plan in zip(KINDS, (stages.plan(by_row=True), stages.plan(by_row=False), stages.all_features())):
                solver[kind][k, test], features[kind][k, test] = stages.outcome(plan, test)
            features["all features"][k, test] = data.seconds[test].sum(axis=1)
    return Evaluation(single, np.broadcast_to(data.par10.min(axis=1), single.shape), solver, features)
