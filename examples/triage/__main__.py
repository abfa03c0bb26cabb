"""`python -m examples.triage [--budget CAD] [--out FILE] [--patients N]`: which patient needs which test."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

import miserly as ms
from examples.triage.patients import one_by_one, patients
from miserly.baselines import PathTreeClassifier

N_ROUNDS = 60
ALLOWED_LOSS = 0.003


def main(arguments: Sequence[str] | None = None) -> None:
    """Sweep, choose, and walk through some patients."""
    parser = argparse.ArgumentParser(prog="python -m examples.triage", description=__doc__)
    parser.add_argument("--budget", type=float, help="CAD a patient, on average")
    parser.add_argument("--out", type=Path, help="plan file, to serve it")
    parser.add_argument("--patients", type=int, default=6000, help="how many to make up")
    given = parser.parse_args(arguments)
    X, y, costs, source = patients(given.patients)
    rest, test = train_test_split(np.arange(len(y)), test_size=0.25, stratify=y, random_state=0)
    train, validation = train_test_split(rest, test_size=1 / 3, stratify=y[rest], random_state=0)
    parts = {"train": (X[train], y[train]), "validation": (X[validation], y[validation]), "test": (X[test], y[test])}
    often = max(np.mean(y[test] == c) for c in np.unique(y))
    print(f"{len(y)} patients ({source}). Everything costs {costs.price(costs.features):.2f} {costs.unit} a patient;")
    print(f"to call everyone well is right for {often:.1%}.\n")

    models = {
        "every test has its own price": (one_by_one(costs), "learner"),
        "tests share a draw": (costs, "learner"),
        "and patients differ (by path)": (costs, "path"),
    }
    print(f"{'':<34}accuracy on test   {costs.unit} a patient   (chosen on validation)")
    blind = ms.GreedyMiserClassifier(costs, tradeoff=0, n_estimators=N_ROUNDS, min_samples_leaf=5, n_jobs=1)
    show("blind to cost", blind.fit(*parts["train"]), *parts["test"])
    for name, (prices, charge) in models.items():
        model = ms.GreedyMiserClassifier(prices, charge=charge, n_estimators=N_ROUNDS, min_samples_leaf=5, n_jobs=1)
        front = ms.frontier(model, **parts, metric="accuracy")
        show(name, choose(front, given.budget), *parts["test"], costs)
    front = ms.frontier(PathTreeClassifier(costs, min_samples_leaf=5), **parts, metric="accuracy")
    tree = choose(front, given.budget)
    show("one tree, charged by path", tree, *parts["test"])
    if given.out is not None:
        tree.plan_.save(given.out)
    for label in np.unique(y):
        walk_through(tree.plan_, X[test][y[test] == label][0], str(label))


def choose(front: ms.Frontier, budget: float | None) -> Any:
    """The best within the budget, or the cheapest within 0.3 points of the best."""
    if budget is not None:
        return front.choose(budget=budget)
    return front.choose(quality=max(p.validation.quality for p in front.points) - ALLOWED_LOSS)


def show(name: str, model: Any, X: np.ndarray, y: np.ndarray, costs: ms.CostTable | None = None) -> None:
    """One line of the table, at the true prices."""
    plan = model.plan_ if costs is None else replace(model.plan_, costs=costs)
    print(f"  {name:<32}{np.mean(model.predict(X) == y):12.2%}{plan.predict_cost(X).mean():16.2f}")


def walk_through(plan: ms.Plan, row: np.ndarray, label: str) -> None:
    """What one patient is asked and tested for, and what is thought after each."""
    values = dict(zip(plan.costs.features, row))
    print(f"\nA patient who is {label}:")
    walk = plan.start()
    while not walk.done:
        bought = walk.needs
        owned = {*walk.bought, *bought}
        walk.supply({f: values[f] for f, needs in plan.costs.needs.items() if owned.issuperset(needs)})
        print(f"  buys {', '.join(bought)}: {walk.cost:.2f} {plan.costs.unit} so far")
    print(f"  answer: {walk.best.value}, for {walk.cost:.2f} {plan.costs.unit}")


if __name__ == "__main__":
    main()
