"""The data sets of the papers: the user's own where the folder has them, otherwise what stands in for them.

Under the data folder (`--data`, or MISERLY_DATA): `yahoo_ltrc/set1.{train,valid,test}.txt[.gz]` with
`feature_cost.txt`, `mq2008/S1…S5.txt.gz`, `ann_thyroid_cost`, `covertype/covtype.csv.gz`,
`miniboone/MiniBooNE_PID.txt`, `cifar/cifar.csv` (label last); `svm_sets` has those of chapter 4.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.model_selection import train_test_split

from miserly.costs import CostTable
from miserly.datasets import read_letor, yahoo_like
from miserly.experiments._parts import DataPart, DataSplit, LearningProblem, binary, graded
from miserly.metrics import get_metric

Labels = Literal["graded", "plain", "binary"]
Size = Literal["large", "small", "afr"]
# Queries of training, validation and test: as the papers have them, and for a quick look.
QUERIES: dict[Size, tuple[int, int, int]] = {
    "large": (19944, 2994, 6983),
    "small": (5960, 6187, 7797),
    "afr": (2000, 2002, 2001),
}
QUICK_QUERIES = (200, 150, 300)
DRAWN_QUERIES = (600, 500, 1000)
SMALL_SHARES = np.array([141397, 146769, 184968]) / 473134
YAHOO_TIERS = (5.0, 20.0, 50.0, 150.0, 200.0)
NOT_IN_THE_SET = 10_000
MQ2008_FOLDS = 5
RARE_TYPE = 4  # of the seven of covertype, 2747 of 581,012 rows
# For sets of some thousand rows. Blind boosting is best on validation after 10 to 220 trees (median 30) of MQ2008 and
# after 50 of ann-thyroid; of ten levels of CSTC validation leaves a few nodes.
FEW: dict[str, Any] = {"most_trees": 100, "most_levels": 4}
METRICS = {"graded": "ndcg@5", "plain": "ndcg@5", "binary": "precision@5"}


def data_folder(given: Path | None) -> Path | None:
    """Where the user's data are, if anywhere."""
    named = os.environ.get("MISERLY_DATA")
    return given if given is not None else Path(named) if named else None


# ---- ranking ------------------------------------------------------------------------------------------------------


def yahoo(folder: Path | None, labels: Labels, size: Size, quick: bool) -> LearningProblem:
    """The Yahoo! set in one of its three sizes and protocols; without the user's copy, drawn by `yahoo_like`."""
    protocol: Callable[[DataPart], DataPart] = {"graded": graded, "plain": lambda part: part, "binary": binary}[labels]
    place = None if folder is None else folder / "yahoo_ltrc"
    own = place is not None and any(place.glob("set1.train.txt*"))
    queries = QUICK_QUERIES if quick else QUERIES[size]

    def read() -> DataSplit:
        parts = _yahoo_files(place, size, queries) if own and place is not None else _yahoo_drawn(queries)
        return DataSplit(*(protocol(part) for part in parts))

    costs = _yahoo_prices(place) if own and place is not None else yahoo_like(1, seed=0).costs
    name = f"{'yahoo' if own else 'yahoo_like'} {'quick' if quick and not own else size} {labels}"
    stand_in = "" if own else "Yahoo! LTRC"
    return LearningProblem(name, 0, get_metric(METRICS[labels]), costs, read, stand_in, own, tiers=YAHOO_TIERS)


def _yahoo_drawn(queries: tuple[int, int, int]) -> list[DataPart]:
    drawn = [yahoo_like(n, seed=2000 + k) for k, n in enumerate(queries)]
    return [DataPart(d.X, d.y.astype(np.float64), d.qid) for d in drawn]


def _yahoo_prices(place: Path) -> CostTable:
    prices = np.loadtxt(place / "feature_cost.txt")
    named = {str(j + 1): float(p) for j, p in enumerate(prices) if p < NOT_IN_THE_SET}
    return CostTable.per_feature(named, evaluation=1.0, unit="tree evaluations")


def _yahoo_files(place: Path, size: Size, queries: tuple[int, int, int]) -> list[DataPart]:
    """The challenge's own split ("large"), the training file in three ("small"), or some queries of each file."""
    kept = np.loadtxt(place / "feature_cost.txt") < NOT_IN_THE_SET

    def file(part: str) -> DataPart:
        table = read_letor(next(place.glob(f"set1.{part}.txt*")), len(kept))
        return DataPart(np.ascontiguousarray(table.X[:, kept]), np.asarray(table.y, np.float64), table.qid)

    if size != "small":
        return [_some_queries(file(part), n) for part, n in zip(("train", "valid", "test"), queries)]
    whole = file("train")
    assert whole.qid is not None
    names = np.random.default_rng(0).permutation(np.unique(whole.qid))
    ends = np.rint(np.cumsum([0.0, *SMALL_SHARES]) * len(names)).astype(int)
    return [_some_queries(_of_queries(whole, names[a:b]), n) for (a, b), n in zip(pairwise(ends), queries)]


