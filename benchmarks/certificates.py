"""Certified agreement with the best service against BARGAIN (PyPI `bargain`), on FrugalML's sets of two classes.

Both may use the cheap service for every text and pay the best one for what they label, calibration included. Equal
target and δ; the figures are means over draws of the texts.

python -m benchmarks.certificates [n_draws]
"""

from __future__ import annotations

import csv
import gzip
import os
import sys
import tomllib
from pathlib import Path

import numpy as np

import miserly as ms
from miserly._typing import Array, Floats
from miserly.plan import EXIT, Node, Plan, RawFeatures

FOLDER = Path(os.environ.get("MISERLY_DATA", Path(__file__).parents[2] / "shared" / "data")) / "frugalml"
PAIRS = {"yelp": ("amazon", "google"), "waimai": ("github", "baidu")}  # a cheap service and the best one
N_ROWS, N_CALIBRATION, DELTA = 5000, 600, 0.05
TARGETS = (0.9, 0.95)


def services(name: str) -> tuple[Array, Floats, Array, float, float]:
    """Labels and confidences of the cheap service, labels of the best one, and both prices."""
    with gzip.open(FOLDER / f"{name}.csv.gz", "rt") as file:
        lines = list(csv.reader(file))
    prices = tomllib.loads((FOLDER / f"{name}.costs.toml").read_text())["acquisitions"]
    cheap, best = PAIRS[name]
    columns = [lines[0].index(c) for c in (f"{cheap}_label", f"{cheap}_confidence", f"{best}_label")]
    label, sure, truth = np.array([[float(line[c] or 0) for c in columns] for line in lines[1:]]).T
    return label.astype(int), np.clip(sure, 1e-6, 1 - 1e-6), truth.astype(int), prices[cheap], prices[best]


def ours(label: Array, sure: Floats, truth: Array, prices: tuple[float, float], target: float) -> tuple[float, float]:
    """Agreement and cost per text: the calibration texts get the best service's label, the others follow the plan."""
    costs = ms.CostTable.per_feature({"cheap": prices[0], "best": prices[1]})
    nodes = (Node([0], [1.0], combine="replace", passed=1), Node([1], [1.0], combine="replace", passed=EXIT))
    plan = Plan(costs, RawFeatures([0, 1]), nodes, [0.0], link="logistic", classes=np.array([0, 1]))
    chance = np.random.default_rng(1).random(
        len(sure)
    )  # ties in the order of the rows would tell calibration rows apart
    rank = np.argsort(np.lexsort((chance, sure)))
    share = 0.5 + 0.5 * (rank + 0.5) / len(sure)  # confidences are no probabilities
    odds = np.log(share / (1 - share))
    X = np.column_stack([np.where(label == 1, odds, -odds), np.where(truth == 1, 30.0, -30.0)])
    safe = plan.certified(X[:N_CALIBRATION], of="agreement", target=target, delta=DELTA)
    rest = X[N_CALIBRATION:]
    right = np.r_[np.ones(N_CALIBRATION), safe.predict(rest) == truth[N_CALIBRATION:]]
    paid = np.r_[np.full(N_CALIBRATION, sum(prices)), safe.predict_cost(rest)]
    return float(right.mean()), float(paid.mean())


def theirs(
    label: Array, sure: Floats, truth: Array, prices: tuple[float, float], target: float, seed: int
) -> tuple[float, float]:
    """The same by BARGAIN: it samples labels of the best service as it needs them."""
    from BARGAIN import BARGAIN_A, Oracle, Proxy

    class Cheap(Proxy):  # type: ignore[misc]
        def proxy_func(self, record: str) -> tuple[int, float]:
            return int(label[int(record)]), float(sure[int(record)])

    class Best(Oracle):  # type: ignore[misc]
        def oracle_func(self, record: str, said: int) -> tuple[bool, int]:
            return bool(said == truth[int(record)]), int(truth[int(record)])

    proxy, oracle = Cheap(verbose=False, max_workers=1), Best(verbose=False, max_workers=1)
    method = BARGAIN_A(proxy, oracle, target=target, delta=DELTA, verbose=False, seed=seed)
    out = method.process([str(i) for i in range(len(label))])
    right = np.array([int(o) for o in out]) == truth
    return float(right.mean()), prices[0] + prices[1] * oracle.get_number_preds() / len(label)


def main(n_draws: int = 20) -> None:
    """Print agreement, violations and cost of both."""
    try:
        import BARGAIN  # noqa: F401
    except ImportError:
        print("BARGAIN is not installed (pip install bargain): only our figures.")
        methods = {"miserly": ours}
    else:
        methods = {"miserly": ours, "BARGAIN": theirs}
    for name in PAIRS:
        *data, cheap, best = services(name)
        for target in TARGETS:
            print(
                f"{name}, agreement {target:g}, δ {DELTA:g}, {N_ROWS} texts, {n_draws} draws; all by the best: {best:g}"
            )
            for method, run in methods.items():
                found = []
                for seed in range(n_draws):
                    rows = np.random.default_rng(seed).permutation(len(data[0]))[:N_ROWS]
                    more = () if run is ours else (seed,)
                    found.append(run(*(part[rows] for part in data), (cheap, best), target, *more))
                right, cost = np.array(found).T
                missed = f"below target {np.mean(right < target):.0%}"
                print(
                    f"  {method:8} agreement {right.mean():.4f}, {missed}, cost {cost.mean():.3f} ± {cost.std():.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
