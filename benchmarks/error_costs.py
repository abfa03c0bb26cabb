"""The total of tests and mistakes on heart and ann-thyroid, ten splits: the model chosen by error costs, the most
accurate one within the same budget, and the most accurate one whatever its tests cost, with a tuned threshold.

python -m benchmarks.error_costs [--splits 10] [--first 0] [--scales 0.3 1 3]
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy import stats
from sklearn.model_selection import train_test_split

import miserly as ms
from miserly._typing import Array, Floats
from miserly.plan import least_expected

FOLDER = Path(os.environ.get("MISERLY_DATA", Path(__file__).parents[2] / "shared" / "data"))
N_TRAIN = 1500  # of ann-thyroid: a third of the rows keeps ten fits within minutes
HEART = np.array([[0.0, 200.0], [1000.0, 0.0]])  # healthy, ill; CAD, as the prices
THYROID = np.array([[0.0, 500.0, 1000.0], [500.0, 0.0, 1000.0], [100.0, 100.0, 0.0]])  # hyper, hypo, normal
SCALES = (0.3, 1.0, 3.0)


def heart() -> tuple[ms.CostTable, Floats, Array, Floats]:
    """Cleveland heart disease; words become the codes of their alphabet."""
    lines = (FOLDER / "heart_cost" / "heartdisease.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines[1:]]
    y = np.array([row[0] == "True" for row in rows]).astype(int)
    columns = []
    for column in zip(*(row[1:] for row in rows)):
        try:
            columns.append(np.array(column, np.float64))
        except ValueError:
            columns.append(np.unique(column, return_inverse=True)[1].astype(np.float64))
    return ms.CostTable.from_csv(FOLDER / "heart_cost" / "costs.csv", unit="CAD"), np.column_stack(columns), y, HEART


def thyroid() -> tuple[ms.CostTable, Floats, Array, Floats]:
    """ann-thyroid, both files."""
    folder = FOLDER / "ann_thyroid_cost"
    rows = np.concatenate([np.loadtxt(folder / f"ann-{part}.data") for part in ("train", "test")])
    return ms.CostTable.from_toml(folder / "costs.toml"), rows[:, :-1], rows[:, -1].astype(int), THYROID


def tuned(front: ms.Frontier, number: int, matrix: Floats) -> Floats:
    """Weights of classes under which the predictions of a model cost least on rows that it was not fitted on."""
    assert front.held_out is not None
    p, truth = front.held_out(number)[:2]
    best, found = np.inf, matrix
    for weights in _grid(len(matrix)):
        scaled = weights[:, None] * (1.0 - np.eye(len(matrix)))
        cost = matrix[truth, least_expected(p, scaled)].mean()
        if cost < best:
            best, found = cost, scaled
    return found


def _grid(n_classes: int) -> Iterator[Floats]:
    steps = np.geomspace(1 / 64, 64, 25 if n_classes == 2 else 13)
    for first in steps:
        for second in steps if n_classes == 3 else (1.0,):
            yield np.array([1.0, first, second][:n_classes])


def totals(
    split: int, costs: ms.CostTable, X: Floats, y: Array, matrix: Floats, scales: Sequence[float]
) -> list[dict[str, float]]:
    """Mean totals on the test rows, for each scale of the mistakes."""
    size = min(N_TRAIN, len(X) // 2)
    parts = train_test_split(X, y, train_size=size, stratify=y, random_state=split)
    settings = {"time_limit": None, "random_state": split}
    blind = ms.AutoMiserClassifier(costs, metric="accuracy", **settings).fit(parts[0], parts[2])
    found = []
    for scale in scales:
        errors = scale * matrix
        chosen = ms.AutoMiserClassifier(costs, error_costs=errors, **settings).fit(parts[0], parts[2])
        found.append(_totals(chosen, blind, errors, parts[1], parts[3]))
        print(f"split {split}", {name: round(total, 2) for name, total in found[-1].items()}, file=sys.stderr)
    return found


def _totals(
    chosen: ms.AutoMiserClassifier, blind: ms.AutoMiserClassifier, errors: Floats, X_test: Floats, y_test: Array
) -> dict[str, float]:
    truth = np.searchsorted(chosen.classes_, y_test)
    front = blind.frontier_
    spent = chosen.frontier_.choose_point(error_costs=errors).validation.cost["mean"]
    most = max(range(len(front.points)), key=lambda k: front.points[k].validation.quality)
    models = {
        "chosen by error costs": chosen.plan_,
        "most accurate within the same budget": front.choose(budget=spent).plan_,
        "cost-blind, tuned threshold": front.points[most].model.plan_.with_error_costs(tuned(front, most, errors)),
        "blind fit, choose(error_costs=)": front.choose(error_costs=errors).plan_,
    }
    found = {}
    for name, plan in models.items():
        said = np.searchsorted(chosen.classes_, plan.predict(X_test))
        found[name] = float(plan.predict_cost(X_test).mean() + errors[truth, said].mean())
    return found


def main() -> None:
    """Print totals, and differences with 95 % intervals over the splits."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.error_costs", description=__doc__)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="number of the first split")
    parser.add_argument("--scales", type=float, nargs="+", default=SCALES, help="of what mistakes cost")
    given = parser.parse_args()
    n_splits, splits = given.splits, range(given.first, given.first + given.splits)
    for make in (heart, thyroid):
        data = make()
        tables = zip(*(totals(split, *data, given.scales) for split in splits))
        for scale, table in zip(given.scales, tables):
            print(f"{make.__name__}, mistakes × {scale:g}, {n_splits} splits, {data[0].unit} per row")
            first = np.array([row["chosen by error costs"] for row in table])
            for name in table[0]:
                here = np.array([row[name] for row in table])
                more = here - first
                margin = stats.t.ppf(0.975, n_splits - 1) * stats.sem(more) if n_splits > 1 else np.nan
                print(f"  {name:38} {here.mean():8.2f}   more by {more.mean():7.2f} ± {margin:.2f}", flush=True)


if __name__ == "__main__":
    main()