def _some_queries(part: DataPart, n: int) -> DataPart:
    names = np.unique(part.qid)  # type: ignore[arg-type]
    return part if len(names) <= n else _of_queries(part, np.random.default_rng(1).permutation(names)[:n])


def _of_queries(part: DataPart, names: np.ndarray) -> DataPart:
    assert part.qid is not None
    rows = np.isin(part.qid, names)
    return DataPart(part.X[rows], part.y[rows], part.qid[rows])


@cache
def _mq2008_files(place: Path) -> list[DataPart]:
    tables = [read_letor(place / f"S{k}.txt.gz", 46, absent="error") for k in range(1, MQ2008_FOLDS + 1)]
    return [DataPart(np.asarray(t.X, np.float64), np.asarray(t.y, np.float64), t.qid) for t in tables]


def mq2008(folder: Path | None, labels: Labels, n_splits: int, flat: bool = False) -> list[LearningProblem]:
    """LETOR's folds as a second, real ranking set: three files to train, one for validation, one for test.

    Its grades are 0 to 2; under the binary protocol 2 is relevant. `flat`: each feature has its own price, with no
    field read that several share.
    """
    place = None if folder is None else folder / "mq2008"
    if place is None or not place.is_dir():
        return []
    costs = CostTable.from_csv(place / "costs.csv") if flat else CostTable.from_toml(place / "costs.toml")
    protocol: Callable[[DataPart], DataPart] = {
        "graded": graded,
        "plain": lambda part: part,
        "binary": lambda part: binary(part, 2),
    }[labels]

    def fold(i: int) -> DataSplit:
        files = _mq2008_files(place)
        train = [files[(i + k) % MQ2008_FOLDS] for k in range(3)]
        joined = DataPart(*(np.concatenate([getattr(part, name) for part in train]) for name in ("X", "y", "qid")))
        return DataSplit(*(protocol(p) for p in (joined, files[(i + 3) % MQ2008_FOLDS], files[(i + 4) % MQ2008_FOLDS])))

    return [
        LearningProblem(
            f"mq2008 {labels}{', flat prices' if flat else ''}",
            i,
            get_metric(METRICS[labels]),
            costs,
            _later(fold, i),
            "Yahoo! LTRC",
            overlap=0.25,
            **FEW,
        )
        for i in range(min(n_splits, MQ2008_FOLDS))
    ]


def _later(read: Callable[[int], DataSplit], i: int) -> Callable[[], DataSplit]:
    return lambda: read(i)


def yahoo_draws(n_draws: int, quick: bool) -> list[LearningProblem]:
    """Several draws of `yahoo_like`, relevant or not, the latter ten times: a skewed set with splits to compare on."""
    queries = QUICK_QUERIES if quick else DRAWN_QUERIES
    costs = yahoo_like(1, seed=0).costs

    def draw(i: int) -> DataSplit:
        drawn = [yahoo_like(n, seed=1000 + 3 * i + k) for k, n in enumerate(queries)]
        return DataSplit(*(binary(DataPart(d.X, d.y.astype(np.float64), d.qid)) for d in drawn))

    name, metric = f"yahoo_like {'quick ' if quick else ''}draws", get_metric(METRICS["binary"])
    return [
        LearningProblem(name, i, metric, costs, _later(draw, i), "Yahoo! LTRC", False, tiers=YAHOO_TIERS, **FEW)
        for i in range(n_draws)
    ]


# ---- classes ------------------------------------------------------------------------------------------------------


def thyroid(folder: Path | None, n_splits: int) -> list[LearningProblem]:
    """ann-thyroid with its published prices, both files together, stratified splits of 60, 20 and 20 %."""
    place = None if folder is None else folder / "ann_thyroid_cost"
    if place is None or not place.is_dir():
        return []
    costs = CostTable.from_toml(place / "costs.toml")

    def split(i: int) -> DataSplit:
        rows = np.concatenate([np.loadtxt(place / f"ann-{part}.data") for part in ("train", "test")])
        return _shuffled(rows[:, :-1], rows[:, -1].astype(int), i)

    metric = get_metric("accuracy")
    return [
        LearningProblem("ann-thyroid", i, metric, costs, _later(split, i), overlap=0.25, min_samples_leaf=5, **FEW)
        for i in range(n_splits)
    ]


