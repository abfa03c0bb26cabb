"""`miserly warmup`: compile before the first request, not during it."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import click

from miserly.cli.progress import waiting


@click.command()
def warmup() -> None:
    """Compile the loops that training and prediction use, once per machine, by fitting tiny problems of each kind."""
    import numpy as np

    from miserly.costs import CostTable
    from miserly.estimators import GreedyMiserClassifier, GreedyMiserRanker, GreedyMiserRegressor
    from miserly.plan import Node, Plan, RawFeatures, RBFKernels

    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    X[::7, 1] = np.nan
    began = time.perf_counter()
    targets = {"two": X[:, 0] > 0, "three": np.digitize(X[:, 0], (-0.5, 0.5)), "numbers": X[:, 0]}
    params: dict[str, Any] = {"costs": CostTable.uniform(), "n_estimators": 4, "min_samples_leaf": 5}
    with waiting("compiling"):
        for charge in ("learner", "path"):
            for name, y in targets.items():
                kind = GreedyMiserRegressor if name == "numbers" else GreedyMiserClassifier
                model = kind(**params, charge=charge).fit(X, y)
                model.predict(X, budget=2.0)
                _walk(model.plan_)
        for learners in (RawFeatures(np.array([0, 1])), RBFKernels(np.array([0, 2]), X[:3, [0, 2]], 0.5)):  # type: ignore[arg-type]
            node = Node(np.array([0, 1], np.int32), np.array([0.5, 0.5]))
            _walk(Plan(CostTable.per_feature([1.0] * 4), learners, (node,), np.zeros(1), means=np.zeros(4)))
        grades = targets["three"]
        GreedyMiserRanker(**params).fit(X, grades, qid=np.repeat(np.arange(8), 10)).predict(X)
    click.echo(f"Compiled in {time.perf_counter() - began:.0f} s.")


def _walk(plan: Any) -> None:
    """One row, and a few, through a plan as a server reads it: its arrays are read-only then."""
    import numpy as np

    from miserly.plan import load_plan

    with tempfile.TemporaryDirectory() as folder:
        plan.save(Path(folder, "small.plan"))
        loaded = load_plan(Path(folder, "small.plan"))
    walk = loaded.start()
    while not walk.done:
        walk.supply(dict.fromkeys(walk.needs, 0.0))
    _ = walk.best
    loaded.predict(np.zeros((3, len(plan.costs.features))))
