"""A LightGBM ranker of 300 trees on MQ2008, made cheaper with training rows.

`python -m benchmarks.cheaper_ranker` prints, for each fold, what a small ranker in front of the imported one saves and
what it does to NDCG@10. The settings of a fold are chosen on its validation rows; its test rows are looked at once.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import lightgbm
import numpy as np

import miserly as ms
from miserly.datasets import read_letor

TRADEOFFS, ROUNDS = (1e-4, 3e-5), (20, 40)
TIMES = 3.2  # cheaper at least, on validation rows: 3 on others, with a margin
N_BOOTSTRAP = 5000


class Part(NamedTuple):
    """Documents, their grades and their queries."""

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray


def ndcg(score: np.ndarray, part: Part, k: int = 10) -> np.ndarray:
    """NDCG@10 of each query; 0 where no document is relevant."""
    found = []
    for q in np.unique(part.qid):
        rows = part.qid == q
        gain = 2.0 ** part.y[rows] - 1.0
        discount = np.where(np.arange(len(gain)) < k, 1.0 / np.log2(np.arange(len(gain)) + 2.0), 0.0)
        best = np.sort(gain)[::-1] @ discount
        found.append(gain[np.argsort(-score[rows], kind="stable")] @ discount / best if best > 0 else 0.0)
    return np.array(found)


def parts() -> list[Part]:
    folder = Path(os.environ.get("MISERLY_DATA", Path(__file__).parents[2] / "shared" / "data")) / "mq2008"
    read = [read_letor(folder / f"S{i}.txt.gz", 46) for i in range(1, 6)]
    return [Part(part.X.astype(np.float64), part.y, part.qid) for part in read]


def fold(data: list[Part], number: int, costs: ms.CostTable) -> tuple[np.ndarray, float, float]:
    """The change of NDCG@10 of each test query, and the mean costs of the whole and of the cheaper plan."""
    train = Part(*(np.concatenate([getattr(data[(number + i) % 5], f) for i in range(3)]) for f in Part._fields))
    validation, test = data[(number + 3) % 5], data[(number + 4) % 5]
    sizes = np.diff(np.r_[0, np.flatnonzero(train.qid[1:] != train.qid[:-1]) + 1, len(train.qid)])
    model = lightgbm.LGBMRanker(n_estimators=300, learning_rate=0.05, verbose=-1, n_jobs=1)
    whole = ms.import_plan(model.fit(train.X, train.y, group=sizes), costs)
    best, chosen = -np.inf, None
    before, paid = ndcg(whole.predict(validation.X), validation), whole.predict_cost(validation.X).mean()
    for tradeoff in TRADEOFFS:
        small = ms.GreedyMiserRanker(whole.costs, tradeoff=tradeoff, n_estimators=30, charge="path")
        front = small.fit(train.X, train.y, qid=train.qid).plan_
        for rounds in ROUNDS:
            plan = ms.put_in_front(front, whole, train.X, keep=10, rounds=rounds)
            change = ndcg(plan.rank_score(validation.X, validation.qid), validation) - before
            least = change.mean() - 1.96 * change.std() / len(change) ** 0.5
            if paid / plan.predict_cost(validation.X, validation.qid).mean() >= TIMES and least > best:
                best, chosen = least, (plan, tradeoff, rounds)
    if chosen is None:
        raise ValueError("No setting is cheap enough on the validation rows of this fold.")
    plan = chosen[0]
    change = ndcg(plan.rank_score(test.X, test.qid), test) - ndcg(whole.predict(test.X), test)
    costs_of = whole.predict_cost(test.X).mean(), plan.predict_cost(test.X, test.qid).mean()
    print(f"| {number + 1} | {chosen[1:]} | {costs_of[0]:.0f} | {costs_of[1]:.0f} | {change.mean():+.4f} |")
    return change, *costs_of


def main() -> None:
    """Print the table and the interval over all test queries."""
    data = parts()
    costs = ms.CostTable.from_file(
        Path(os.environ.get("MISERLY_DATA", Path(__file__).parents[2] / "shared" / "data")) / "mq2008" / "costs.toml"
    )
    print("| fold | tradeoff, rounds | mean cost | cheaper | NDCG@10 |\n|---|---|---|---|---|")
    found = [fold(data, number, costs) for number in range(5)]
    change = np.concatenate([part[0] for part in found])
    times = sum(part[1] for part in found) / sum(part[2] for part in found)
    rng = np.random.default_rng(0)
    means = [rng.choice(change, len(change)).mean() for _ in range(N_BOOTSTRAP)]
    low, high = np.quantile(means, [0.025, 0.975])
    print(f"{times:.2f} times cheaper; NDCG@10 {change.mean():+.4f}, from {low:+.4f} to {high:+.4f} (bootstrap)")


if __name__ == "__main__":
    main()
