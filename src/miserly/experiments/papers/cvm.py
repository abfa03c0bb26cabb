"""Compressed vector machines (Xu, thesis 2014, chapter 4): figures 4.2 and 4.3.

4.2: 600 points, a blob inside a ring, compressed to 8 vectors (3 %). 4.3: accuracy against the number of vectors on
those of the six sets that are there; C and gamma chosen on a fifth of the training rows; CVM beside the vectors that
LARS picks and the reduced SVM.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from miserly.baselines import ReducedSVC
from miserly.datasets import circle
from miserly.estimators import CompressedSVC
from miserly.experiments._claims import fact
from miserly.experiments._study import Bench, Study, StudyResult
from miserly.experiments._svm_sets import TASKS, SvmTask
from miserly.report import CloudPanel, LinePanel

N_VECTORS, N_POINTS = 8, 600
RATIOS = (0.01, 0.03, 0.1)
SEEDS, QUICK_SEEDS = range(100, 120), range(100, 105)
NEAR = 0.5
SAME = 0.005
MANY: dict[str, Any] = {"n_starts": 1, "max_iter": 60}


def figure_4_2(bench: Bench) -> StudyResult:
    """The boundary of the full machine, that of the vectors picked, and that of the vectors moved."""
    out, seeds = StudyResult(), QUICK_SEEDS if bench.quick else SEEDS
    found = [bench.record("circle", None, partial(_circle_figures, s), seed=s) for s in seeds]
    out.rows = [dict(zip(("seed", "vectors", "picked", "moved", "drop"), (s, *f))) for s, f in zip(seeds, found)]
    n, picked, moved, drop = np.median(found, axis=0)
    out.claims = [
        fact("circle", "the full machine has 248 support vectors", f"median {n:.0f}", 150 <= n <= 350, True),
        fact(
            "circle",
            "8 moved vectors have nearly the boundary of the full machine",
            f"agreement near the data {moved:.3f}, accuracy lost {100 * drop:.2f} points",
            moved >= 0.97,
            True,
        ),
        fact(
            "circle",
            "8 vectors that LARS picks do not",
            f"agreement near the data {picked:.3f} (coefficients refitted)",
            picked < 0.97,
            True,
        ),
    ]
    out.panels = list(_circle(seeds[0])[1])
    return out


def _circle_figures(seed: int) -> tuple[float, ...]:
    return _circle(seed)[0]


def _circle(seed: int) -> tuple[tuple[float, ...], list[CloudPanel]]:
    data = circle(N_POINTS, seed)
    svc = SVC(C=0.15, gamma=0.5).fit(data.X, data.y)
    still = CompressedSVC.from_sklearn(svc, data.X, n_vectors=N_VECTORS, n_starts=0, max_iter=0)
    moved = CompressedSVC.from_sklearn(svc, data.X, n_vectors=N_VECTORS)
    ticks = np.linspace(-5, 5, 81)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    near = np.array([((data.X - g) ** 2).sum(axis=1).min() <= NEAR**2 for g in grid])
    full = svc.decision_function(grid)
    scores = [model.decision_function(grid) for model in (still, moved)]
    sides = [float(np.mean((s > 0)[near] == (full > 0)[near])) for s in scores]
    drop = float(np.mean(svc.predict(data.X) == data.y) - np.mean(moved.predict(data.X) == data.y))
    clouds = [(data.X[data.y == label].T[0], data.X[data.y == label].T[1]) for label in (1, -1)]
    shape = (len(ticks), len(ticks))
    panels = [CloudPanel(f"full machine: {len(svc.support_)} vectors", clouds, zero=[(ticks, full.reshape(shape))])]
    for title, model, score in (("picked", still, scores[0]), ("moved", moved, scores[1])):
        vectors = model.plan_.dictionary.vectors  # type: ignore[attr-defined]
        panels.append(
            CloudPanel(
                f"{title}: {N_VECTORS} vectors",
                clouds,
                vectors=(vectors[:, 0], vectors[:, 1]),
                zero=[(ticks, full.reshape(shape)), (ticks, score.reshape(shape))],
            )
        )
    return (float(len(svc.support_)), *sides, drop), panels


def figure_4_3(bench: Bench) -> StudyResult:
    """Accuracy against the number of vectors."""
    out = StudyResult()
    for name, (file, read) in TASKS.items():
        if bench.data is None or not (bench.data / file).exists():
            continue
        found = bench.record("compression", None, partial(_compress, read, bench.data, bench.quick), set=name)
        sizes, full = found["sizes"], found["full"]
        lines: dict[str, Any] = {n: (sizes, accuracies) for n, accuracies in found["curves"].items()}
        lines[f"full machine ({found['n']})"] = ([sizes[0], sizes[-1]], [full, full])
        out.panels.append(LinePanel(name, "vectors", "accuracy", lines, log_x=True))
        out.rows += [
            {"data": name, "method": method, "vectors": m, "accuracy": a, "full": full}
            for method, accuracies in found["curves"].items()
            for m, a in zip(sizes, accuracies)
        ]
        tenth = found["curves"]["CVM"][-1]
        out.claims.append(
            fact(
                name,
                "the accuracy of the full machine with 10 % of its vectors",
                f"{tenth:.4f}, full {full:.4f} ({found['n']} vectors)",
                tenth >= full - SAME,
                True,
            )
        )
        above = [
            all(found["curves"]["CVM"][i] >= curve[i] for n, curve in found["curves"].items() if n != "CVM")
            for i in range(len(sizes))
        ]
        shown = "; ".join(f"{n} {', '.join(f'{a:.3f}' for a in c)}" for n, c in found["curves"].items())
        out.claims.append(fact(name, "CVM is above all others at 1, 3 and 10 %", shown, all(above), True))
    return out


def _compress(read: Callable[[Path, bool], SvmTask], folder: Path, quick: bool) -> dict[str, Any]:
    """Accuracies at some sizes of CVM, of the vectors that LARS picks, and of the reduced SVM."""
    task = read(folder, quick)
    X, X_new, y, y_new = train_test_split(task.X, task.y, test_size=0.2, random_state=0, stratify=task.y)
    scale = 1.0 / (X.shape[1] * float(X.var()))
    tried = {(C, f): SVC(C=C, gamma=f * scale).fit(X, y).score(X_new, y_new) for C, f in task.grid}
    C, f = max(tried, key=lambda pair: tried[pair])
    kernel = {"C": C, "gamma": f * scale}
    svc = SVC(**kernel, cache_size=500).fit(task.X, task.y)
    n = len(svc.support_)
    sizes = [max(2, round(r * n)) for r in RATIOS]
    settings = MANY if len(np.unique(task.y)) > 2 else {}
    moved = CompressedSVC.from_sklearn(svc, task.X, n_vectors=2, **settings).path(task.X_test, task.y_test, sizes)
    picked = [CompressedSVC.from_sklearn(svc, task.X, n_vectors=m, n_starts=0, max_iter=0) for m in sizes]
    reduced = [ReducedSVC(**kernel, n_vectors=m).fit(task.X, task.y) for m in sizes]
    return {
        "n": n,
        "full": svc.score(task.X_test, task.y_test),
        "sizes": sizes,
        "curves": {
            "CVM": [point.accuracy for point in moved],
            "LARS-SVM": [model.score(task.X_test, task.y_test) for model in picked],
            "reduced SVM": [model.score(task.X_test, task.y_test) for model in reduced],
        },
    }


STUDIES = (
    Study("thesis-4.2", "Thesis, figure 4.2: CVM on a circle", figure_4_2),
    Study("thesis-4.3", "Thesis, figure 4.3: accuracy against the number of vectors", figure_4_3),
)
