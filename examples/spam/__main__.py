"""`python -m examples.spam [FOLDER] [--budget MS] [--out FOLDER]`: learn to tell spam for little CPU, and run it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

import miserly as ms
from examples.spam.mails import generate, read_folder
from examples.spam.pipeline import (
    Prepared,
    as_row,
    choose,
    extract,
    extract_everything,
    fit_blind,
    prepare_as_paid,
    sweep,
    sweep_greedy,
)
from examples.spam.serving import save
from miserly.runtime import Answer


def main(arguments: Sequence[str] | None = None) -> None:
    """Read mails, measure, learn, choose, run, and tell what it took."""
    parser = argparse.ArgumentParser(prog="python -m examples.spam", description=__doc__)
    parser.add_argument(
        "folder", nargs="?", type=Path, help="mails in folders named …ham… and …spam…; made up if absent"
    )
    parser.add_argument("--budget", type=float, help="milliseconds of CPU per mail, on average")
    parser.add_argument("--out", type=Path, help="folder for the plan and what the extractors learnt, to serve them")
    given = parser.parse_args(arguments)

    mails = generate() if given.folder is None else read_folder(given.folder)
    print(f"{len(mails.raw)} mails, {int(mails.is_spam.sum())} of them spam. Extracting everything once, to learn …")
    corpus = extract(mails.raw, mails.is_spam)
    rest, test = train_test_split(np.arange(len(mails.raw)), test_size=0.2, stratify=mails.is_spam, random_state=0)
    data = prepare_as_paid(corpus, rest, test)
    blind = fit_blind(data)
    print("\nWhat each purchase takes, with the runner's own time (ms of CPU):")
    print("  " + ", ".join(f"{name} {price:.3f}" for name, price in data.costs.prices.items()))

    fronts = [sweep_greedy(data, "learner"), sweep_greedy(data, "path"), sweep(data)]
    chosen = _choose(fronts, given.budget)
    print("\nChosen: " + chosen.plan_.summary())
    if given.out is not None:
        save(chosen.plan_, data.knowledge, given.out)
    _run(data, blind.plan_, chosen.plan_, [corpus.raw[i] for i in test])


def _choose(fronts: Sequence[ms.Frontier], budget: float | None) -> Any:
    """What the last sweep offers for the wish; tells of the others too, to compare."""
    rule = "the best within the budget" if budget is not None else "the cheapest within 0.2 points of its best"
    print(f"\nOf each sweep {rule} (validation mails):")
    for front in fronts[:-1]:
        print(f"  {front.name:<26} {_offer(front, budget)}")
    point = choose(fronts[-1], budget)
    print(f"  {fronts[-1].name:<26} {point.validation.quality:.2%} for {point.validation.cost['mean']:.3f} ms: taken")
    return point.model


def _offer(front: ms.Frontier, budget: float | None) -> str:
    try:
        point = choose(front, budget)
    except ValueError as nothing:
        return str(nothing)
    return f"{point.validation.quality:.2%} for {point.validation.cost['mean']:.3f} ms"


def _run(data: Prepared, blind: ms.Plan, plan: ms.Plan, mails: Sequence[bytes]) -> None:
    """Both ways over the test mails, one at a time."""

    def everything() -> list[Any]:
        rows = (as_row(data.extractors, extract_everything(data.extractors, mail)) for mail in mails)
        return [blind.predict(np.array([row]))[0] for row in rows]

    with ms.OnDemand(plan, data.extractors) as runner:
        everything_ms, labels = _timed(everything, len(mails))
        on_demand_ms, answers = _timed(lambda: [runner.predict(mail) for mail in mails], len(mails))
    answered: list[Answer] = answers
    right = [np.mean(np.array(given) == data.y["test"]) for given in (labels, [a.value for a in answered])]
    priced = float(np.mean([a.cost for a in answered]))
    print(f"\n{len(mails)} test mails           accuracy   CPU ms per mail")
    print(f"  everything, every mail   {right[0]:7.2%}   {everything_ms:8.3f}")
    less = everything_ms / on_demand_ms
    print(f"  on demand                {right[1]:7.2%}   {on_demand_ms:8.3f}   {less:.1f} times less")
    print(f"  priced for on demand               {priced:8.3f}   {priced / on_demand_ms:.0%} of what was measured")
    print(f"\nThe most expensive answer:\n{max(answered, key=lambda a: a.cost).trace()}")


def _timed(work: Callable[[], list[Any]], n: int) -> tuple[float, list[Any]]:
    """Milliseconds of CPU per mail, the better of two passes, and what came of it."""
    passes = []
    for _ in range(2):
        began = process_time()
        result = work()
        passes.append(process_time() - began)
    return 1e3 * min(passes) / n, result


if __name__ == "__main__":
    main()
