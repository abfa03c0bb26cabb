"""Rows that count more than others, not at all, or now and then; fits that go on; data in other forms."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import miserly as ms
from miserly.boosting import SquaredHingeLoss, SquaredLoss, bin_data
from miserly.boosting._rows import TrainingRows
from miserly.datasets import four_quadrants

KINDS = ["regressor", "classifier", "ranker"]


def problem(n_rows=600, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 6)).round(1)
    score = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n_rows)
    return X, score, np.digitize(score, np.linspace(-1, 1, n_classes - 1) if n_classes > 2 else [0])


def model(kind="regressor", **options):
    costs = ms.CostTable.per_feature(np.arange(6) + 1.0)
    makes = {
        "regressor": ms.GreedyMiserRegressor,
        "classifier": ms.GreedyMiserClassifier,
        "ranker": ms.GreedyMiserRanker,
    }
    settings = {"tradeoff": 1e-3, "n_estimators": 20, "learning_rate": 0.3, "min_samples_leaf": 1} | options
    return makes[kind](costs, **settings)


def same(a, b, X):
    assert np.array_equal(a.predict_cost(X), b.predict_cost(X))
    np.testing.assert_allclose(a.plan_.score(X), b.plan_.score(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("charge", ["learner", "path"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_weight_three_is_three_rows_and_one_of_weight_zero_is_none(kind, charge):
    X, score, label = problem()
    y = label if kind == "classifier" else score
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), weight)
    weighted = model(kind, charge=charge).fit(X, y, sample_weight=weight)
    plain = model(kind, charge=charge).fit(X[repeated], y[repeated])
    same(weighted, plain, X)
    assert weighted.train_loss_ == pytest.approx(plain.train_loss_, rel=1e-5)


def test_lambdarank_takes_weights_of_queries():
    X, score, _ = problem()
    y, qid = np.digitize(score, [-0.5, 0.5]), np.repeat(np.arange(60), 10)
    even = np.flatnonzero(qid % 2 == 0)
    weighted = model("ranker", loss="lambdarank").fit(X, y, qid=qid, sample_weight=(qid % 2 == 0).astype(float))
    plain = model("ranker", loss="lambdarank").fit(X[even], y[even], qid=qid[even])
    assert weighted.train_loss_ == pytest.approx(plain.train_loss_, rel=1e-6)
    same(weighted, plain, X)


def test_the_scale_of_the_weights_does_not_matter():
    X, y, _ = problem()
    weight = np.random.default_rng(2).random(len(X))
    same(model().fit(X, y, sample_weight=weight), model().fit(X, y, sample_weight=weight * 1024.0), X)
    same(model().fit(X, y), model().fit(X, y, sample_weight=np.full(len(X), 0.3)), X)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-1.0, "holds -1 at row 3"),
        (np.nan, "holds nan at row 3"),
        (np.inf, "holds inf at row 3"),
    ],
)
def test_bad_weights_are_refused(weight, message):
    X, y, _ = problem(50)
    weights = np.ones(50)
    weights[3] = weight
    with pytest.raises(ValueError, match=message):
        model().fit(X, y, sample_weight=weights)
    with pytest.raises(ValueError, match="zero for all rows"):
        model().fit(X, y, sample_weight=np.zeros(50))
    with pytest.raises(ValueError, match=r"shape \(49,\), X 50 rows"):
        model().fit(X, y, sample_weight=np.ones(49))


@pytest.mark.parametrize(
    "options", [{"subsample": 0.5}, {"max_features": 0.4}, {"subsample": 0.7, "max_features": 0.7}]
)
def test_draws_depend_on_the_seed_alone(options):
    X, y, _ = problem()
    one, again = (model(**options, random_state=5).fit(X, y) for _ in range(2))
    assert one.plan_ == again.plan_
    assert one.plan_ != model(**options, random_state=6).fit(X, y).plan_
    assert one.plan_ != model().fit(X, y).plan_
    assert one.train_loss_[-1] < one.plan_.notes["tradeoff"] + 0.5 * np.var(y)


def test_a_draw_takes_about_its_share_of_rows_each_round_another():
    data = bin_data(np.zeros((10_000, 1)), 2)
    rows = TrainingRows(data, np.zeros(10_000), SquaredLoss())
    draws = np.empty((20, 10_000), bool)
    for seed, drawn in enumerate(draws):
        rows.draw(seed, 0.3)
        drawn[:] = ~rows.absent
    assert abs(draws.mean() - 0.3) < 0.01
    assert abs((draws[0] & draws[1]).mean() - 0.09) < 0.02


def test_a_tree_of_some_features_uses_only_those():
    X, y, _ = problem()
    fitted = model(max_features=0.34, n_estimators=30, random_state=0, tradeoff=0.0, max_depth=6).fit(X, y)
    trees = fitted.plan_.dictionary
    assert max(len(trees.features_of(t)) for t in range(len(trees))) == 2
    assert len(fitted.selected_features_) == 6


@pytest.mark.parametrize("charge", ["learner", "path"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"subsample": 0.6, "random_state": 1}, {"repeat_price": 0.1}])
def test_a_fit_that_goes_on_equals_one_that_was_never_interrupted(kind, charge, options):
    X, score, label = problem()
    y = label if kind == "classifier" else score
    whole = model(kind, charge=charge, n_estimators=24, **options).fit(X, y)
    parts = model(kind, charge=charge, n_estimators=7, warm_start=True, **options).fit(X, y)
    parts.set_params(n_estimators=13).fit(X, y)
    parts.set_params(n_estimators=24).fit(X, y)
    assert parts.plan_ == whole.plan_
    assert parts.train_loss_ == whole.train_loss_
    assert parts.path_ == whole.path_


def test_going_on_watches_validation_from_the_beginning():
    X, y, _ = problem()
    eval_set = problem(seed=1)[:2]
    whole = model(n_estimators=20).fit(X, y, eval_set=eval_set)
    parts = model(n_estimators=5, warm_start=True).fit(X, y, eval_set=eval_set)
    parts.set_params(n_estimators=20).fit(X, y, eval_set=eval_set)
    assert parts.validation_loss_ == whole.validation_loss_


def test_a_fit_cannot_go_on_with_fewer_rounds_or_other_data():
    X, y, label = problem()
    fitted = model(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="n_estimators=5 is less than the 20 rounds done"):
        fitted.set_params(n_estimators=5).fit(X, y)
    classifier = model("classifier", warm_start=True).fit(X, label)
    with pytest.raises(ValueError, match="other features or classes"):
        classifier.set_params(n_estimators=30).fit(X, np.digitize(y, [-1, 1]))


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array])
@pytest.mark.parametrize("charge", ["learner", "path"])
def test_sparse_data_give_the_same_model(form, charge):
    X, _, label = problem()
    X[np.abs(X) < 0.7] = 0.0
    dense = model("classifier", charge=charge).fit(X, label, eval_set=(X, label))
    thin = model("classifier", charge=charge).fit(form(X), label, eval_set=(form(X), label))
    assert dense.plan_ == thin.plan_
    assert dense.validation_loss_ == thin.validation_loss_
    for method in ("predict", "predict_proba", "decision_function", "predict_cost"):
        assert np.array_equal(getattr(dense, method)(X), getattr(thin, method)(form(X)))
    assert [a.tolist() for a in dense.staged_predict(X)] == [b.tolist() for b in thin.staged_predict(form(X))]
    thin.set_params(warm_start=True, n_estimators=25).fit(form(X), label)
    assert thin.plan_ == model("classifier", charge=charge, n_estimators=25).fit(X, label).plan_


@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_categories_are_read_in_their_own_order(frame):
    rng = np.random.default_rng(0)
    size = rng.integers(0, 4, 400)
    names = ["small", "medium", "large", "huge"]
    y = np.array([0.0, 3.0, 1.0, 2.0])[size] + 0.1 * rng.normal(size=400)
    words = [names[i] for i in size]
    if frame == "pandas":
        column = pd.Categorical(words, categories=names, ordered=True)
        X = pd.DataFrame({"size": column, "noise": rng.normal(size=400)})
        new = pd.DataFrame({"size": ["large", "unheard of", None], "noise": [0.0, 0.0, 0.0]})
    else:
        X = pl.DataFrame({"size": pl.Series(words, dtype=pl.Enum(names)), "noise": rng.normal(size=400)})
        new = pl.DataFrame({"size": ["large", "unheard of", None], "noise": [0.0, 0.0, 0.0]})
    settings = {"tradeoff": 1e-4, "n_estimators": 50, "min_samples_leaf": 5}
    fitted = ms.GreedyMiserRegressor(ms.CostTable.uniform(), **settings).fit(X, y)
    coded = np.column_stack([size, np.asarray(X["noise"])])
    plain = ms.GreedyMiserRegressor(ms.CostTable.uniform(), **settings).fit(coded, y)
    assert np.array_equal(fitted.predict(X), plain.predict(coded))
    assert np.array_equal(fitted.predict(new), plain.predict([[2.0, 0.0], [np.nan, 0.0], [np.nan, 0.0]]))
    assert fitted.plan_.schema.categories == {"size": tuple(names)}


@pytest.mark.parametrize("n_classes", [2, 4])
def test_squared_hinge_is_one_against_the_rest_with_probabilities(n_classes):
    X, _, label = problem(2000, n_classes=n_classes)
    test_X, _, test_label = problem(2000, seed=1, n_classes=n_classes)
    names = np.array(["a", "b", "c", "d"])
    options = {"n_estimators": 60, "min_samples_leaf": 20, "tradeoff": 1e-4}
    hinge = model("classifier", loss="squared_hinge", **options).fit(
        X[:1500], names[label[:1500]], eval_set=(X[1500:], names[label[1500:]])
    )
    auto = model("classifier", **options).fit(X[:1500], names[label[:1500]])
    assert hinge.plan_.link == "logistic"
    proba = hinge.predict_proba(test_X)
    assert proba.shape == (2000, n_classes)
    assert (names[:n_classes][proba.argmax(axis=1)] == hinge.predict(test_X)).all()
    ours, theirs = (ms.metrics.log_loss(test_label, m.predict_proba(test_X)) for m in (hinge, auto))
    assert ours < theirs + 0.05
    assert (hinge.predict(test_X) == names[test_label]).mean() > (
        auto.predict(test_X) == names[test_label]
    ).mean() - 0.02


def test_squared_hinge_of_three_classes_is_the_sum_of_three_of_two():
    y, score = np.array([0.0, 1.0, 2.0, 1.0]), np.random.default_rng(0).normal(size=(3, 4))
    gradient, hessian = SquaredHingeLoss(3).gradients(y, score)
    value = 0.0
    for k in range(3):
        two = SquaredHingeLoss()
        g, h = two.gradients((y == k).astype(float), score[k : k + 1])
        assert np.array_equal(gradient[k], g[0])
        assert np.array_equal(hessian[k], h[0])
        value += two.value((y == k).astype(float), score[k : k + 1])
    assert SquaredHingeLoss(3).value(y, score) == pytest.approx(value)


@pytest.mark.parametrize("kind", ["regressor", "classifier"])
@pytest.mark.parametrize("weighted", [False, True])
def test_by_path_the_purchases_add_up_to_the_mean_cost(kind, weighted):
    X, score, label = problem(800, n_classes=3)
    weight = np.random.default_rng(0).integers(1, 4, len(X)) if weighted else None
    y = label if kind == "classifier" else score
    fitted = model(kind, charge="path", min_samples_leaf=10).fit(X, y, sample_weight=weight)
    paid = fitted.predict_cost(X)
    assert len(set(paid)) > 2
    assert sum(p.price for p in fitted.path_) == pytest.approx(np.average(paid, weights=weight), rel=1e-9)
    assert fitted.plan_.charge == "path"
    assert (fitted.predict_cost(X, charge="learner") >= paid).all()


def test_by_learner_the_purchases_add_up_to_the_cost():
    X, y, _ = problem()
    fitted = model().fit(X, y)
    assert set(fitted.predict_cost(X)) == {sum(p.price for p in fitted.path_)}


def test_charged_by_path_it_buys_the_dear_feature_only_where_it_helps():
    """Nine rows of ten are known from the cheap feature; the expensive one decides the tenth."""
    rng = np.random.default_rng(0)
    hard = rng.random(4000) < 0.1
    sign = rng.choice([-1.0, 1.0], 4000)
    X = np.column_stack([np.where(hard, 0.0, sign), sign])
    costs = ms.CostTable.per_feature([1.0, 100.0])
    settings = {"tradeoff": 2e-3, "n_estimators": 30, "learning_rate": 0.5, "max_depth": 3}
    path = ms.GreedyMiserRegressor(costs, charge="path", **settings).fit(X, sign)
    learner = ms.GreedyMiserRegressor(costs, charge="learner", **settings).fit(X, sign)
    assert path.predict_cost(X).mean() == pytest.approx(1.0 + 100 * hard.mean(), rel=1e-6)
    assert ((path.predict(X) > 0) == (sign > 0)).all()
    assert set(learner.predict_cost(X)) == {1.0}


def test_a_price_for_later_uses_makes_models_use_features_less_often():
    X, y, _ = problem()

    def n_splits(repeat):
        fitted = model(repeat_price=repeat, tradeoff=1e-3).fit(X, y)
        return int((~fitted.plan_.dictionary.is_leaf).sum())

    assert n_splits(0.0) > n_splits(0.05) > n_splits(1.0) > 0


def test_with_one_price_for_all_it_selects_features():
    X, _, _ = problem()
    y = X[:, :3].sum(axis=1) + 0.3 * np.random.default_rng(0).normal(size=len(X))
    named = pd.DataFrame(X, columns=list("abcdef"))
    fitted = ms.GreedyMiserRegressor(ms.CostTable.uniform(), tradeoff=0.02).fit(named, y)
    assert fitted.selected_features_ == ["a", "b", "c"]


def test_validation_data_must_carry_the_names_of_the_training_data():
    X, y, _ = problem()
    named = pd.DataFrame(X, columns=list("abcdef"))
    costs = ms.CostTable.uniform()
    with pytest.raises(ValueError, match="the X of eval_set has none"):
        ms.GreedyMiserRegressor(costs).fit(named, y, eval_set=(X, y))
    with pytest.raises(ValueError, match="feature names"):
        ms.GreedyMiserRegressor(costs).fit(named, y, eval_set=(named.rename(columns={"a": "z"}), y))


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA])
@pytest.mark.parametrize("kind", [np.asarray, pd.Series])
def test_a_missing_label_is_refused(kind, missing):
    X = np.arange(40.0).reshape(20, 2)
    words = np.array(["a", "b"] * 10, object)
    holed = words.copy()
    holed[4] = missing
    classifier = ms.GreedyMiserClassifier(ms.CostTable.uniform(), n_estimators=2, min_samples_leaf=2)
    with pytest.raises(ValueError, match=r"^y lacks the label of row 4"):
        classifier.fit(X, kind(holed))
    with pytest.raises(ValueError, match=r"^the y of eval_set lacks the label of row 4"):
        classifier.fit(X, words, eval_set=(X, kind(holed)))


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA])
@pytest.mark.parametrize("ids", [[1.0, 2.0], ["a", "b"]])
def test_a_missing_query_id_is_refused(ids, missing):
    X, y, _ = problem(20)
    qid = np.repeat(np.array(ids, float if missing is np.nan and ids[0] == 1.0 else object), 10)
    ranker = model("ranker").fit(X, y, qid=qid)
    qid[3] = missing
    for ask in (ranker.fit, lambda X, y, qid: ranker.plan_.run(X, qid)):
        with pytest.raises(ValueError, match="qid lacks the query id of row 3"):
            ask(X, y, qid=qid)


@pytest.mark.parametrize("seed", range(100, 120))
def test_charged_by_path_it_finds_the_right_feature_of_each_quadrant(seed):
    """The papers' synthetic set for trees of classifiers: two signs for 1 each, then one of four features for 10."""
    train, test = four_quadrants(1000, seed), four_quadrants(1000, seed + 1000)
    settings = {"tradeoff": 0.01, "n_estimators": 50, "learning_rate": 0.3, "min_samples_leaf": 5}
    fitted = ms.GreedyMiserRegressor(train.costs, charge="path", **settings).fit(train.X, train.y)
    assert fitted.predict_cost(test.X).mean() <= 12.5
    assert np.mean((fitted.predict(test.X) - test.y) ** 2) < 0.05
