"""A plan and a menu as MLflow models: the same predictions after the round trip, budgets, no pickle."""

from dataclasses import replace

import numpy as np
import pytest

import miserly as ms
from miserly.integrations import MlflowModel
from miserly.plan import Menu
from miserly.schema import Column, Schema

COSTS = ms.CostTable.per_feature({"age": 1.0, "sex": 2.0, "crp": 4.0})


@pytest.fixture(scope="module")
def plans():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=300), rng.integers(0, 2, 300), rng.normal(size=300)])
    y = np.where(X.sum(axis=1) > 0, "ill", "well")
    schema = Schema((Column("age"), Column("sex", "category", ("female", "male")), Column("crp")))
    found = [ms.GreedyMiserClassifier(COSTS, tradeoff=t, n_estimators=10).fit(X, y).plan_ for t in (1e-4, 10.0)]
    found = [replace(plan, schema=schema) for plan in found]
    return found, Menu.measured(found, X, lambda p, run: float((p.read(run.z) == y).mean())), X


def frame(X):
    pd = pytest.importorskip("pandas")
    words = np.where(X[:, 1] > 0, "male", "female")
    return pd.DataFrame({"crp": X[:, 2], "sex": words, "age": X[:, 0]})


def test_the_model_answers_as_the_plan(plans):
    (plan, _), menu, X = plans
    answer = MlflowModel(plan).predict(frame(X))
    assert answer["prediction"].tolist() == plan.predict(X).tolist()
    assert answer["p(ill)"].tolist() == plan.predict_proba(X)[:, 0].tolist()
    few = MlflowModel(menu).predict(frame(X), params={"budget": 3.0, "mean_budget": -1.0})
    assert few["prediction"].tolist() == menu.predict(X, budget=3.0).tolist()
    assert few["cost"].tolist() == menu.predict_cost(X, budget=3.0).tolist()


@pytest.mark.parametrize("kind", ["plan", "menu"])
def test_round_trip(plans, kind, tmp_path):
    mlflow = pytest.importorskip("mlflow.pyfunc", reason="mlflow is not installed")
    from miserly.integrations import save_mlflow

    (plan, _), menu, X = plans
    model = plan if kind == "plan" else menu
    save_mlflow(model, tmp_path / "saved")
    assert not [path for path in (tmp_path / "saved").rglob("*") if path.suffix in (".pkl", ".pickle")]
    loaded = mlflow.load_model(str(tmp_path / "saved"))
    assert [column.name for column in loaded.metadata.signature.inputs] == ["age", "sex", "crp"]
    answer = loaded.predict(frame(X))
    assert answer["prediction"].tolist() == model.predict(X).tolist()
    assert answer["cost"].tolist() == model.predict_cost(X).tolist()
    few = loaded.predict(frame(X), params={"budget": 3.0})
    assert few["cost"].tolist() == model.predict_cost(X, budget=3.0).tolist()
    gaps = frame(X)
    gaps.loc[::3, "crp"] = np.nan
    holes = np.where(np.arange(len(X))[:, None] % 3 == 0, [[0.0, 0.0, np.nan]], 0.0) + X
    assert loaded.predict(gaps)["prediction"].tolist() == model.predict(holes).tolist()
