"""Scene-15: figure 3 of the Greedy Miser (thesis 2.5) and figure 2.9 of the thesis (AFR), at prices in CPU seconds.

Figure 3: of each scene 100 images to train, 20 for validation, the others to test, ten splits. One SVM per descriptor
and scene is trained on 30 of the 100; what these say of the other 70 are the miser's features (log-loss of 15 classes,
trees of depth 3, one of each class a round, early exits after each round, for each λ the iteration that is best on
validation). A descriptor's price is its CPU time, that of its kernel row and of its SVMs; all its features share it.
The SVM of the averaged kernel has all 100 images and looks at everything; another has the 30.
Ours, not the paper's: the same with SVMs of all 100 images, whose answers for these are given out of fold, and trees
grown on half of the rows and a fifth of the features; and these models one after another, cheapest first, which images
leave as soon as a scene is likely enough.
Figure 2.9: raw descriptors, each scene against the rest, read as probabilities by Platt's method; 75 images to train
and 25 for validation.

The data folder has `scene15/descriptors.npz` and `scene15/costs.toml`, which `python -m examples.scenes` writes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from miserly._typing import Rows
from miserly.baselines import EarlyExitClassifier
from miserly.costs import CostTable, total_price
from miserly.estimators import GreedyMiserClassifier
from miserly.experiments import _methods as methods
from miserly.experiments._claims import Claim, above, fact
from miserly.experiments._measure import Figures, best, cost_share, curve, figures, staged_figures
from miserly.experiments._parts import DataPart, DataSplit, LearningProblem
from miserly.experiments._study import Bench, Study, StudyResult, curve_rows, named
from miserly.frontiers import Frontier
from miserly.metrics import get_metric
from miserly.plan import Plan
from miserly.report import FrontierPanel, LinePanel
from miserly.runtime import extractor, profile

SIZES = 30, 70, 20  # images of each scene for the SVMs, for the miser, for validation
TRAIN, VALIDATION = 75, 25
Sizes = tuple[int, int, int]
N_SPLITS, QUICK_SPLITS = 10, 2
ROUNDS, QUICK_ROUNDS = 100, 20
RAW_ROUNDS, QUICK_RAW_ROUNDS = 150, 15
N_TRADEOFFS, QUICK_TRADEOFFS = 9, 4
N_FOLDS = 5
STOCHASTIC: dict[str, Any] = {
    "learning_rate": 0.05,
    "min_samples_leaf": 5,
    "subsample": 0.5,
    "max_features": 0.2,
    "random_state": 0,
}
C, PENALTIES = 10.0, (1.0, 10.0, 100.0)
SLACK, GOAL = 0.01, 0.5
N_TIMED = 60
SVM, SMALL_SVM = "averaged-kernel SVM", "the same, of 30 images"
STAGEWISE, EXITS, MISER = "stage-wise regression", "early exit", "Greedy Miser"
OUT_OF_FOLD, CASCADE = "miser, out of fold", "the same as a cascade, with exits"


class Described(NamedTuple):
    """Images as their descriptors: of which one each column of X is, and which images words were learnt from."""

    X: NDArray[np.float32]
    y: NDArray[Any]
    descriptor: NDArray[np.str_]
    learnt_from: Rows
    costs: CostTable
    is_real: bool

    @property
    def descriptors(self) -> list[str]:
        """Their names, in the order of the columns."""
        return list(dict.fromkeys(self.descriptor.tolist()))

    def columns(self, descriptor: str) -> Rows:
        """Where a descriptor stands in X."""
        return np.flatnonzero(self.descriptor == descriptor)

    def needs(self, descriptor: str) -> tuple[str, ...]:
        """The acquisitions of a descriptor."""
        return self.costs.needs[self.costs.features[int(self.columns(descriptor)[0])]]


def described(folder: Path | None) -> Described:
    """The user's images; without them, drawn vectors."""
    place = None if folder is None else folder / "scene15"
    if place is None or not (place / "descriptors.npz").exists():
        return drawn()
    with np.load(place / "descriptors.npz") as kept:
        costs = CostTable.from_toml(place / "costs.toml")
        names = kept["descriptor"]
        features = [f"{name}_{i}" for name in dict.fromkeys(names.tolist()) for i in range(int((names == name).sum()))]
        return Described(kept["X"], kept["y"], names, kept["learnt_from"], costs.bind(features), True)


