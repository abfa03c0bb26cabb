"""The data sets: what is predicted, at which prices, and the splits."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split

from examples.spam.mails import read_folder
from examples.spam.pipeline import Prepared, extract, prepare
from miserly.costs import CostTable
from miserly.datasets import read_letor, yahoo_like
from miserly.experiments import DataPart as Part
from miserly.experiments import DataSplit as Split
from miserly.metrics import Metric, get_metric, ndcg

N_YAHOO_QUERIES = 850
HEART_WORDS = {
    "cp": ("ta", "aa", "np", "a"),
    "restecg": ("normal", "abnormal", "hypertrophy"),
    "slope": ("up", "flat", "down"),
    "thal": ("normal", "fd", "rd"),
}


@dataclass(frozen=True)
class Problem:
    """A data set: `split(i)` for i below `n_splits`; `overlap` is rows in test / rows not in test where splits overlap
    (0 where they are drawn independently). `shared` prices acquisitions that serve several features."""

    name: str
    metric: Metric
    flat: CostTable
    shared: CostTable | None
    min_samples_leaf: int
    n_splits: int
    overlap: float
    split: Callable[[int], Split]

    @property
    def is_ranking(self) -> bool:
        return self.metric.grouped


def folder() -> Path:
    """Where the data are."""
    given = os.environ.get("MISERLY_DATA")
    return Path(given) if given else Path(__file__).resolve().parents[3] / "shared" / "data"


def available(names: Iterable[str]) -> list[str]:
    """Those of the data sets that are here; says which are not."""
    here = []
    for name in names:
        if name in FOLDERS and not (folder() / FOLDERS[name]).is_dir():
            print(f"{name}: skipped, {folder() / FOLDERS[name]} is absent (set MISERLY_DATA).")
        else:
            here.append(name)
    return here


@cache
def load(name: str) -> Problem:
    """Read a data set by name."""
    return LOADERS[name]()


def _prices(place: Path) -> tuple[CostTable, CostTable | None]:
    flat = CostTable.from_csv(place / "costs.csv")
    shared = CostTable.from_toml(place / "costs.toml") if (place / "costs.toml").exists() else None
    return replace(flat, unit=shared.unit if shared else flat.unit), shared


def _exact(X: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(X, np.float32).astype(np.float64)


def _mq2008() -> Problem:
    place = folder() / FOLDERS["mq2008"]
    tables = [read_letor(place / f"S{k}.txt.gz", 46, absent="error") for k in range(1, 6)]
    files = [Part(_exact(t.X), t.y.astype(np.float64), t.qid) for t in tables]

    def split(i: int) -> Split:
        train = [files[(i + k) % 5] for k in range(3)]
        joined = Part(*(np.concatenate([getattr(part, name) for part in train]) for name in ("X", "y", "qid")))
        return Split(joined, files[(i + 3) % 5], files[(i + 4) % 5])

    metric = Metric("ndcg@5", True, "score", True, partial(ndcg, k=5, empty="zero"))
    return Problem("mq2008", metric, *_prices(place), 20, 5, 0.25, split)


def _thyroid() -> Problem:
    place = folder() / FOLDERS["thyroid"]
    rows = np.concatenate([np.loadtxt(place / f"ann-{part}.data") for part in ("train", "test")])
    X, y = _exact(rows[:, :-1]), rows[:, -1].astype(int)

    def split(i: int) -> Split:
        rest, test = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=i)
        train, validation = train_test_split(rest, test_size=0.25, stratify=y[rest], random_state=i)
        return Split(*(Part(X[rows], y[rows]) for rows in (train, validation, test)))

    return Problem("thyroid", get_metric("accuracy"), *_prices(place), 5, 10, 0.25, split)


def _heart() -> Problem:
    place = folder() / FOLDERS["heart"]
    flat, shared = _prices(place)
    with (place / "heartdisease.csv").open(newline="") as file:
        records = list(csv.DictReader(file))
    columns = []
    for name in flat.features:
        words = HEART_WORDS.get(name)
        columns.append([words.index(r[name]) if words else float(r[name]) for r in records])
    X, y = _exact(np.array(columns, float).T), np.array([r["diagnosis"] == "True" for r in records]).astype(int)
    return Problem("heart", get_metric("accuracy"), flat, shared, 5, 100, 0.25, partial(_repeated_folds, X, y))


def _pima() -> Problem:
    place = folder() / FOLDERS["pima"]
    lines = [line for line in (place / "pima.dat").read_text().splitlines() if line and not line.startswith("@")]
    cells = [[cell.strip() for cell in line.split(",")] for line in lines]
    X = _exact(np.array([[float(cell) for cell in row[:-1]] for row in cells]))
    y = np.array([row[-1] == "positive" for row in cells]).astype(int)
    flat, shared = _prices(place)
    return Problem("pima", get_metric("accuracy"), flat, shared, 5, 100, 0.25, partial(_repeated_folds, X, y))


def _repeated_folds(X: np.ndarray, y: np.ndarray, i: int) -> Split:
    """Fold i mod 5 of repeat i div 5 is test; a quarter of the others is validation."""
    folds = StratifiedKFold(5, shuffle=True, random_state=i // 5)
    rest, test = list(folds.split(X, y))[i % 5]
    train, validation = train_test_split(rest, test_size=0.25, stratify=y[rest], random_state=i)
    return Split(*(Part(X[rows], y[rows]) for rows in (train, validation, test)))


def _yahoo_like() -> Problem:
    def split(i: int) -> Split:
        parts = yahoo_like(N_YAHOO_QUERIES, seed=100 + i).split(0.6, 0.2, 0.2, seed=i)
        return Split(*(Part(_exact(p.X), p.y.astype(np.float64), p.qid) for p in parts))

    metric = Metric("ndcg@5", True, "score", True, partial(ndcg, k=5, empty="zero"))
    return Problem("yahoo_like", metric, yahoo_like(1, seed=0).costs, None, 20, 4, 0.0, split)


def _drawn(name: str, X: np.ndarray, y: np.ndarray, costs: CostTable, n_splits: int, most: int) -> Problem:
    """Splits that are drawn independently, of at most so many rows."""
    X = _exact(X)

    def split(i: int) -> Split:
        rows = np.random.default_rng(i).permutation(len(y))[:most]
        rest, test = train_test_split(rows, test_size=0.2, stratify=_strata(y[rows]), random_state=i)
        train, validation = train_test_split(rest, test_size=0.25, stratify=_strata(y[rest]), random_state=i)
        return Split(*(Part(X[part], y[part]) for part in (train, validation, test)))

    return Problem(name, get_metric("accuracy"), costs, None, 20, n_splits, 0.25, split)


def _strata(y: np.ndarray) -> np.ndarray:
    """The classes, those with hardly any row counted as the largest one, which can always be divided."""
    _, number, counts = np.unique(y, return_inverse=True, return_counts=True)
    return np.where(counts[number] < 4, np.argmax(counts), number)


def _covertype() -> Problem:
    with gzip.open(folder() / FOLDERS["covertype"] / "covtype.csv.gz", "rt") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1, dtype=np.float32)
    return _drawn("covertype", table[:, :-1], table[:, -1].astype(int), _unit_prices(54), 4, 20_000)


def _letter() -> Problem:
    with gzip.open(folder() / FOLDERS["letter"] / "letter-recognition.data.gz", "rt") as file:
        lines = [line.strip().split(",") for line in file][1:]
    y = np.array([ord(line[0].strip('"')) - ord("A") for line in lines])
    X = np.array([[float(v) for v in line[1:]] for line in lines])
    return _drawn("letter", X, y, _unit_prices(16), 2, 20_000)


def _unit_prices(n: int) -> CostTable:
    return CostTable.per_feature({f"f{j}": 1.0 for j in range(n)})


def _frugalml(name: str) -> Problem:
    place = folder() / FOLDERS[name]
    costs = CostTable.from_toml(place / f"{name}.costs.toml")
    with gzip.open(place / f"{name}.csv.gz", "rt", newline="") as file:
        records = list(csv.DictReader(file))
    X = np.array([[float(r[f] or "nan") for f in costs.features] for r in records])
    return _drawn(name, X, np.array([int(float(r["truth"])) for r in records]), costs, 4, 20_000)


def _mails() -> Problem:
    """The mails of `examples/spam` as a table: prices are milliseconds of CPU, measured once."""
    mails = read_folder(folder() / FOLDERS["mails"])
    corpus = extract(mails.raw, mails.is_spam)
    every = np.arange(len(mails.raw))

    def prepared(i: int) -> Prepared:
        rest, test = train_test_split(every, test_size=0.2, stratify=mails.is_spam, random_state=i)
        train, validation = train_test_split(rest, test_size=0.25, stratify=mails.is_spam[rest], random_state=i)
        return prepare(corpus, {"train": train, "validation": validation, "test": test}, seed=i)

    def split(i: int) -> Split:
        data = prepared(i)
        return Split(*(Part(_exact(data.X[part]), data.y[part]) for part in ("train", "validation", "test")))

    return Problem("mails", get_metric("accuracy"), prepared(0).costs, None, 20, 4, 0.25, split)


DEVELOPMENT = ("thyroid", "pima", "covertype", "yahoo_like", "yelp", "expw")
FOLDERS = {
    "mq2008": "mq2008",
    "thyroid": "ann_thyroid_cost",
    "heart": "heart_cost",
    "pima": "pima_cost",
    "covertype": "covertype",
    "letter": "letter",
    "mails": "spamassassin",
}
FOLDERS |= dict.fromkeys(("yelp", "expw", "waimai", "command"), "frugalml")
LOADERS: dict[str, Callable[[], Problem]] = {
    "mq2008": _mq2008,
    "thyroid": _thyroid,
    "heart": _heart,
    "pima": _pima,
    "yahoo_like": _yahoo_like,
    "covertype": _covertype,
    "letter": _letter,
    **{name: partial(_frugalml, name) for name in ("yelp", "expw", "waimai", "command")},
    "mails": _mails,
}
