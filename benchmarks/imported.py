"""Imported models: how far their plans' predictions are from their own, and what lazy plans save.

`python -m benchmarks.imported` prints the tables of docs/import.md. Data of the second table are looked for in
`../shared/data` or `MISERLY_DATA`; what is absent is left out.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import catboost
import lightgbm
import numpy as np
import xgboost
from sklearn import ensemble, linear_model, svm

import miserly as ms
from miserly.datasets import read_letor, yahoo_like

ROWS = 10_000
RNG = np.random.default_rng(0)
GBM = {"n_estimators": 50, "verbose": -1, "n_jobs": 1}
XGB = {"n_estimators": 50, "max_depth": 5, "n_jobs": 1}
CAT = {"iterations": 50, "depth": 5, "verbose": False, "allow_writing_files": False, "thread_count": 1}
CODES = {"categorical_feature": [6, 7]}
XGB_CODES = {"enable_categorical": True, "feature_types": ["q"] * 6 + ["c"] * 2}


def rows(n: int, holes: float = 0.0) -> np.ndarray:
    """Six numbers and two categories, some of them missing."""
    X = RNG.normal(size=(n, 8))
    X[:, 6], X[:, 7] = RNG.integers(0, 8, n), RNG.integers(0, 60, n)
    return np.where(RNG.random(X.shape) < holes, np.nan, X)


def targets(X: np.ndarray) -> dict[str, np.ndarray]:
    """A number, counts, two classes, three classes, grades of queries of 20."""
    Z = np.nan_to_num(X)
    number = Z[:, 0] * 2 + np.sin(3 * Z[:, 1]) + Z[:, 2] * Z[:, 3] + 2 * np.isin(Z[:, 6], [1, 3, 6]) + Z[:, 7] % 5 / 4
    return {
        "number": number,
        "count": np.maximum(0, np.round(number)),
        "two": (number > 1.5).astype(int),
        "three": np.digitize(number, [0.0, 2.0]),
    }


KINDS: dict[str, tuple[Any, str, dict[str, Any], float]] = {
    "LightGBM, regression": (lightgbm.LGBMRegressor(**GBM), "number", {}, 0.1),
    "LightGBM, categories, 3 classes": (lightgbm.LGBMClassifier(**GBM), "three", CODES, 0.1),
    "LightGBM, zeros as missing": (lightgbm.LGBMClassifier(zero_as_missing=True, **GBM), "two", {}, 0.1),
    "LightGBM, DART": (lightgbm.LGBMRegressor(boosting_type="dart", **GBM), "number", {}, 0.1),
    "LightGBM, random forest": (
        lightgbm.LGBMClassifier(boosting_type="rf", bagging_freq=1, bagging_fraction=0.6, **GBM),
        "two",
        {},
        0.1,
    ),
    "LightGBM, Poisson": (lightgbm.LGBMRegressor(objective="poisson", **GBM), "count", {}, 0.1),
    "LightGBM, ranking": (lightgbm.LGBMRanker(**GBM), "three", {"group": [20] * 100}, 0.1),
    "XGBoost, regression": (xgboost.XGBRegressor(**XGB), "number", {}, 0.1),
    "XGBoost, categories, 3 classes": (xgboost.XGBClassifier(**XGB_CODES, **XGB), "three", {}, 0.1),
    "XGBoost, DART": (xgboost.XGBClassifier(booster="dart", rate_drop=0.2, **XGB), "two", {}, 0.1),
    "XGBoost, linear": (xgboost.XGBRegressor(booster="gblinear", n_estimators=50), "number", {}, 0.1),
    "XGBoost, ranking": (xgboost.XGBRanker(**XGB), "three", {"qid": np.repeat(np.arange(100), 20)}, 0.1),
    "CatBoost, regression": (catboost.CatBoostRegressor(**CAT), "number", {}, 0.1),
    "CatBoost, 3 classes": (catboost.CatBoostClassifier(**CAT), "three", {}, 0.1),
    "CatBoost, depthwise": (catboost.CatBoostClassifier(grow_policy="Depthwise", **CAT), "two", {}, 0.1),
    "CatBoost, ranking": (
        catboost.CatBoostRanker(**CAT),
        "three",
        {"group_id": np.repeat(np.arange(100), 20)},
        0.1,
    ),
    "random forest": (ensemble.RandomForestClassifier(50, n_jobs=1, random_state=0), "three", {}, 0.1),
    "extra trees": (ensemble.ExtraTreesRegressor(50, random_state=0), "number", {}, 0.1),
    "gradient boosting": (ensemble.GradientBoostingClassifier(n_estimators=50), "two", {}, 0.0),
    "histogram boosting, categories": (
        ensemble.HistGradientBoostingClassifier(max_iter=50, categorical_features=[6, 7]),
        "three",
        {},
        0.1,
    ),
    "logistic regression": (linear_model.LogisticRegression(), "three", {}, 0.0),
    "Poisson regression": (linear_model.PoissonRegressor(), "count", {}, 0.0),
    "SVC, rbf (share of other labels)": (svm.SVC(), "three", {}, 0.0),
    "SVR, polynomial": (svm.SVR(kernel="poly"), "number", {}, 0.0),
}


def difference(model: Any, plan: ms.Plan, new: np.ndarray) -> float:
    """The largest difference of probabilities or numbers; of models without either, the share of other labels."""
    if plan.classes is None:
        return float(np.abs(plan.predict(new) - np.ravel(model.predict(new))).max())
    if not hasattr(model, "predict_proba"):
        return float((plan.predict(new) != model.predict(new)).mean())
    return float(np.abs(plan.predict_proba(new) - model.predict_proba(new)).max())


def kinds(quick: bool) -> Iterator[tuple[str, float]]:
    costs = ms.CostTable.per_feature(np.arange(1.0, 9.0))
    for name, (model, target, fit, holes) in KINDS.items():
        X = rows(2000, holes)
        model.fit(X, targets(X)[target], **fit)
        new = rows(500 if quick else ROWS, 2 * holes)
        yield name, difference(model, ms.import_plan(model, costs), new)
    yield "ONNX, trees (against onnxruntime)", _onnx(costs, quick)


def _onnx(costs: ms.CostTable, quick: bool) -> float:
    import onnxruntime

    X = rows(2000)
    model = ms.import_plan(lightgbm.LGBMClassifier(**GBM).fit(X, targets(X)["three"]), costs).export("onnx")
    new = rows(500 if quick else ROWS, 0.1).astype(np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return float(np.abs(ms.import_plan(model, costs).predict_proba(new) - session.run(None, {"X": new})[1]).max())


# ---- what lazy plans save ------------------------------------------------------------------------------------------


def savings(quick: bool) -> Iterator[tuple[str, float, float, float, float]]:
    """Name, share of trees not walked to a leaf, mean cost of the plain and the lazy plan, share of other answers."""
    for name, make in (
        ("ann-thyroid, 3 classes", _thyroid),
        ("MQ2008, first 10", _mq2008),
        ("yahoo_like, first 10", _yahoo),
    ):
        try:
            model, costs, X, qid = make(quick)
        except FileNotFoundError:
            continue
        plan = ms.import_plan(model, costs)
        lazy = plan.lazy()
        query = np.unique(np.zeros(len(X)) if qid is None else qid, return_inverse=True)[1]
        run, n_open = lazy.run_all(X, query)
        other = np.mean(_answers(plan.predict(X), qid) != _answers(lazy.read(run.z), qid))
        yield (
            name,
            float(n_open.mean() / len(plan.dictionary)),
            plan.predict_cost(X).mean(),
            run.cost.mean(),
            float(other),
        )


def _answers(prediction: np.ndarray, qid: np.ndarray | None, k: int = 10) -> np.ndarray:
    if qid is None:
        return prediction
    first = [np.flatnonzero(qid == q)[np.argsort(-prediction[qid == q], kind="stable")[:k]] for q in np.unique(qid)]
    return np.concatenate(first)


def _data() -> Path:
    return Path(os.environ.get("MISERLY_DATA", Path(__file__).parents[2] / "shared" / "data"))


def _thyroid(quick: bool) -> Any:
    folder = _data() / "ann_thyroid_cost"
    train, test = (np.loadtxt(folder / f"ann-{part}.data") for part in ("train", "test"))
    model = lightgbm.LGBMClassifier(n_estimators=100, verbose=-1, n_jobs=1).fit(train[:, :-1], train[:, -1])
    return model, ms.CostTable.from_file(folder / "costs.toml"), test[: 300 if quick else None, :-1], None


def _mq2008(quick: bool) -> Any:
    """Fold 1: a ranker of 300 trees, trained on S1 to S3, asked about S5."""
    folder = _data() / "mq2008"
    parts = [read_letor(folder / f"S{i}.txt.gz", 46) for i in (1, 2, 3)]
    X, y, qid = (np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "qid"))
    model = lightgbm.LGBMRanker(n_estimators=300, learning_rate=0.05, verbose=-1, n_jobs=1)
    model.fit(X, y, group=_sizes(qid))
    test, costs = read_letor(folder / "S5.txt.gz", 46), ms.CostTable.from_file(folder / "costs.toml")
    n = 400 if quick else len(test.y)
    return model, replace(costs, evaluation=0.0), test.X[:n].astype(np.float64), test.qid[:n]


def _yahoo(quick: bool) -> Any:
    train, test = yahoo_like(20 if quick else 300, 0), yahoo_like(5 if quick else 60, 1)
    model = lightgbm.LGBMRanker(n_estimators=100, verbose=-1, n_jobs=1)
    model.fit(train.X, train.y, group=_sizes(train.qid))
    return model, replace(train.costs, evaluation=0.0), np.asarray(test.X, np.float64), test.qid


def _sizes(qid: np.ndarray) -> np.ndarray:
    """How many documents each query has."""
    return np.diff(np.r_[0, np.flatnonzero(qid[1:] != qid[:-1]) + 1, len(qid)])


def main(quick: bool = False) -> None:
    """Print both tables."""
    warnings.filterwarnings("ignore")
    print("| model | largest difference |\n|---|---|")
    for name, most in kinds(quick):
        print(f"| {name} | {most:.1e} |")
    print(
        "\n| data | trees not walked to a leaf | mean cost | lazy | saved | other answers |\n|---|---|---|---|---|---|"
    )
    for name, trees, plain, lazy, other in savings(quick):
        print(f"| {name} | {trees:.0%} | {plain:.4g} | {lazy:.4g} | {1 - lazy / plain:.0%} | {other:.0%} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows")
    main(parser.parse_args().quick)
