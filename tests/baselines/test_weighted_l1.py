"""The cost-weighted l1 models as a user meets them."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression

import miserly as ms
from miserly.baselines import CostWeightedL1Classifier, CostWeightedL1Regressor

KINDS = (CostWeightedL1Regressor, CostWeightedL1Classifier)


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


def priced(n):
    return ms.CostTable.per_feature([(1.0, 5.0, 20.0, 100.0)[i * 7 % 4] for i in range(n)])


def random_data(kind, n=200, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 2
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    return X, y if kind is CostWeightedL1Regressor else np.digitize(y, np.quantile(y, [0.3, 0.7]))


# two features at ±1, orthogonal and standardised as they are; y = 2 + 3·x1 + 1·x2
SQUARE = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
HEIGHTS = np.array([6.0, 4.0, 0.0, -2.0])


@pytest.mark.parametrize(
    ("tradeoff", "refit", "coef", "cost"),
    [
        (0.5, False, [3 - 0.5 * 2, 1 - 0.5 * 1], 3.0),  # each is shrunk by tradeoff · price
        (1.2, False, [3 - 1.2 * 2, 0.0], 2.0),  # x2 is worth 1, less than 1.2
        (1.2, True, [3.0, 0.0], 2.0),  # least squares on what was chosen
        (2.0, True, [0.0, 0.0], 0.0),
        (0.0, False, [3.0, 1.0], 3.0),
    ],
)
def test_regression_by_hand(tradeoff, refit, coef, cost):
    model = CostWeightedL1Regressor(ms.CostTable.per_feature([2.0, 1.0]), tradeoff, refit=refit).fit(SQUARE, HEIGHTS)
    np.testing.assert_allclose(model.coef_, coef, rtol=0, atol=1e-14)
    assert model.intercept_ == pytest.approx(2.0)
    np.testing.assert_allclose(model.predict(SQUARE), SQUARE @ coef + 2.0, rtol=0, atol=1e-14)
    assert (model.predict_cost(SQUARE) == cost).all()


def test_alpha_is_added_to_every_price():
    model = CostWeightedL1Regressor(ms.CostTable.per_feature([2.0, 0.0]), 0.5, alpha=0.25, refit=False)
    np.testing.assert_allclose(model.fit(SQUARE, HEIGHTS).coef_, [3 - 1.25, 1 - 0.25], rtol=0, atol=1e-14)


def test_two_classes_by_hand():
    # x = 1: three of four positive; x = −1: one of four. Squared loss gives x/2; Platt's softened targets 5/6 and 1/6
    # make the log-odds ± log 2 (see test_platt_by_hand), whatever the penalty shrinks
    X = np.repeat([[1.0], [-1.0]], 4, axis=0)
    y = np.array(list("yyynynnn"))
    for refit in (True, False):
        model = CostWeightedL1Classifier(ms.CostTable.uniform(), tradeoff=0.1, refit=refit).fit(X, y)
        np.testing.assert_allclose(model.decision_function([[1.0], [-1.0]]), [np.log(2), -np.log(2)], atol=1e-10)
        np.testing.assert_allclose(model.predict_proba([[1.0]]), [[1 / 3, 2 / 3]], atol=1e-10)
        assert model.predict([[1.0], [-1.0]]).tolist() == ["y", "n"]
    assert not CostWeightedL1Classifier(ms.CostTable.uniform(), tradeoff=0.51).fit(X, y).selected_features_


def test_of_two_equal_features_the_cheaper_is_bought(cancer):
    X, y = cancer
    doubled = np.hstack([X, X])
    costs = ms.CostTable.per_feature(np.repeat([3.0, 1.0], 30))
    model = CostWeightedL1Classifier(costs, tradeoff=0.01).fit(doubled, y)
    assert model.plan_.used_features
    assert min(model.plan_.used_features) >= 30
    assert np.array_equal(
        model.predict(doubled), CostWeightedL1Classifier(ms.CostTable.uniform(), tradeoff=0.01).fit(X, y).predict(X)
    )


@pytest.mark.parametrize("refit", [True, False])
def test_a_higher_tradeoff_buys_less(cancer, refit):
    X, y = cancer
    costs = [
        CostWeightedL1Classifier(priced(30), lam, refit=refit).fit(X, y).predict_cost(X)[0]
        for lam in (0.0, 1e-4, 1e-3, 1e-2, 1.0)
    ]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] == priced(30).price(priced(30).features)
    assert costs[-1] == 0.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(200, 12), (30, 50)])
def test_a_path_is_separate_fits(kind, shape):
    X, y = random_data(kind, *shape)
    model = kind(priced(shape[1]), refit=False)
    tradeoffs = [0.0, 1e-3, 1e-1, 1e-2]
    path = model.path(X, y, tradeoffs)
    assert [m.tradeoff for m in path] == sorted(tradeoffs, reverse=True)
    assert not hasattr(model, "plan_")
    for along in path:
        alone = clone(model).set_params(tradeoff=along.tradeoff).fit(X, y)
        np.testing.assert_allclose(along.coef_, alone.coef_, rtol=0, atol=1e-6)
        assert np.array_equal(along.predict_cost(X), alone.predict_cost(X))


def test_a_path_of_its_own_starts_where_something_is_bought(cancer):
    X, y = cancer
    path = CostWeightedL1Classifier(priced(30)).path(X, y)
    costs = [m.predict_cost(X)[0] for m in path]
    assert len(path) == 8
    assert costs == sorted(costs)
    assert costs[1] > 0
    above = clone(path[0]).set_params(tradeoff=path[0].tradeoff * 1.001).fit(X, y)
    below = clone(path[0]).set_params(tradeoff=path[0].tradeoff * 0.999).fit(X, y)
    assert not above.selected_features_
    assert below.selected_features_


def test_free_features_are_used_and_share_what_they_have_in_common():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    X = np.column_stack([X, X[:, 0]])
    y = 2 * X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=100)
    model = CostWeightedL1Regressor(ms.CostTable.per_feature([0.0, 1.0, 1.0, 0.0]), tradeoff=0.2).fit(X, y)
    assert model.plan_.used_features == (0, 1, 3)
    assert model.coef_[0] == pytest.approx(model.coef_[3])
    assert model.coef_[0] + model.coef_[3] == pytest.approx(2.0, abs=0.05)
    assert (model.predict_cost(X) == 1.0).all()


def test_no_tradeoff_is_least_squares():
    X, y = load_diabetes(return_X_y=True)
    model = CostWeightedL1Regressor(priced(10), tradeoff=0.0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), LinearRegression().fit(X, y).predict(X), rtol=1e-10)


def test_several_classes_are_told_apart_as_by_discriminant_analysis():
    X, y = load_iris(return_X_y=True)
    many = np.full(150, 1000.0)  # so that the one row's worth that softens the probabilities cannot be seen
    model = CostWeightedL1Classifier(ms.CostTable.uniform(), tradeoff=0.0).fit(X, y, sample_weight=many)
    peer = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-3)
    assert model.coef_.shape == (3, 4)
    few = CostWeightedL1Classifier(ms.CostTable.uniform(), tradeoff=0.8).fit(X, y)
    assert few.predict_cost(X)[0] <= 2
    assert few.score(X, y) > 0.9


def test_shared_acquisitions_weigh_each_feature_and_are_charged_once():
    # x1 and x2 need the scan (2); x2 also a reading (1): penalties are tradeoff · 2 and · 3, the bill is 3
    costs = ms.CostTable(
        features=["a", "b"], needs={"a": ["scan"], "b": ["scan", "read"]}, prices={"scan": 2, "read": 1}
    )
    model = CostWeightedL1Regressor(costs, tradeoff=0.1, refit=False).fit(SQUARE, HEIGHTS)
    np.testing.assert_allclose(model.coef_, [3 - 0.2, 1 - 0.3], rtol=0, atol=1e-14)
    assert (model.predict_cost(SQUARE) == 3.0).all()


def test_the_price_of_an_evaluation_counts():
    costs = ms.CostTable.per_feature([2.0, 1.0], evaluation=[0.5, 0.25])
    model = CostWeightedL1Regressor(costs, tradeoff=0.1, refit=False).fit(SQUARE, HEIGHTS)
    np.testing.assert_allclose(model.coef_, [3 - 0.25, 1 - 0.125], rtol=0, atol=1e-14)
    assert (model.predict_cost(SQUARE) == 3.75).all()


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_repeated_rows(kind):
    X, y = random_data(kind)
    times = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = kind(priced(12), tradeoff=1e-2).fit(X, y, sample_weight=times)
    repeated = kind(priced(12), tradeoff=1e-2).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_the_units_of_features_do_not_matter(kind):
    X, y = random_data(kind)
    model = kind(priced(12), tradeoff=1e-2)
    moved = X * np.logspace(-6, 6, 12) + np.linspace(-3, 3, 12)
    one, other = clone(model).fit(X, y), clone(model).fit(moved, y)
    assert one.plan_.used_features == other.plan_.used_features
    np.testing.assert_allclose(one.predict(X), other.predict(moved), rtol=1e-6)


def test_a_budget_below_the_price_gives_the_answer_for_mean_values(cancer):
    X, y = cancer
    model = CostWeightedL1Classifier(priced(30), tradeoff=1e-3).fit(X, y)
    assert (model.predict_cost(X, budget=0.0) == 0.0).all()
    mean = model.predict_proba(X.mean(axis=0, keepdims=True))[0, 1]
    np.testing.assert_allclose(model.predict_proba(X, budget=0.0)[:, 1], mean)
    numbers = CostWeightedL1Regressor(priced(30), tradeoff=1e-3).fit(X, y)
    np.testing.assert_allclose(numbers.predict(X, budget=0.0), y.mean())


def test_frames_and_sparse_matrices(cancer):
    pd = pytest.importorskip("pandas")
    X, y = cancer
    names = [f"f{i}" for i in range(30)]
    model = CostWeightedL1Classifier(ms.CostTable.per_feature(dict.fromkeys(reversed(names), 1.0)), tradeoff=0.01)
    plain = clone(model).set_params(costs=ms.CostTable.uniform()).fit(X, y)
    assert np.array_equal(clone(model).fit(pd.DataFrame(X, columns=names), y).coef_, plain.coef_)
    thin = plain.fit(sparse.csr_array(X), y)
    assert np.array_equal(thin.predict(sparse.csr_array(X)), plain.predict(X))
    frame = pd.DataFrame({"f0": pd.Categorical(["a", "b", "a"]), "f1": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match="OneHotEncoder"):
        CostWeightedL1Regressor(ms.CostTable.uniform()).fit(frame, [1.0, 2.0, 3.0])


def test_a_frontier_by_its_own_grid(cancer):
    X, y = cancer
    model = CostWeightedL1Classifier(priced(30))
    front = ms.frontier(model, train=(X[::2], y[::2]), validation=(X[1::2], y[1::2]))
    costs = [point.model.predict_cost(X)[0] for point in front.points]
    assert max(costs) > 100 > 10 > min(costs)
    assert min(costs) == 0  # the sweep went on until nothing was bought
    grid = model.suggest_grid(y)
    assert np.allclose(clone(model).set_params(costs=priced(30).scaled(4.0)).suggest_grid(y) * 4.0, grid)
    assert vars(model).keys() == model.get_params().keys()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"costs": None}, "needs the price of each feature"),
        ({"costs": ms.CostTable.per_feature([1.0])}, "prices 1 features, X has 2"),
        ({"tradeoff": -1.0}, "tradeoff"),
        ({"alpha": np.nan}, "alpha"),
        ({"refit": "yes"}, "refit"),
    ],
)
def test_wrong_settings_name_the_remedy(change, message):
    model = CostWeightedL1Regressor(ms.CostTable.uniform()).set_params(**change)
    with pytest.raises(ValueError, match=message):
        model.fit(SQUARE, HEIGHTS)


@pytest.mark.parametrize(
    ("X", "weights", "message"),
    [
        (np.full((4, 2), np.nan), None, "NaN"),
        (np.full((4, 2), np.inf), None, "infinity"),
        (SQUARE, [1, 1, 1, -1], "-1"),
        (SQUARE, [0, 0, 0, 0], "zero"),
        (SQUARE, [1, 1, 1], "one weight per row"),
    ],
)
def test_wrong_data_is_refused(X, weights, message):
    with pytest.raises(ValueError, match=message):
        CostWeightedL1Regressor(ms.CostTable.uniform()).fit(X, HEIGHTS, sample_weight=weights)
    with pytest.raises(ValueError, match="tradeoff"):
        CostWeightedL1Regressor(ms.CostTable.uniform()).path(SQUARE, HEIGHTS, [0.1, -0.1])


def test_nothing_to_learn_from():
    X = np.column_stack([np.full(20, 0.1), np.arange(20.0)])
    flat = CostWeightedL1Regressor(ms.CostTable.uniform(), tradeoff=0.0).fit(X, np.full(20, 0.3))
    np.testing.assert_allclose(flat.predict(X), 0.3)
    assert CostWeightedL1Regressor(ms.CostTable.uniform(0.0), tradeoff=0.0).fit(X, X[:, 1]).plan_.used_features == (1,)
    constant = CostWeightedL1Classifier(ms.CostTable.uniform()).fit(np.ones((6, 2)), [0, 1, 2, 2, 2, 2])
    assert (constant.predict(np.ones((1, 2))) == 2).all()
    assert len(CostWeightedL1Regressor(ms.CostTable.uniform()).path(X[:, :1], X[:, 1])) == 1
