"""Where a tree of classifiers is better, and where boosted trees are: `python -m benchmarks.generators [PNG]`.

Four quadrants: two cheap signs tell which expensive column a row needs; a tree of linear scorers says just that.
A bent sum: all rows need the same columns, but not in a straight line; boosted trees bend, linear scorers do not.
Both over several seeds, each a sweep; at a cost, the test error of the model that was best on validation data within
it (the mean alone is free). Means over seeds with 95 % intervals of Student's t; every setting is the default.
"""

import sys
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from miserly.datasets import Dataset, bent_sum, four_quadrants
from miserly.estimators import CSTCRegressor, GreedyMiserRegressor
from miserly.report.figures._style import COLOURS, MARKERS

SEEDS = range(5)
N_ROWS = 1000
LEAST = 1e-6
BUDGETS = {"four quadrants": (2, 6, 10, 12, 14, 18, 24, 32, 42), "bent sum": (1, 2, 3, 4, 5, 6, 8, 12)}
MAKERS = {"four quadrants": four_quadrants, "bent sum": bent_sum}
METHODS = ("Greedy Miser", "CSTC")


def candidates(method: str, data: Dataset, train: slice) -> list[Any]:
    """A sweep of the suggested tradeoffs."""
    X, y = data.X[train], data.y[train]
    if method == "CSTC":
        return CSTCRegressor(data.costs).path(X, y)
    model = GreedyMiserRegressor(data.costs, random_state=0)
    return [GreedyMiserRegressor(data.costs, tradeoff=t, random_state=0).fit(X, y) for t in model.suggest_grid(y)]


def errors(method: str, data: Dataset, budgets: tuple[float, ...]) -> list[float]:
    """The test error within each budget, as a share of the variance of y."""
    n = len(data.y) // 3
    validation, test = slice(n, 2 * n), slice(2 * n, 3 * n)
    measured = []
    for model in candidates(method, data, slice(0, n)):
        cost = float(model.predict_cost(data.X[validation]).mean())
        judged, final = (np.mean((model.predict(data.X[part]) - data.y[part]) ** 2) for part in (validation, test))
        measured.append((cost, float(judged), float(final)))
    nothing = float(np.var(data.y[test]))
    measured.append((0.0, float(np.var(data.y[validation])), nothing))
    return [min((m for m in measured if m[0] <= budget), key=lambda m: m[1])[2] / nothing for budget in budgets]


def compare(name: str, seeds: Any = SEEDS, n_rows: int = N_ROWS) -> dict[str, np.ndarray]:
    """Errors of both methods: seed × budget."""
    found: dict[str, list[list[float]]] = {method: [] for method in METHODS}
    for seed in seeds:
        data = MAKERS[name](3 * n_rows, seed)
        for method in METHODS:
            found[method].append(errors(method, data, BUDGETS[name]))
    return {method: np.array(rows) for method, rows in found.items()}


def half_width(values: np.ndarray) -> np.ndarray:
    """Of the 95 % interval of the mean over seeds."""
    n = len(values)
    return stats.t.ppf(0.975, n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n)


def draw(results: dict[str, dict[str, np.ndarray]], path: str) -> None:
    """One picture, a panel for each generator."""
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    for ax, (name, found) in zip(figure.subplots(1, len(results)), results.items()):
        for i, (method, values) in enumerate(found.items()):
            mean, half = values.mean(axis=0), half_width(values)
            ax.plot(BUDGETS[name], np.maximum(mean, LEAST), color=COLOURS[i], marker=MARKERS[i], label=method)
            ax.fill_between(BUDGETS[name], np.maximum(mean - half, LEAST), mean + half, color=COLOURS[i], alpha=0.2)
        ax.set(
            title=name, xlabel="mean cost per row, at most (units)", ylabel="test error / variance of y", yscale="log"
        )
        ax.grid(alpha=0.3)
        ax.legend()
    figure.savefig(path, dpi=150)


def main(path: str | None = None) -> None:
    results = {}
    for name in MAKERS:
        results[name] = found = compare(name)
        better, worse = ("CSTC", "Greedy Miser") if name == "four quadrants" else ("Greedy Miser", "CSTC")
        print(f"{name}: test error over the variance of y, {len(SEEDS)} seeds; expected ahead: {better}")
        gap = found[worse] - found[better]
        for i, budget in enumerate(BUDGETS[name]):
            parts = [f"{m} {found[m][:, i].mean():.2g} ± {half_width(found[m])[i]:.1g}" for m in METHODS]
            sure = gap[:, i].mean() - half_width(gap)[i]
            verdict = "ahead" if sure > 0 else "BEHIND" if gap[:, i].mean() + half_width(gap)[i] < 0 else "even"
            print(f"  cost ≤ {budget:<4} {parts[0]:<30} {parts[1]:<22} {better} {verdict}")
    if path is not None:
        draw(results, path)


if __name__ == "__main__":
    main(*sys.argv[1:2])