def drawn(n_scenes: int = 15, n_each: int = 160, seed: int = 0) -> Described:
    """Eight descriptors of ten columns: expensive ones tell more. The last four share two expensive passes."""
    rng = np.random.default_rng(seed)
    names = [f"d{k}" for k in range(8)]
    prices = dict(zip(names, np.geomspace(0.1, 10.0, 8).tolist()))
    passes = {"pass 0": 20.0, "pass 1": 60.0}
    y = np.repeat([f"scene {i}" for i in range(n_scenes)], n_each)
    centres = rng.normal(size=(n_scenes, 80)) * np.repeat(np.linspace(0.25, 0.8, 8), 10)
    X = np.repeat(centres, n_each, axis=0) + rng.normal(size=(len(y), 80))
    needs = {f"{d}_{i}": (d,) if k < 4 else (f"pass {(k - 4) // 2}", d) for k, d in enumerate(names) for i in range(10)}
    costs = CostTable(tuple(needs), needs, {**prices, **passes}, unit="ms")
    return Described(X.astype(np.float32), y, np.repeat(names, 10), np.empty(0, np.intp), costs, False)


def deal(data: Described, seed: int, *sizes: int) -> list[Rows]:
    """Rows in parts of so many images of each scene, and all others; images of the words always in the first part."""
    shuffled = np.random.default_rng(seed).permutation(len(data.y))
    rank = np.where(np.isin(shuffled, data.learnt_from), 0, 1)
    order = shuffled[np.argsort(rank, kind="stable")]
    ends = np.cumsum(sizes)
    parts: list[list[Rows]] = [[] for _ in range(len(sizes) + 1)]
    for scene in np.unique(data.y):
        for part, rows in zip(parts, np.split(order[data.y[order] == scene], ends)):
            part.append(rows)
    return [np.sort(np.concatenate(rows)) for rows in parts]


# ---- one SVM per descriptor and scene -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Machines:
    """SVMs, a column of `weights` for each scene, over the kernel exp(−‖x − z‖² / scale) to some images."""

    rows: NDArray[np.float32]
    lengths: NDArray[np.float32]
    scale: float
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]

    def kernel(self, Z: NDArray[np.float32]) -> NDArray[np.float32]:
        """Rows of Z against the images."""
        squared = (Z * Z).sum(axis=1)[:, None] + self.lengths - 2.0 * (Z @ self.rows.T)
        return np.exp(np.maximum(squared, 0.0) / np.float32(-self.scale))

    def __call__(self, Z: NDArray[np.float32]) -> NDArray[np.float32]:
        """What each SVM says."""
        return self.kernel(Z) @ self.weights + self.bias


def over(rows: NDArray[np.float32], n_scenes: int) -> Machines:
    """A kernel whose scale is the mean squared distance of its images; SVMs that say nothing yet."""
    scale = max(2.0 * float(rows.var(axis=0, dtype=np.float64).sum()), 1e-12)
    lengths = (rows * rows).sum(axis=1)
    weights, bias = np.zeros((len(rows), n_scenes), np.float32), np.zeros(n_scenes, np.float32)
    return Machines(rows, lengths, scale, weights, bias)


