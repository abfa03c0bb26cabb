"""Selectors: trees that are charged the seconds of the steps on the way of each row, and what they are worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

import miserly as ms
from examples.algorithm_selection.scenarios import Scenario

Prices = Literal["row", "mean", "none"]
SOLVERS = 5  # that complement each other best; the others seldom win
FACTORS = (0.1, 0.3, 1.0, 3.0)  # λ in units of one over the seconds that the right choice saves
SETTINGS = {"n_estimators": 20, "learning_rate": 0.2, "min_samples_leaf": 15, "charge": "path", "n_jobs": 1}


@dataclass(frozen=True)
class Selector:
    """A plan that chooses among some solvers."""

    plan: ms.Plan
    solvers: np.ndarray

    def outcome(self, data: Scenario, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of each row the penalised seconds of the chosen solver, and the seconds that its features really took."""
        X = data.features[rows]
        chosen = self.solvers[self.plan.predict(X).astype(int)]
        return data.par10[rows, chosen], self.plan.predict_cost(X, prices=data.seconds[rows])


def portfolio(par10: np.ndarray) -> np.ndarray:
    """The solvers that are best together, one after the other."""
    best, chosen = np.full(len(par10), np.inf), []
    for _ in range(min(SOLVERS, par10.shape[1])):
        chosen.append(int(np.minimum(best[:, None], par10).mean(axis=0).argmin()))
        best = np.minimum(best, par10[:, chosen[-1]])
    return np.array(list(dict.fromkeys(chosen)))


def fit(data: Scenario, rows: np.ndarray, prices: Prices, factor: float) -> Selector:
    """A selector from some rows; a mistake costs the seconds that it costs there in the mean."""
    solvers = portfolio(data.par10[rows])
    needed = data.par10[np.ix_(rows, solvers)]
    label, regret = needed.argmin(axis=1), needed - needed.min(axis=1, keepdims=True)
    tradeoff = 0.0 if prices == "none" else factor / max(1e-9, float(regret.mean()))
    model = ms.GreedyMiserClassifier(data.costs(rows), tradeoff=tradeoff, **SETTINGS)
    model.fit(data.features[rows], label, prices=data.seconds[rows] if prices == "row" else None)
    present = model.classes_.astype(int)
    mistakes = np.array([regret[label == k].mean(axis=0)[present] for k in present])
    return Selector(model.plan_.with_error_costs(mistakes), solvers)


def chosen(data: Scenario, rows: np.ndarray, prices: Prices, seed: int) -> Selector:
    """The selector whose λ gives the least total on a quarter of the rows, fitted again on all of them."""
    mixed = np.random.default_rng(seed).permutation(rows)
    fitted, held = np.split(mixed, [3 * len(mixed) // 4])
    factors = FACTORS if prices != "none" else (0.0,)
    totals = [sum(part.mean() for part in fit(data, fitted, prices, f).outcome(data, held)) for f in factors]
    return fit(data, rows, prices, factors[int(np.argmin(totals))])


@dataclass(frozen=True)
class Result:
    """Mean penalised seconds of the selected solvers, mean seconds of features, and the share of the gap between the
    best single solver and the best for each row that both together close."""

    solver: float
    features: float
    closed: float


def evaluate(data: Scenario, n_folds: int = 10, seed: int = 0) -> dict[str, Result]:
    """Cross-validate: row prices, mean prices, and all features, which costs all steps."""
    folds = np.array_split(np.random.default_rng(seed).permutation(len(data.par10)), n_folds)
    kinds: dict[str, Prices] = {"row prices": "row", "mean prices": "mean", "all features": "none"}
    totals = {name: np.zeros((2, len(data.par10))) for name in kinds}
    single = np.zeros(len(data.par10))
    for test in folds:
        train = np.setdiff1d(np.arange(len(data.par10)), test)
        single[test] = data.par10[test, data.par10[train].mean(axis=0).argmin()]
        for name, prices in kinds.items():
            solver, paid = chosen(data, train, prices, seed).outcome(data, test)
            totals[name][:, test] = solver, data.seconds[test].sum(axis=1) if prices == "none" else paid
    best = data.par10.min(axis=1).mean()
    gap = single.mean() - best
    return {
        name: Result(solver.mean(), paid.mean(), (single.mean() - (solver + paid).mean()) / gap)
        for name, (solver, paid) in totals.items()
    }
