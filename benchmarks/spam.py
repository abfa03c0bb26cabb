"""Mails on demand against extracting everything: `python -m benchmarks.spam [--folds N] [--faults]`.

SpamAssassin's mails in ten stratified folds; a quarter of the others is validation, which alone chooses the model (the
cheapest within 0.2 points of the best there). CPU of a whole test fold, one mail at a time, best of five passes taken
one after the other. `--faults` runs the first fold's model with extractors that raise, hang or are dead.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks.frontier_vs_peers.data import folder
from benchmarks.timing import best_of
from examples.spam.mails import read_folder
from examples.spam.pipeline import (
    Corpus,
    Prepared,
    as_row,
    choose,
    extract,
    extract_everything,
    fit_blind,
    prepare_as_paid,
    sweep,
)
from miserly.experiments import interval
from miserly.plan import Plan
from miserly.runtime import Answer, Extractor, OnDemand

SEED, N_FOLDS, N_PASSES = 11, 10, 5
ALLOWED, GOAL, TOLERANCE = 0.3, 5.0, 0.2
N_REQUESTS, DEADLINE, HANGS = 10_000, 0.05, 0.2


class Fold(NamedTuple):
    """What one fold showed: accuracies, and milliseconds of CPU per mail."""

    blind: float
    on_demand: float
    everything: float
    extraction: float
    measured: float
    runner: float
    priced: float
    n_calls: float


def trained(corpus: Corpus, rest: np.ndarray, test: np.ndarray, seed: int) -> tuple[Prepared, Plan, Plan]:
    """The data at the prices paid, the cost-blind plan and the chosen one."""
    data = prepare_as_paid(corpus, rest, test, seed)
    return data, fit_blind(data).plan_, choose(sweep(data)).model.plan_


def measure(data: Prepared, blind: Plan, plan: Plan, mails: Sequence[bytes]) -> tuple[Fold, list[Answer]]:
    """Both ways over the test mails, and two parts of them: extraction alone, the runner alone."""
    extractors = data.extractors

    def everything() -> list[Any]:
        rows = (as_row(extractors, extract_everything(extractors, mail)) for mail in mails)
        return [blind.predict(np.array([row]))[0] for row in rows]

    def extraction() -> None:
        for mail in mails:
            extract_everything(extractors, mail)

    kept = [extract_everything(extractors, mail) for mail in mails]
    remembering = [replace(e, function=partial(_remembered, kept, e.name)) for e in extractors]
    with OnDemand(plan, extractors) as runner, OnDemand(plan, remembering) as alone:
        works = (
            everything,
            extraction,
            lambda: [runner.predict(mail) for mail in mails],
            lambda: [alone.predict(i) for i in range(len(mails))],
        )
        ways = best_of(N_PASSES, *works)
    answers: list[Answer] = ways[2].result
    truth = data.y["test"]
    accuracy = [float(np.mean(np.array(v) == truth)) for v in (ways[0].result, [a.value for a in answers])]
    figures = [1e3 * way.cpu / len(mails) for way in ways]
    priced, n_calls = (float(np.mean(v)) for v in ([a.cost for a in answers], [len(a.calls) for a in answers]))
    return Fold(*accuracy, *figures, priced, n_calls), answers


def _remembered(kept: Sequence[dict[str, Any]], name: str, number: int, *_: Any) -> Any:
    return kept[number][name]


def report(folds: Sequence[Fold], n_mails: int) -> None:
    """The means over the folds, and whether the goals are met."""
    overlap = 1.0 / (len(folds) - 1) if len(folds) > 1 else 0.0
    table = np.array(folds)
    mean = Fold(*table.mean(axis=0))
    loss, half = interval(100 * (table[:, 0] - table[:, 1]), overlap)
    verdict = "met" if loss - half <= ALLOWED else "MISSED"
    print(f"\n{n_mails} mails, {len(folds)} folds, one mail at a time")
    print(f"  accuracy {mean.blind:.2%} with everything, {mean.on_demand:.2%} on demand")
    print(f"  loss {loss:+.2f} ± {half:.2f} points  (not significantly above {ALLOWED}: {verdict})")
    print(f"  CPU per mail: {mean.everything:.3f} ms with everything, {mean.measured:.3f} ms on demand")
    for what, theirs, goal in (
        ("extracting everything and predicting", table[:, 2], None),
        ("extracting everything alone", table[:, 3], GOAL),
    ):
        ratio, spread = interval(theirs / table[:, 4], overlap)
        aim = "" if goal is None else f"  (goal {goal:g}: {'met' if ratio >= goal else 'MISSED'})"
        print(f"  {what} / on demand: {ratio:.2f} ± {spread:.2f} times{aim}")
    ratio, spread = interval(table[:, 6] / table[:, 4], overlap)
    verdict = "met" if abs(ratio - 1) <= TOLERANCE else "MISSED"
    each = np.abs(table[:, 6] / table[:, 4] - 1) <= TOLERANCE
    print(
        f"  priced / measured: {ratio:.2f} ± {spread:.2f}  (within {TOLERANCE:.0%}: {verdict}; {each.sum()} folds are)"
    )
    print(
        f"  the runner's own time is {mean.runner:.3f} ms, {mean.runner / mean.measured:.0%} of the CPU on demand; "
        f"{mean.n_calls:.2f} calls per mail"
    )


def main(n_folds: int = N_FOLDS, faults: bool = False) -> None:
    """Ten folds, then, if asked for, the faults."""
    place: Path = folder() / "spamassassin"
    if not place.is_dir():
        print(f"spam: skipped, {place} is absent (set MISERLY_DATA).")
        return
    mails = read_folder(place)
    corpus = extract(mails.raw, mails.is_spam)
    splits = list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=SEED).split(mails.raw, mails.is_spam))
    folds: list[Fold] = []
    bought: Counter[str] = Counter()
    for number, (rest, test) in enumerate(splits[:n_folds]):
        data, blind, plan = trained(corpus, rest, test, seed=number)
        if faults:
            with_faults(data, plan, [corpus.raw[i] for i in test])
            return
        fold, answers = measure(data, blind, plan, [corpus.raw[i] for i in test])
        folds.append(fold)
        bought.update(name for answer in answers for name in answer.acquired)
        print(f"  fold {number}: " + "  ".join(f"{k} {v:.4g}" for k, v in fold._asdict().items()), flush=True)
    n_asked = sum(len(test) for _, test in splits[: len(folds)])
    report(folds, n_asked)
    print("  bought for: " + ", ".join(f"{name} {n / n_asked:.0%}" for name, n in bought.most_common()))


# ---- faults -------------------------------------------------------------------------------------------------------


class Faults:
    """Extractors of which some calls raise, some hang, and some are dead."""

    def __init__(self, raising: float = 0.0, hanging: float = 0.0, dead: str = "", seed: int = 0) -> None:
        self.raising, self.hanging, self.dead = raising, hanging, dead
        self._draws = np.random.default_rng(seed).random(1 << 16).tolist()
        self._next = count()

    def into(self, extractors: Sequence[Extractor]) -> list[Extractor]:
        """The same extractors with the faults."""
        return [replace(e, function=partial(self._call, e)) for e in extractors]

    def _call(self, e: Extractor, *arguments: Any) -> Any:
        draw = self._draws[next(self._next) % len(self._draws)]
        if e.name == self.dead:
            raise ConnectionError("dead")
        if draw < self.raising:
            raise RuntimeError("a call in ten")
        if draw > 1.0 - self.hanging:
            time.sleep(HANGS)
        return e.function(*arguments)


def with_faults(data: Prepared, plan: Plan, mails: Sequence[bytes]) -> None:
    """Ask again and again with a deadline; tell what was lost, and whether anything reached the caller."""
    with OnDemand(plan, data.extractors) as runner:
        clean = np.mean([runner.predict(mail).value == y for mail, y in zip(mails, data.y["test"])])
    used = sorted({name for f in plan.used_features for name in plan.costs.needs[plan.costs.features[f]]})
    print(f"\nFaults, a deadline of {DEADLINE * 1e3:g} ms; without faults {clean:.2%} are right")
    cases = {"none": Faults(), "10 % raise": Faults(raising=0.1), "5 % hang": Faults(hanging=0.05)}
    cases["10 % raise, 5 % hang"] = Faults(raising=0.1, hanging=0.05)
    for name, faults in cases.items():
        _ask(name, faults, data, plan, mails, N_REQUESTS, float(clean))
    for name in used:
        _ask(f"{name} dead", Faults(dead=name), data, plan, mails, N_REQUESTS, float(clean))


def _ask(
    case: str, faults: Faults, data: Prepared, plan: Plan, mails: Sequence[bytes], n_requests: int, clean: float
) -> None:
    errors, right, reasons, late = 0, 0, Counter[str](), 0
    runner = OnDemand(plan, faults.into(data.extractors))
    for i in range(n_requests):
        k = i % len(mails)
        began = time.perf_counter()
        try:
            answer = runner.predict(mails[k], deadline=DEADLINE)
        except Exception:
            errors += 1
            continue
        late += time.perf_counter() - began > 2 * DEADLINE
        reasons[answer.stopped or "NO REASON"] += 1
        right += answer.value == data.y["test"][k]
    runner.close(timeout=2 * HANGS)
    shown = ", ".join(f"{reason} {n / n_requests:.1%}" for reason, n in reasons.most_common(6))
    print(
        f"  {case:<22} {n_requests} requests, {errors} exceptions, {reasons['NO REASON']} without a reason, "
        f"{late} later than two deadlines; {100 * (clean - right / n_requests):+.2f} points lost; {shown}",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folds", type=int, default=N_FOLDS)
    parser.add_argument("--faults", action="store_true")
    given = parser.parse_args()
    main(given.folds, given.faults)