def dual(kernel: NDArray[Any], y: NDArray[Any], penalty: float) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Each scene against the rest: weights of the images, a column for each scene, and the biases."""
    scenes = np.unique(y)
    weights, bias = np.zeros((len(y), len(scenes)), np.float32), np.zeros(len(scenes), np.float32)
    for k, scene in enumerate(scenes):
        svc = SVC(C=penalty, kernel="precomputed").fit(kernel, y == scene)
        weights[svc.support_, k], bias[k] = svc.dual_coef_[0], svc.intercept_[0]
    return weights, bias


def machines_of(data: Described, descriptor: str, rows: Rows) -> Machines:
    """The SVMs of one descriptor, trained on these images."""
    empty = over(data.X[np.ix_(rows, data.columns(descriptor))], len(np.unique(data.y)))
    weights, bias = dual(empty.kernel(empty.rows), data.y[rows], C)
    return Machines(empty.rows, empty.lengths, empty.scale, weights, bias)


def kernel_prices(data: Described, n_rows: int) -> dict[str, float]:
    """Milliseconds of CPU for the kernel row of each descriptor to so many images, and for its SVMs."""
    if not data.is_real:
        return {d: 1e-5 * n_rows * len(data.columns(d)) for d in data.descriptors}
    n_scenes = len(np.unique(data.y))

    def timed(descriptor: str) -> Any:
        columns = data.columns(descriptor)
        machines = over(data.X[:n_rows, columns], n_scenes)
        images = np.ascontiguousarray(data.X[:, columns])
        return extractor(descriptor)(lambda i: machines(images[i : i + 1])[0])

    with threadpool_limits(1):  # what other threads compute would not be priced
        measured = profile([timed(d) for d in data.descriptors], range(min(N_TIMED, len(data.y))))
    return {d: 1e3 * seconds for d, seconds in measured.seconds(statistic="median").items()}


# ---- figure 3 -----------------------------------------------------------------------------------------------------


def bank(data: Described, rows: Rows) -> dict[str, Machines]:
    """The SVMs of each descriptor, trained on these images."""
    return {d: machines_of(data, d, rows) for d in data.descriptors}


def said_by(machines: Mapping[str, Machines], data: Described, rows: Rows) -> NDArray[np.float64]:
    """What all SVMs say of some images: a column for each descriptor and scene."""
    said = [m(data.X[np.ix_(rows, data.columns(d))]) for d, m in machines.items()]
    return np.concatenate(said, axis=1).astype(np.float64)


def svm_costs(data: Described, prices: Mapping[str, float]) -> CostTable:
    """Each SVM needs its descriptor and the kernel row, at these prices; the SVMs of a descriptor share both."""
    scenes = [str(scene) for scene in np.unique(data.y)]
    needs = {f"{d}: {s}": (*data.needs(d), f"{d} kernel") for d in data.descriptors for s in scenes}
    paid = {**data.costs.prices, **{f"{d} kernel": price for d, price in prices.items()}}
    return CostTable(tuple(needs), needs, {a: 1e-3 * ms for a, ms in paid.items()}, unit="CPU seconds")


def svm_problem(data: Described, number: int, prices: Mapping[str, float], sizes: Sizes = SIZES) -> LearningProblem:
    """What the SVMs of 30 images of each scene say: the miser learns from 70 others."""

    def read() -> DataSplit:
        first, *parts = deal(data, number, *sizes)
        machines = bank(data, first)
        return DataSplit(*(DataPart(said_by(machines, data, rows), data.y[rows]) for rows in parts))

    return _problem("SVM outputs", data, number, svm_costs(data, prices), read)


def out_of_fold_problem(
    data: Described, number: int, prices: Mapping[str, float], sizes: Sizes = SIZES
) -> LearningProblem:
    """What the SVMs of all training images say; of these themselves, what those say that have not seen them."""

    def read() -> DataSplit:
        *train_parts, validation, test = deal(data, number, *sizes)
        train = np.concatenate(train_parts)
        X = np.empty((len(train), len(data.descriptors) * len(np.unique(data.y))))
        for seen, new in StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(train, data.y[train]):
            X[new] = said_by(bank(data, train[seen]), data, train[new])
        machines = bank(data, train)
        others = (DataPart(said_by(machines, data, rows), data.y[rows]) for rows in (validation, test))
        return DataSplit(DataPart(X, data.y[train]), *others)

    return _problem("SVM outputs out of fold", data, number, svm_costs(data, prices), read)


def _problem(what: str, data: Described, number: int, costs: CostTable, read: Any) -> LearningProblem:
    """`overlap`: of 180 images of a scene 60 are tested."""
    name = f"{'scene15' if data.is_real else 'drawn'} {what} {len(data.y)}×{len(data.descriptor)}"
    stand_in = "" if data.is_real else "Scene-15"
    metric = get_metric("accuracy")
    return LearningProblem(name, number, metric, costs, read, stand_in, data.is_real, overlap=0.5, min_samples_leaf=10)


def averaged_kernel(
    data: Described, number: int, prices: Mapping[str, float], sizes: Sizes = SIZES, few: bool = False
) -> Figures:
    """The SVM of the averaged kernel of all descriptors, trained on all training images, or on the first part."""
    *train_parts, validation, test = deal(data, number, *sizes)
    train = train_parts[0] if few else np.concatenate(train_parts)
    kernels = [np.zeros((len(rows), len(train)), np.float32) for rows in (train, validation, test)]
    for d in data.descriptors:
        columns = data.columns(d)
        one = over(data.X[np.ix_(train, columns)], 1)
        for kernel, rows in zip(kernels, (train, validation, test)):
            kernel += one.kernel(data.X[np.ix_(rows, columns)]) / len(data.descriptors)
    cost = 1e-3 * (total_price(data.costs.price_list) + total_price(prices.values()))
    return _of_kernels(kernels, [data.y[rows] for rows in (train, validation, test)], cost)


def _of_kernels(kernels: Sequence[NDArray[Any]], y: Sequence[NDArray[Any]], cost: float) -> Figures:
    """SVMs over the kernel of the training images; the penalty is chosen on validation."""
    scenes, tried = np.unique(y[0]), []
    for penalty in PENALTIES:
        weights, bias = dual(kernels[0], y[0], penalty)
        said = [scenes[np.argmax(kernel @ weights + bias, axis=1)] for kernel in kernels[1:]]
        tried.append([float(np.mean(s == truth)) for s, truth in zip(said, y[1:])])
    of_validation, of_test = max(tried, key=lambda pair: pair[0])
    return cost, of_validation, cost, of_test


def figure_3(bench: Bench) -> StudyResult:
    """The miser over what SVMs say, beside the SVM that looks at everything."""
    data, out = described(bench.data), StudyResult()
    if bench.real and not data.is_real:
        return out
    of_scene = len(np.unique(data.y))
    few, many = bench.record(
        "kernel prices",
        None,
        lambda: [kernel_prices(data, n * of_scene) for n in (SIZES[0], SIZES[0] + SIZES[1])],
        set=[len(data.y), len(data.descriptor)],
    )
    numbers = range(QUICK_SPLITS if bench.quick else N_SPLITS)
    group = [svm_problem(data, i, few) for i in numbers]
    splits = [_all_methods(bench, data, problem, few, many) for problem in group]
    out.uses(group[0])
    curves = {name: [curve(name, p, of[name]) for p, of in zip(group, splits)] for name in splits[0]}
    means = {name: mean_of_splits([of[name] for of in splits]) for name in splits[0]}
    lines = {name: _line(curve(name, group[0], points)) for name, points in means.items()}
    title = f"{group[0].name}, mean of {len(group)} splits"
    out.panels.append(LinePanel(title, f"mean cost ({group[0].costs.unit})", "accuracy on test", lines, log_x=True))
    out.rows = named(curve_rows(curves), group[0].name)
    out.claims = [
        half_the_cost(means, group),
        half_the_cost(means, group, svm=SMALL_SVM),
        half_the_cost(means, group, miser=OUT_OF_FOLD),
        half_the_cost(means, group, miser=CASCADE),
        above(CASCADE, OUT_OF_FOLD, curves, group, f"(not in the paper) {CASCADE}: better than each alone"),
        *(above(MISER, other, curves, group) for other in (STAGEWISE, EXITS)),
        _high(means, group),
    ]
    return out


def _all_methods(
    bench: Bench, data: Described, problem: LearningProblem, few: Mapping[str, float], many: Mapping[str, float]
) -> dict[str, methods.Points]:
    """The points of each method in one split; `few` and `many` are prices of kernel rows to 30 and to 100 images."""
    n_rounds, i = bench.trees(problem, ROUNDS, QUICK_ROUNDS), problem.split_number
    n_tradeoffs = QUICK_TRADEOFFS if bench.quick else N_TRADEOFFS
    grid = methods.tradeoffs(problem, (), n_tradeoffs + 4)[1:-3]  # the largest buy nothing

    def svm(few_images: bool) -> methods.Points:
        make = partial(averaged_kernel, data, i, few if few_images else many, few=few_images)
        return [bench.record("averaged kernel", problem, make, few_images=few_images)]

    blind = methods.blind(bench, problem, n_rounds)
    misers = {t: methods.miser_plan(bench, problem, n_rounds, t) for t in grid}
    stacked, denser = out_of_fold_problem(data, i, many), np.geomspace(grid[len(grid) // 3], grid[-1], len(grid))
    plans = {float(t): _out_of_fold_plan(bench, stacked, n_rounds, float(t)) for t in denser}
    return {
        SVM: svm(False),
        SMALL_SVM: svm(True),
        STAGEWISE: _stages(bench, problem, blind, 0.0),
        EXITS: _exits(bench, problem, blind, 0.0),
        MISER: [best(_stages(bench, problem, plan, t)) for t, plan in misers.items()],
        OUT_OF_FOLD: [best(_stages(bench, stacked, plan, t)) for t, plan in plans.items()],
        CASCADE: methods.cascade_with_exits(bench, stacked, [plans[t] for t in sorted(plans, reverse=True)]),
    }


def _stages(bench: Bench, problem: LearningProblem, plan: Plan, tradeoff: float) -> methods.Points:
    """A plan after each of its rounds."""
    make = partial(staged_figures, plan, problem, 1)
    return bench.record("rounds", problem, make, tradeoff=tradeoff, n=len(plan.nodes))


def _exits(bench: Bench, problem: LearningProblem, plan: Plan, tradeoff: float) -> methods.Points:
    """A plan that images leave after the round in which a scene is likely enough."""
    train, rounds = problem.split.train, range(1, len(plan.nodes))

    def one(s: float) -> Figures:
        model = EarlyExitClassifier(plan, threshold=s, exits=list(rounds)).fit(train.X, train.y)
        return figures(model.plan_, problem)

    return [
        bench.record("exits", problem, partial(one, float(s)), s=float(s), tradeoff=tradeoff, n=len(plan.nodes))
        for s in EarlyExitClassifier(plan).suggest_grid(train.y, bench.n_points)
    ]


def _out_of_fold_plan(bench: Bench, problem: LearningProblem, n_rounds: int, tradeoff: float) -> Plan:
    def make() -> Plan:
        model = GreedyMiserClassifier(problem.costs, tradeoff, n_estimators=2 * n_rounds, **STOCHASTIC)
        return methods.fitted(model, problem).plan_

    return bench.plan("stochastic miser", problem, make, n_rounds=n_rounds, tradeoff=tradeoff)


def _line(front: Frontier) -> tuple[list[float], list[float]]:
    """Cost and accuracy on test of what validation chooses."""
    shown = [p.on("test") for p in front.pareto() if p.on("test").cost["mean"] > 0]
    return [m.cost["mean"] for m in shown], [m.quality for m in shown]


def mean_of_splits(splits: Sequence[methods.Points]) -> methods.Points:
    """Points of one setting (λ, threshold, iteration) over all splits as one; the last of a shorter curve goes on."""
    longest = max(len(points) for points in splits)
    made = np.mean([[points[min(k, len(points) - 1)] for k in range(longest)] for points in splits], axis=0)
    return [tuple(point) for point in made.tolist()]


def half_the_cost(
    means: Mapping[str, methods.Points], group: Sequence[LearningProblem], svm: str = SVM, miser: str = MISER
) -> Claim:
    """That the cheapest λ which comes to the SVM's accuracy on validation, less 1 %, costs half or less."""
    [full] = means[svm]
    share = cost_share(curve(miser, group[0], means[miser]), full, SLACK)
    cheap, most = [p for p in means[miser] if p[0] <= GOAL * full[0]], best(means[miser])
    within = best(cheap)[3] if cheap else 0.0
    found = "never" if math.isinf(share) else f"at {share:.2f} of its cost"
    sees = f"{svm} {full[3]:.3f} for {full[2]:.3f} s; {miser} {within:.3f} within half of it, {most[3]:.3f} for "
    sees += f"{most[2]:.3f} s; to {1 - SLACK:.0%} of the SVM's on validation {found}"
    says = "the accuracy of the SVM with the averaged kernel at half of its cost"
    return fact(group[0].name, says, sees, share <= GOAL, group[0].is_real)


