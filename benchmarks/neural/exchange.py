"""What goes to the environment with PyTorch and what comes back; costs and points are computed here."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from miserly.costs import CostTable

METHODS = ("DIME", "GDFS")
N_THRESHOLDS = 40
ROOT = Path(__file__).resolve().parents[2]
Part = tuple[np.ndarray, np.ndarray]  # rows, and the numbers of their classes


@dataclass(frozen=True)
class Way:
    """The way of each row of a part, without any stop.

    `cost` of what is owned after each number of purchases, `predicted` and `sure` (the class and its probability), and
    `rate`, the value per price of the purchase that comes next (rows × purchases + 1; the last has none)."""

    cost: np.ndarray
    predicted: np.ndarray
    sure: np.ndarray
    rate: np.ndarray

    def stopped(self, goes_on: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Classes and costs where rows stop as soon as they do not go on."""
        last = np.concatenate([goes_on[:, :-1], np.zeros((len(goes_on), 1), bool)], axis=1)
        at = np.arange(len(last)), last.argmin(axis=1)
        return self.predicted[at], self.cost[at]


def points(method: str, ways: list[Way]) -> Iterator[list[tuple[np.ndarray, np.ndarray]]]:
    """Classes and costs on each of some parts, the first of which says where thresholds lie: DIME stops below a value
    per price, GDFS after a number of purchases, both where one class is probable enough."""
    first = ways[0]
    if method == "DIME":
        for least in _spread(first.rate[:, :-1]):
            yield [way.stopped(way.rate > least) for way in ways]
    else:
        for k in range(first.cost.shape[1]):
            yield [(way.predicted[:, k], way.cost[:, k]) for way in ways]
    for most in _spread(first.sure):
        yield [way.stopped(way.sure < most) for way in ways]


def _spread(values: np.ndarray) -> np.ndarray:
    finite = values[np.isfinite(values)]
    return np.unique(np.quantile(finite, np.linspace(0, 1, N_THRESHOLDS))) if finite.size else np.zeros(1)


def ways_of(
    python: str, method: str, train: Part, early: Part, tested: Sequence[np.ndarray], costs: CostTable, seed: int = 0
) -> tuple[list[Way], float]:
    """Train a method in the other environment, stopped early by other rows; the ways of some rows, and the CPU seconds
    of training."""
    costs = costs.bind(train[0].shape[1])
    needs = np.array([[mask >> a & 1 for a in range(len(costs.acquisitions))] for mask in costs.feature_masks], bool)
    arrays: dict[str, Any] = {
        "needs": needs,
        "prices": np.array(costs.price_list, np.float64),
        "categories": np.array([name.endswith("_label") for name in costs.features]),
        "parts": np.array([len(tested), seed]),
    }
    arrays |= {"y0": train[1], "y1": early[1]}
    arrays |= {f"X{number}": X for number, X in enumerate([train[0], early[0], *tested])}
    with tempfile.TemporaryDirectory() as folder:
        given, result = Path(folder) / "given.npz", Path(folder) / "result.npz"
        np.savez(given, **arrays)
        command = [python, "-m", "benchmarks.neural.train", method, str(given), str(result)]
        subprocess.run(command, cwd=ROOT, check=True)
        with np.load(result) as file:
            found = dict(file)
    names = ("predicted", "sure", "rate")
    ways = [
        Way(_costs(found[f"bought{k}"], needs, arrays["prices"]), *(found[f"{name}{k}"] for name in names))
        for k in range(len(tested))
    ]
    return ways, float(found["seconds"])


def _costs(bought: np.ndarray, needs: np.ndarray, prices: np.ndarray) -> np.ndarray:
    """What each row has paid after each purchase of a group (−1: nothing more); each acquisition once."""
    groups = groups_of(needs)
    owned = np.zeros((len(bought), len(prices)), bool)
    paid = [np.zeros(len(bought))]
    for step in bought.T:
        owned[step >= 0] |= groups[step[step >= 0]]
        paid.append(owned @ prices)
    return np.stack(paid, axis=1)


def groups_of(needs: np.ndarray) -> np.ndarray:
    """The sets of acquisitions that features need, each once: what a method may buy in one step."""
    groups = np.unique(needs, axis=0)
    return groups[groups.any(axis=1)]
