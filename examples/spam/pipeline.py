"""From mails to a plan: extract once, learn, price, sweep, choose. The command and the benchmark both go this way."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

import miserly as ms
from examples.spam.extractors import all_extractors
from examples.spam.learning import LEARNT, Evidence, Knowledge, learn, out_of_fold
from miserly.baselines import EarlyExitClassifier
from miserly.runtime import Extractor, profile

N_PROFILED, N_PAID = 300, 500
N_CHEAP, N_EXPENSIVE = 30, 150
CHEAP_TRADEOFF = 0.03
TRADEOFFS = (1e-4, 3e-4)
GREEDY_TRADEOFFS = (1e-3, 1e-2, 3e-2, 1e-1)
THRESHOLDS = (0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.99, 1.0)
OUT_OF_REACH = 1e6
ALLOWED_LOSS = 0.002  # on validation mails: the best of many there is flattered, so ask for more than 0.3 points
N_PASSES = 7
ENOUGH_MAILS = 20


@dataclass(frozen=True)
class Corpus:
    """Mails of which everything was extracted once: values that no training changes, and evidence to learn from."""

    raw: Sequence[bytes]
    is_spam: NDArray[np.bool_]
    values: NDArray[np.float64]
    evidence: Sequence[Evidence]


def extract_everything(extractors: Sequence[Extractor], mail: bytes) -> dict[str, Any]:
    """What every extractor returns for a mail; they stand in an order in which they can run."""
    results: dict[str, Any] = {}
    for e in extractors:
        results[e.name] = e.function(mail, *[results[name] for name in e.needs])
    return results


def as_row(extractors: Sequence[Extractor], results: dict[str, Any]) -> list[float]:
    """The values of all features, in the order of the extractors."""
    row: list[float] = []
    for e in extractors:
        found = results[e.name]
        row += [found[name] for name in e.yields] if isinstance(found, dict) else found if e.yields else []
    return row


def feature_names(extractors: Sequence[Extractor]) -> list[str]:
    """The columns."""
    return [name for e in extractors for name in e.yields]


def extract(raw: Sequence[bytes], is_spam: NDArray[np.bool_]) -> Corpus:
    """Run everything on every mail, with nothing learnt yet."""
    extractors = all_extractors(Knowledge())
    values = np.array([as_row(extractors, extract_everything(extractors, mail)) for mail in raw])
    return Corpus(raw, is_spam, values, [Evidence.of(mail) for mail in raw])


@dataclass(frozen=True)
class Prepared:
    """One split, ready to train on: the extractors with what they learnt, their prices, and the matrices."""

    extractors: list[Extractor]
    costs: ms.CostTable
    X: dict[str, NDArray[np.float64]]
    y: dict[str, NDArray[np.int64]]
    rows: dict[str, NDArray[np.intp]]
    knowledge: Knowledge


def prepare(corpus: Corpus, rows: dict[str, NDArray[np.intp]], n_profiled: int = N_PROFILED, seed: int = 0) -> Prepared:
    """Learn from the mails in `rows["train"]`, measure the extractors on some of them, and fill the matrices."""
    train = rows["train"]
    evidence = [corpus.evidence[i] for i in train]
    knowledge = learn(evidence, corpus.is_spam[train])
    extractors = all_extractors(knowledge)
    names = feature_names(extractors)
    learnt = [names.index(name) for name in LEARNT]
    X = {part: corpus.values[these] for part, these in rows.items()}
    for part, these in rows.items():
        if part == "train":
            X[part][:, learnt] = out_of_fold(evidence, corpus.is_spam[train], seed=seed)
        else:
            X[part][:, learnt] = [knowledge.figures(corpus.evidence[i]) for i in these]
    sample = np.random.default_rng(seed).choice(train, min(n_profiled, len(train)), replace=False)
    measured = ms.CostTable.from_profile(profile(extractors, [corpus.raw[i] for i in sample]))
    costs = ms.CostTable(features=names, needs=measured.needs, prices=measured.prices, unit=measured.unit)
    y = {part: corpus.is_spam[these].astype(np.int64) for part, these in rows.items()}
    return Prepared(extractors, costs, X, y, rows, knowledge)


def prepare_as_paid(corpus: Corpus, rest: NDArray[np.intp], test: NDArray[np.intp], seed: int = 0) -> Prepared:
    """A quarter of the rest is validation; the prices are those that a first choice pays there. Test mails are not
    looked at."""
    train, validation = train_test_split(rest, test_size=0.25, stratify=corpus.is_spam[rest], random_state=seed)
    data = prepare(corpus, {"train": train, "validation": validation, "test": test}, seed=seed)
    first = choose(sweep(data)).model
    return as_paid(data, first.plan_, [corpus.raw[i] for i in validation[:N_PAID]])


def fit_blind(data: Prepared) -> Any:
    """The model that looks at everything, whatever it costs."""
    model = ms.GreedyMiserClassifier(costs=data.costs, tradeoff=0.0, n_estimators=N_CHEAP + N_EXPENSIVE, n_jobs=1)
    return model.fit(data.X["train"], data.y["train"])


def sweep_greedy(data: Prepared, charge: str) -> ms.Frontier:
    """Greedy Miser as it is, every mail the same ("learner") or each its own splits ("path")."""
    model = ms.GreedyMiserClassifier(costs=data.costs, n_estimators=N_CHEAP + N_EXPENSIVE, charge=charge, n_jobs=1)
    return ms.frontier(model, *_parts(data), grid={"tradeoff": GREEDY_TRADEOFFS}, name=f"greedy miser, by {charge}")


def sweep(data: Prepared) -> ms.Frontier:
    """Models in two stages that let go of a mail after the first if they are sure enough: how sure, at which prices.

    Greedy Miser alone buys the expensive words at its first split, since they tell most. So the first stage is fitted
    as if MIME parsing could not be paid, and the second goes on from there at the true prices.
    """
    X, y = _parts(data)[0]
    out_of_reach = replace(data.costs, prices={**data.costs.prices, "mime": OUT_OF_REACH})
    cheap = ms.GreedyMiserClassifier(
        costs=out_of_reach, tradeoff=CHEAP_TRADEOFF, n_estimators=N_CHEAP, n_jobs=1, warm_start=True
    )
    cheap.fit(X, y)
    plans = []
    for tradeoff in TRADEOFFS:
        both = deepcopy(cheap).set_params(costs=data.costs, tradeoff=tradeoff, n_estimators=cheap.n_iter_ + N_EXPENSIVE)
        plans.append(both.fit(X, y).plan_)
    model = EarlyExitClassifier(plans[0], exits=[cheap.n_iter_])
    grid = {"estimator": plans, "threshold": THRESHOLDS}
    return ms.frontier(model, *_parts(data), grid=grid, metric="accuracy", name="two stages with an exit")


def _parts(data: Prepared) -> list[tuple[NDArray[np.float64], NDArray[np.int64]]]:
    return [(data.X[part], data.y[part]) for part in ("train", "validation")]


def choose(front: ms.Frontier, budget: float | None = None) -> Any:
    """The best model within a budget, or the cheapest within 0.2 points of the best (on validation mails)."""
    if budget is not None:
        return front.choose_point(budget=budget)
    best = max(point.validation.quality for point in front.points)
    return front.choose_point(quality=best - ALLOWED_LOSS)


def as_paid(data: Prepared, plan: ms.Plan, mails: Sequence[bytes]) -> Prepared:
    """The same data at the prices that a plan really pays: measured on the mails for which it buys, with the runner's
    own time per call.

    A mail that needs a second look is longer than others, and a call of some microseconds costs as much to arrange.
    """
    with ms.OnDemand(plan, data.extractors) as runner:
        passes = []
        for _ in range(N_PASSES):
            began = process_time()
            answers = [runner.predict(mail) for mail in mails]
            passes.append(process_time() - began)
    measured = profile(data.extractors, mails)
    seconds, n_calls, prices = 0.0, 0, {}
    for name, cpu in measured.cpu.items():
        paid = cpu[[name in answer.acquired for answer in answers]]
        seconds, n_calls = seconds + float(paid.sum()), n_calls + len(paid)
        prices[name] = float(np.mean(paid if len(paid) >= ENOUGH_MAILS else cpu))
    handling = max(0.0, min(passes) - seconds) / max(n_calls, 1)
    return replace(data, costs=replace(data.costs, prices={a: 1e3 * (s + handling) for a, s in prices.items()}))