def _high(means: Mapping[str, methods.Points], group: Sequence[LearningProblem]) -> Claim:
    [svm], stagewise = means[SVM], best(means[STAGEWISE])
    sees = f"{svm[3]:.3f} and {stagewise[3]:.3f}"
    says = "the SVM and stage-wise regression both achieve high accuracy (within 5 points)"
    return fact(group[0].name, says, sees, abs(svm[3] - stagewise[3]) <= 0.05, group[0].is_real)


# ---- figure 2.9 ---------------------------------------------------------------------------------------------------


def raw_problem(data: Described, number: int, every: int = 1) -> LearningProblem:
    """The descriptors themselves; every so many columns of each."""
    kept = np.concatenate([data.columns(d)[::every] for d in data.descriptors])
    costs = data.costs.restrict([data.costs.features[i] for i in kept])
    costs = CostTable(costs.features, costs.needs, {a: 1e-3 * p for a, p in costs.prices.items()}, unit="CPU seconds")

    def read() -> DataSplit:
        parts = deal(data, number, TRAIN, VALIDATION)
        return DataSplit(*(DataPart(data.X[np.ix_(rows, kept)].astype(np.float64), data.y[rows]) for rows in parts))

    return _problem("raw descriptors", data, number, costs, read)


def linear_svm(problem: LearningProblem) -> Figures:
    """Each scene against the rest on all columns, in the dual, since there are more columns than images."""
    train = problem.split.train
    mean, spread = train.X.mean(axis=0), train.X.std(axis=0)
    standard = [(part.X - mean) / np.where(spread > 0, spread, 1.0) for part in problem.split]
    kernels = [Z @ standard[0].T / Z.shape[1] for Z in standard]
    return _of_kernels(kernels, [part.y for part in problem.split], total_price(problem.costs.price_list))


