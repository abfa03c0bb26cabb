"""Greedy Miser as a user meets it: fit, stages, budgets, the record of purchases, early stopping."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError

import miserly as ms
from miserly.boosting import SquaredHingeLoss
from miserly.datasets import four_quadrants, noisy_xor


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


def priced(n):
    return ms.CostTable.per_feature(1.0 + np.arange(n) % 7)


def test_a_higher_tradeoff_buys_less(cancer):
    X, y = cancer
    costs = [
        ms.GreedyMiserClassifier(priced(30), tradeoff=lam).fit(X, y).predict_cost(X).mean()
        for lam in (0, 1e-3, 1e-2, 1)
    ]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > 3 * costs[1]
    assert costs[-1] == 0.0


def test_a_feature_shared_by_a_group_becomes_free_with_the_group():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = X[:, 0] + 0.3 * X[:, 1] + 0.3 * X[:, 2]
    costs = ms.CostTable(
        features=["a", "b", "c", "d"],
        needs={"a": ["scan"], "b": ["scan"], "c": ["test"], "d": ["other"]},
        prices={"scan": 10, "test": 10, "other": 10},
    )
    model = ms.GreedyMiserRegressor(costs, tradeoff=0.01, n_estimators=60).fit(X, y)
    used = {int(f) for f in model.plan_.dictionary.used}
    assert used == {0, 1}, "b comes free with a; c is worth as much as b but costs ten more"
    assert (model.predict_cost(X) == 10.0).all()


def test_an_evaluation_price_ends_boosting_early(cancer):
    X, y = cancer
    costs = ms.CostTable.uniform(evaluation=1.0)
    free = ms.GreedyMiserClassifier(ms.CostTable.uniform(), tradeoff=1e-3).fit(X, y)
    paying = ms.GreedyMiserClassifier(costs, tradeoff=1e-3).fit(X, y)
    assert paying.n_iter_ < free.n_iter_
    assert paying.predict_cost(X).max() == paying.plan_.costs.price(
        [paying.plan_.costs.features[f] for f in paying.plan_.dictionary.used]
    ) + len(paying.plan_.dictionary)


def test_stages_are_rounds_and_end_at_the_prediction(cancer):
    X, y = cancer
    model = ms.GreedyMiserClassifier(priced(30), tradeoff=1e-3, n_estimators=25).fit(X, y)
    answers, costs = list(model.staged_predict(X)), list(model.staged_cost(X))
    assert len(answers) == len(costs) == model.n_iter_ == 25
    assert np.array_equal(answers[-1], model.predict(X))
    assert np.array_equal(costs[-1], model.predict_cost(X))
    assert all((after >= before).all() for before, after in pairwise(costs))


def test_the_path_tells_what_was_bought_when(cancer):
    X, y = cancer
    model = ms.GreedyMiserClassifier(priced(30), tradeoff=1e-3, n_estimators=40).fit(X, y)
    assert sum(p.price for p in model.path_) == pytest.approx(model.predict_cost(X)[0])
    assert [p.round for p in model.path_] == sorted(p.round for p in model.path_)
    assert all(p.gain > 1e-3 * p.price for p in model.path_)
    assert [p["feature"] for p in model.plan_.notes["path"]] == [p.feature for p in model.path_]
    y_share = y.mean()
    start = -(y_share * np.log(y_share) + (1 - y_share) * np.log(1 - y_share))
    assert start - sum(node.gain for node in model.plan_.nodes) == pytest.approx(model.train_loss_[-1])


def test_training_loss_falls_and_early_stopping_keeps_the_best(cancer):
    X, y = cancer
    model = ms.GreedyMiserClassifier(priced(30), tradeoff=0, n_estimators=300, learning_rate=0.5, n_iter_no_change=10)
    model.fit(X[::2], y[::2], eval_set=(X[1::2], y[1::2]))
    assert (np.diff(model.train_loss_) < 0).all()
    best = int(np.argmin(model.validation_loss_))
    assert model.n_iter_ == best + 1 < 290
    log_loss = -np.log(model.predict_proba(X[1::2])[np.arange(len(X[1::2])), y[1::2]]).mean()
    assert log_loss == pytest.approx(model.validation_loss_[best], rel=1e-9)


def test_several_classes_share_one_purse():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = ms.GreedyMiserClassifier(ms.CostTable.uniform(), tradeoff=0.02, min_samples_leaf=5).fit(X, names)
    assert set(model.predict(X)) == set(names)
    assert model.score(X, names) > 0.93
    assert model.predict_cost(X).max() <= 2
    assert model.decision_function(X).shape == (150, 3)
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)


def test_a_loss_of_your_own():
    class Absolute:
        n_outputs = 1

        def constant(self, y):
            return np.array([np.median(y)])

        def gradients(self, y, score):
            return np.sign(y - score), np.ones_like(score)

        def value(self, y, score):
            return float(np.abs(y - score[0]).mean())

    data = four_quadrants(500, 0)
    model = ms.GreedyMiserRegressor(data.costs, tradeoff=0, n_estimators=200, learning_rate=1.0, loss=Absolute())
    model.fit(data.X, data.y)
    assert np.median(np.abs(model.predict(data.X) - data.y)) < 1.0


def test_xor_needs_interactions():
    data = noisy_xor(1000, 0, squares=(1.0, 2.0))
    train, test = data.split(0.6, 0.4, seed=0)
    model = ms.GreedyMiserClassifier(data.costs, tradeoff=1e-5, n_estimators=200, learning_rate=0.2)
    assert model.fit(train.X, train.y).score(test.X, test.y) > 0.93


def test_frames_are_read_by_name():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["age", "mri", "blood"])
    y = frame["mri"] > 0
    costs = ms.CostTable.per_feature({"mri": 800, "blood": 20, "age": 1})
    model = ms.GreedyMiserClassifier(costs, tradeoff=1e-4).fit(frame, y)
    assert model.plan_.costs.features == ("age", "mri", "blood")
    assert (model.predict_cost(frame) == 800).all()
    with pytest.raises(ValueError, match="order"):
        model.predict(frame[["mri", "age", "blood"]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"costs": None}, "needs the price of each feature"),
        ({"costs": ms.CostTable.per_feature([1.0, 2.0])}, "prices 2 features, X has 30"),
        ({"tradeoff": -1.0}, "tradeoff"),
        ({"max_bins": 300}, "max_bins"),
        ({"n_iter_no_change": 5}, "eval_set"),
    ],
)
def test_wrong_settings_name_the_remedy(cancer, change, message):
    model = ms.GreedyMiserClassifier(ms.CostTable.uniform()).set_params(**change)
    with pytest.raises(ValueError, match=message):
        model.fit(*cancer)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((0, 3)), np.zeros(0), "0 sample"),
        (np.ones((5, 2)), np.zeros(5), "one class only"),
        (np.ones((5, 2)), [0, 1, np.nan, 0, 1], "NaN"),
        (np.full((5, 2), np.inf), [0, 1, 0, 1, 0], "infinity"),
        (np.array([["a"], ["b"]]), [0, 1], "convert"),
    ],
)
def test_wrong_data_is_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        ms.GreedyMiserClassifier(ms.CostTable.uniform()).fit(X, y)


def test_predicting_before_fitting_and_with_other_columns(cancer):
    X, y = cancer
    model = ms.GreedyMiserClassifier(ms.CostTable.uniform(), n_estimators=2)
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(ValueError, match="29 features"):
        model.fit(X, y).predict(X[:, 1:])


def test_constant_columns_are_never_bought():
    rng = np.random.default_rng(1)
    X = np.column_stack([np.ones(200), rng.normal(size=200), np.full(200, np.nan)])
    model = ms.GreedyMiserRegressor(ms.CostTable.uniform(0.0), tradeoff=0).fit(X, X[:, 1])
    assert set(model.plan_.dictionary.used) == {1}


def test_prepared_bins_give_the_same_model(cancer):
    X, y = cancer
    model = ms.GreedyMiserClassifier(ms.CostTable.uniform())
    plain, prepared = model.fit(X, y).plan_, model.fit(X, y, binned=model.prepare(X)).plan_
    assert plain == prepared
    with pytest.raises(ValueError, match="Prepare it from this X"):
        model.fit(X[1:], y[1:], binned=model.prepare(X))


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((5, 30)), [0, 1, np.nan, 0, 1], "the y of eval_set lacks the label of row 2"),
        (np.zeros((5, 30)), [0, 1, np.inf, 0, 1], "holds infinity in y"),
        (np.zeros((5, 30)), [0, 1, 0, 1], "5 rows in X and 4"),
        (np.zeros((5, 29)), [0, 1, 0, 1, 0], "29 features"),
        (np.zeros((3, 30)), [0, 1, 7], "training data have not"),
    ],
)
def test_wrong_validation_data_is_refused(cancer, X, y, message):
    model = ms.GreedyMiserClassifier(ms.CostTable.uniform(), n_estimators=2)
    with pytest.raises(ValueError, match=message):
        model.fit(*cancer, eval_set=(X, y))


def test_a_refit_forgets_the_old_validation(cancer):
    X, y = cancer
    model = ms.GreedyMiserClassifier(ms.CostTable.uniform(), n_estimators=2).fit(X, y, eval_set=(X, y))
    assert len(model.validation_loss_) == 2
    assert model.fit(X, y).validation_loss_ is None


def test_a_loss_with_the_wrong_number_of_scores_is_refused():
    X, y = load_iris(return_X_y=True)
    model = ms.GreedyMiserClassifier(ms.CostTable.uniform(), loss=SquaredHingeLoss())
    with pytest.raises(ValueError, match="3 classes need 3 scores"):
        model.fit(X, y)
    assert model.fit(X, y > 0).score(X, y > 0) == 1.0


def test_suggesting_a_grid_does_not_fit():
    y = load_iris().target
    model = ms.GreedyMiserClassifier(ms.CostTable.uniform())
    assert len(model.suggest_grid(y)) == 8
    assert vars(model).keys() == model.get_params().keys()
    with pytest.raises(ValueError, match="needs the price"):
        ms.GreedyMiserClassifier().suggest_grid(y)
