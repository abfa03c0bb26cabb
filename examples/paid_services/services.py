"""What recognition services said of the same texts, with their list prices: FrugalML's data, or made up like them."""

from __future__ import annotations

import csv
import gzip
import os
import tomllib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import miserly as ms

CALLS = 10_000  # prices in the files are for so many calls
MADE_UP = {"github": (0.001, 0.75), "amazon": (0.75, 0.87), "google": (2.5, 0.957)}  # price, accuracy


def answers(n_rows: int) -> tuple[NDArray[np.float64], ms.CostTable, str]:
    """Labels and confidences of each service, their prices in USD a call, and where they come from."""
    folder = Path(os.environ["MISERLY_DATA"]) / "frugalml" if "MISERLY_DATA" in os.environ else None
    if folder is None or not (folder / "yelp.csv.gz").exists():
        return *made_up(n_rows), "made up"
    with gzip.open(folder / "yelp.csv.gz", "rt") as file:
        lines = list(csv.reader(file))
    table = tomllib.loads((folder / "yelp.costs.toml").read_text())
    features = list(table["features"])
    columns = [lines[0].index(name) for name in features]
    X = np.array([[float(line[c] or "nan") for c in columns] for line in lines[1:]])
    prices = {name: price / CALLS for name, price in table["acquisitions"].items()}
    rows = np.random.default_rng(0).permutation(len(X))[:n_rows]
    return X[rows], ms.CostTable(features, table["features"], prices, unit="USD"), "Yelp reviews, FrugalML"


def made_up(n_rows: int) -> tuple[NDArray[np.float64], ms.CostTable]:
    """Two classes; each service is right as often as its namesake, and surer where it is right."""
    rng = np.random.default_rng(0)
    truth, columns = rng.integers(0, 2, n_rows), []
    for _, accuracy in MADE_UP.values():
        sure = rng.beta(6.0, 1.5, n_rows)
        right = rng.random(n_rows) < np.clip(accuracy + 1.2 * (sure - sure.mean()) * (1 - accuracy) * 4, 0, 1)
        columns += [np.where(right, truth, 1 - truth), sure]
    features = {f"{name}_{what}": [name] for name in MADE_UP for what in ("label", "confidence")}
    prices = {name: price / CALLS for name, (price, _) in MADE_UP.items()}
    return np.column_stack(columns).astype(np.float64), ms.CostTable(list(features), features, prices, unit="USD")