def letter_halves(folder: Path | None, n_splits: int) -> list[LearningProblem]:
    """The first half of the alphabet against the second; every feature at a price of 1."""
    file = None if folder is None else folder / "letter" / "letter-recognition.data.gz"
    if file is None or not file.exists():
        return []

    def split(i: int) -> DataSplit:
        with gzip.open(file, "rt") as lines:
            cells = [line.strip().split(",") for line in lines]
        cells = [c for c in cells if len(c) == 17 and len(c[0]) == 1]
        X, y = np.array([c[1:] for c in cells], float), np.array([c[0] <= "M" for c in cells]).astype(int)
        return _shuffled(X, y, i)

    costs, metric = CostTable.per_feature(np.ones(16), unit="features"), get_metric("accuracy")
    return [LearningProblem("letter", i, metric, costs, _later(split, i), overlap=0.25) for i in range(n_splits)]


def covertype(folder: Path | None, quick: bool) -> LearningProblem | None:
    """ASTC's Forest: the second class against the others, every feature at a price of 1, 36,603 rows to train."""
    file = None if folder is None else folder / "covertype" / "covtype.csv.gz"
    if file is None or not file.exists():
        return None
    n_rows = 6000 if quick else 61_005

    def read() -> DataSplit:
        with gzip.open(file, "rt") as opened:
            lines = opened.readlines()[1:]
        some = np.random.default_rng(0).permutation(len(lines))[:n_rows]
        drawn = np.loadtxt([lines[i] for i in some], delimiter=",", dtype=np.float32)
        return _shuffled(drawn[:, :-1].astype(np.float64), (drawn[:, -1] == 2).astype(int), 0)

    costs = CostTable.per_feature(np.ones(54), unit="features")
    return LearningProblem(f"covertype{' quick' if quick else ''}", 0, get_metric("accuracy"), costs, read)


@cache
def _covertype_rows(file: Path, n_rows: int) -> np.ndarray:
    with gzip.open(file, "rt") as opened:
        lines = opened.readlines()[1:]
    some = np.random.default_rng(1).permutation(len(lines))[:n_rows]
    return np.loadtxt([lines[i] for i in some], delimiter=",", dtype=np.float32)


def covertype_rare(folder: Path | None, n_splits: int, quick: bool) -> list[LearningProblem]:
    """A skewed set of measured rows: the rarest class of covertype (half a per cent) against the others, judged by the
    area under the ROC curve; every feature at a price of 1."""
    file = None if folder is None else folder / "covertype" / "covtype.csv.gz"
    if file is None or not file.exists():
        return []

    def split(i: int) -> DataSplit:
        rows = _covertype_rows(file, 8000 if quick else 40_000)
        return _shuffled(rows[:, :-1].astype(np.float64), (rows[:, -1] == RARE_TYPE).astype(float), i)

    costs, metric = CostTable.per_feature(np.ones(54), unit="features"), get_metric("auc")
    name = f"covertype, rare{' quick' if quick else ''}"
    return [LearningProblem(name, i, metric, costs, _later(split, i), overlap=0.25, **FEW) for i in range(n_splits)]


def own_table(folder: Path | None, name: str, file: str, n_features: int, quick: bool) -> LearningProblem | None:
    """A table of the user's own, label last, every feature at a price of 1 (MiniBooNE, CIFAR)."""
    path = None if folder is None else folder / name / file
    if path is None or not path.exists():
        return None

    def read() -> DataSplit:
        if name == "miniboone":
            with path.open() as lines:
                n_signal = int(lines.readline().split()[0])
                X = np.loadtxt(lines)
            y = (np.arange(len(X)) < n_signal).astype(int)
        else:
            table = np.loadtxt(path, delimiter=",")
            X, y = table[:, :-1], table[:, -1].astype(int)
        rows = np.random.default_rng(0).permutation(len(y))[: 10_000 if quick else None]
        return _shuffled(X[rows], y[rows], 0)

    costs = CostTable.per_feature(np.ones(n_features), unit="features")
    return LearningProblem(f"{name}{' quick' if quick else ''}", 0, get_metric("accuracy"), costs, read)


def _shuffled(X: np.ndarray, y: np.ndarray, seed: int) -> DataSplit:
    rest, test = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=seed)
    train, validation = train_test_split(rest, test_size=0.25, stratify=y[rest], random_state=seed)
    return DataSplit(*(DataPart(X[rows], y[rows]) for rows in (train, validation, test)))