def figure_2_9(bench: Bench) -> StudyResult:
    """AFR's one curve on raw descriptors, beside models that are trained for each budget."""
    data, out = described(bench.data), StudyResult()
    problem = raw_problem(data, 0, 5 if bench.quick and data.is_real else 1)
    if not bench.wants(problem):
        return out
    out.uses(problem)
    n_rounds = bench.trees(problem, RAW_ROUNDS, QUICK_RAW_ROUNDS)
    afr = {"n_dims": 5, "n_trees_per_dim": 2, "n_levels": 6} if bench.quick else {"n_dims": 20, "n_trees_per_dim": 10}
    hinge = methods.blind(bench, problem, n_rounds, "squared_hinge")
    n_points = 3 if bench.quick else 6
    found = {
        "GBRT, logistic loss": methods.stagewise(bench, problem, n_rounds),
        "GBRT, squared hinge": methods.stagewise(bench, problem, n_rounds, "squared_hinge"),
        "linear SVM": [bench.record("linear SVM", problem, partial(linear_svm, problem))],
        "early exit": methods.early_exits(bench, problem, hinge, loss="squared_hinge"),
        "Greedy Miser": methods.miser(bench, problem, n_rounds, loss="squared_hinge", n_points=n_points),
        "AFR": methods.afr(bench, problem, **afr),
    }
    curves: dict[str, list[Frontier]] = {name: [curve(name, problem, points)] for name, points in found.items()}
    out.panels.append(FrontierPanel(problem.name, [fronts[0] for fronts in curves.values()]))
    out.rows = named(curve_rows(curves), problem.name)
    out.claims = [above("AFR", name, curves, [problem]) for name in curves if name not in ("AFR", "linear SVM")]
    return out


STUDIES = (
    Study("miser-3", "Greedy Miser, figure 3: scenes, accuracy against CPU time", figure_3),
    Study("thesis-2.9", "Thesis, figure 2.9: AFR on raw descriptors of scenes", figure_2_9),
)
