"""`python -m examples.search [--out FILE]`: learn to rank within 20 ms, and rank 200 documents for some queries."""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import miserly as ms
from examples.search.corpus import Listed, listed
from examples.search.extractors import COSTS, EXTRACTORS
from miserly.baselines import EarlyExitRanker
from miserly.metrics import ndcg
from miserly.runtime import Pair, Ranking

N_TRAIN, N_TEST, N_DOCUMENTS = 150, 40, 200
DEADLINE = 0.020
CHEAP, ALL = 30, 100  # rounds of boosting before the expensive service, and in all
N_EXPENSIVE = 30  # documents that it scores


def main(arguments: Sequence[str] | None = None) -> None:
    """Learn, rank, and tell how good and how late."""
    parser = argparse.ArgumentParser(prog="python -m examples.search", description=__doc__)
    parser.add_argument("--out", type=Path, help="plan file, to serve it")
    given = parser.parse_args(arguments)
    rng = np.random.default_rng(0)
    train = [listed(rng, 40) for _ in range(N_TRAIN)]
    test = [listed(rng, N_DOCUMENTS) for _ in range(N_TEST)]
    everything, in_time = learn(train)
    print(in_time.summary() + "\n")
    print(f"{N_TEST} queries of {N_DOCUMENTS} documents     NDCG@10   p50 ms   p99 ms   priced ms   stopped")
    report("everything, no deadline", test, rank_all(everything, test, None))
    report("everything, 20 ms", test, rank_all(everything, test, DEADLINE))
    report(f"expensive service for {N_EXPENSIVE}, 20 ms", test, rank_all(in_time, test, DEADLINE))
    if given.out is not None:
        in_time.save(given.out)


def learn(lists: Sequence[Listed]) -> tuple[ms.Plan, ms.Plan]:
    """A ranker that looks at everything, and one that asks the expensive service about the best documents only."""
    X = np.vstack([matrix(one) for one in lists])
    y = np.concatenate([one.grades for one in lists])
    qid = np.repeat(np.arange(len(lists)), [len(one.documents) for one in lists])
    costs = ms.CostTable(COSTS.features, COSTS.needs, {**COSTS.prices, "site": 1e6, "meaning": 1e6})
    model = ms.GreedyMiserRanker(costs, tradeoff=1e-5, n_estimators=CHEAP, warm_start=True).fit(X, y, qid=qid)
    n_cheap = len(model.plan_.nodes)
    model.set_params(costs=COSTS, n_estimators=ALL).fit(X, y, qid=qid)
    exits = EarlyExitRanker(model.plan_, rule="rank", k=N_EXPENSIVE, threshold=0.0, exits=[n_cheap]).fit(X, y, qid=qid)
    return model.plan_, exits.plan_


def matrix(one: Listed) -> np.ndarray:
    """Everything about all documents of a list."""
    pairs = [Pair(one.query, document) for document in one.documents]
    columns: list[Any] = []
    for e in EXTRACTORS:
        found = asyncio.run(e.function(pairs)) if e.is_async else e.function(pairs)
        columns += [list(column) for column in zip(*found)] if len(e.yields) > 1 else [found]
    return np.array(columns, np.float64).T


def rank_all(plan: ms.Plan, lists: Sequence[Listed], deadline: float | None) -> list[Ranking]:
    """One list after the other, on an event loop as a server does it."""

    async def run() -> list[Ranking]:
        async with ms.OnDemand(plan, EXTRACTORS) as runner:
            await runner.arank(lists[0].query, lists[0].documents)
            return [await runner.arank(one.query, one.documents, deadline=deadline) for one in lists]

    return asyncio.run(run())


def report(name: str, lists: Sequence[Listed], rankings: Sequence[Ranking]) -> None:
    """One line of the table."""
    quality = np.mean([quality_of(one, ranking) for one, ranking in zip(lists, rankings)])
    median, late = 1e3 * np.quantile([ranking.elapsed for ranking in rankings], [0.5, 0.99])
    cost = np.mean([ranking.cost for ranking in rankings])
    stopped = Counter(answer.stopped for ranking in rankings for answer in ranking.answers)
    why = ", ".join(f"{reason} {n / sum(stopped.values()):.0%}" for reason, n in stopped.most_common())
    print(f"  {name:<32} {quality:.3f}  {median:7.1f}  {late:7.1f}  {cost:10.1f}   {why}")


def quality_of(one: Listed, ranking: Ranking) -> float:
    """NDCG of the first ten."""
    places = np.empty(len(one.documents))
    places[list(ranking.order)] = np.arange(len(one.documents))
    return float(ndcg(one.grades, -places, k=10))


if __name__ == "__main__":
    main()
