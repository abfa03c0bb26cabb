"""`python -m examples.scenes [IMAGES] [--cache FOLDER]`: tell scenes apart for little CPU, and run it on demand."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import miserly as ms
from examples.scenes.describing import FOLDER, describe
from examples.scenes.images import generate, read_images
from miserly.baselines import EarlyExitClassifier
from miserly.experiments import LearningProblem
from miserly.experiments.papers import scenes
from miserly.runtime import Extractor

CACHE = Path.home() / ".cache" / "miserly-scenes"
SIZES_OF_MADE_UP = (8, 12, 4)
N_MADE_UP = 30
N_ROUNDS = 150
TRADEOFFS = 6
THRESHOLDS = (0.5, 0.7, 0.9, 1.0)
ALLOWED_LOSS = 0.01
N_RUN = 100


def main(arguments: Sequence[str] | None = None) -> None:
    """Describe, measure, learn, choose, run, and tell what it took."""
    parser = argparse.ArgumentParser(prog="python -m examples.scenes", description=__doc__)
    parser.add_argument("images", nargs="?", type=Path, help="folder or tar file, a folder a scene; made up if absent")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where descriptors are kept (default: %(default)s)")
    given = parser.parse_args(arguments)

    images = generate(N_MADE_UP) if given.images is None else read_images(given.images)
    sizes = SIZES_OF_MADE_UP if given.images is None else scenes.SIZES
    cache = given.cache / "made-up" if given.images is None else given.cache
    place, extractors = describe(images, cache, lambda what: print(f"\r{what:<40}", end="", flush=True))
    data = scenes.described(cache)
    print(f"\r{len(data.y)} images of {len(np.unique(data.y))} scenes; descriptors and prices are in {place}")
    print((place / "profile.txt").read_text(encoding="utf-8"))

    prices = scenes.kernel_prices(data, sizes[0] * len(np.unique(data.y)))
    problem = scenes.svm_problem(data, 0, prices, sizes)
    chosen = choose(sweep(problem))
    print("Chosen: " + chosen.plan_.summary())
    test = scenes.deal(data, 0, *sizes)[-1]
    some = np.random.default_rng(0).permutation(len(test))[:N_RUN]
    run(chosen.plan_, problem, [*extractors, *svm_extractors(data, sizes)], [images.raw[test[i]] for i in some], some)
    if given.images is not None:
        print(f"\nThe papers' figures: miserly reproduce miser-3 --data {place.parent}, and thesis-2.9 ({FOLDER}/).")


def sweep(problem: LearningProblem) -> ms.Frontier:
    """Greedy Miser for several λ, with exits for images that look decided."""
    train, validation, _ = problem.split
    model = ms.GreedyMiserClassifier(problem.costs, n_estimators=N_ROUNDS, min_samples_leaf=5, n_jobs=1)
    grid = model.suggest_grid(train.y, TRADEOFFS)
    plans = [model.set_params(tradeoff=float(t)).fit(train.X, train.y).plan_ for t in grid[:-1]]
    return ms.frontier(
        EarlyExitClassifier(plans[0]),
        (train.X, train.y),
        (validation.X, validation.y),
        grid={"estimator": plans, "threshold": THRESHOLDS},
        metric="accuracy",
        name="miser with early exits",
    )


def choose(front: ms.Frontier) -> Any:
    """The cheapest model within a point of the best, on validation images."""
    best = max(point.validation.quality for point in front.points)
    return front.choose_point(quality=best - ALLOWED_LOSS).model


def svm_extractors(data: scenes.Described, sizes: tuple[int, int, int]) -> list[Extractor]:
    """The kernel row and the SVMs of each descriptor, as acquisitions that need it."""
    names = [str(scene) for scene in np.unique(data.y)]

    def one(descriptor: str, machines: scenes.Machines) -> Extractor:
        def say(raw: bytes, described: np.ndarray) -> np.ndarray:
            return machines(described[None])[0]

        features = [f"{descriptor}: {scene}" for scene in names]
        return ms.extractor(f"{descriptor} kernel", yields=features, needs=descriptor)(say)

    first, *_ = scenes.deal(data, 0, *sizes)
    return [one(d, machines) for d, machines in scenes.bank(data, first).items()]


def run(
    plan: ms.Plan, problem: LearningProblem, extractors: Sequence[Extractor], raw: Sequence[bytes], numbers: np.ndarray
) -> Mapping[str, float]:
    """Images one at a time, on demand and with everything extracted; tells accuracy, CPU as paid and as priced."""
    truth = problem.split.test.y[numbers]
    in_order = [e for e in extractors if e.acquisition]

    def everything() -> list[Any]:
        return [_all_of_it(in_order, one) for one in raw]

    with ms.OnDemand(plan, extractors) as runner:
        all_seconds, _ = _timed(everything)
        seconds, answers = _timed(lambda: [runner.predict(one) for one in raw])
    right = float(np.mean([answer.value == y for answer, y in zip(answers, truth)]))
    priced = float(np.mean([answer.cost for answer in answers]))
    of_table = float(plan.predict_cost(problem.split.test.X[numbers]).mean())
    found = {"everything": all_seconds, "on demand": seconds, "priced": priced, "table": of_table, "accuracy": right}
    print(f"\n{len(raw)} test images, one at a time (CPU seconds each)")
    print(f"  everything extracted   {all_seconds / len(raw):.4f}")
    less = all_seconds / seconds
    print(f"  on demand              {seconds / len(raw):.4f}   {less:.1f} times less, accuracy {right:.1%}")
    print(f"  priced                 {priced:.4f}   {priced * len(raw) / seconds:.0%} of what was measured")
    bought = {a: sum(a in answer.acquired for answer in answers) / len(answers) for a in plan.costs.acquisitions}
    print("  bought for: " + ", ".join(f"{a} {share:.0%}" for a, share in bought.items() if share))
    return found


def _all_of_it(in_order: Sequence[Extractor], raw: bytes) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for e in in_order:
        results[e.name] = e.function(raw, *[results[name] for name in e.needs])
    return results


def _timed(work: Callable[[], list[Any]]) -> tuple[float, list[Any]]:
    began = process_time()
    result = work()
    return process_time() - began, result


if __name__ == "__main__":
    main()
