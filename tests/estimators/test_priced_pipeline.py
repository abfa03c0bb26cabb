"""`PricedPipeline`: what rows pay for raw columns, through twelve kinds of preprocessing; plain pipelines that would
charge the wrong columns are refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

import miserly as ms
from miserly.estimators import GreedyMiserClassifier, GreedyMiserRegressor, PricedPipeline

NUMBERS = ["age", "crp", "lactate", "pulse"]
WORDS = ["ward", "smoker"]
RAW = ms.CostTable(
    features=("ward", "age", "smoker", "crp", "lactate", "pulse"),
    needs={"age": [], "ward": ["ward"], "smoker": ["ask"], "crp": ["blood", "crp"], "lactate": ["blood", "lactate"]}
    | {"pulse": ["pulse"]},
    prices={"ward": 1, "ask": 1, "blood": 5, "crp": 4, "lactate": 29, "pulse": 2},
)


def table(n=240, seed=0, missing=False):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=NUMBERS)
    frame.insert(0, "ward", rng.choice(["a", "b", "c"], n))
    frame.insert(2, "smoker", rng.choice(["no", "yes"], n))
    y = (
        frame["crp"] + frame["lactate"] * frame["pulse"] + (frame["ward"] == "b") + 0.2 * rng.normal(size=n)
    ).to_numpy()
    if missing:
        for name in ("crp", "pulse"):
            frame.loc[rng.random(n) < 0.2, name] = np.nan
    return frame, y


class Ratio(TransformerMixin, BaseEstimator):
    """A transformer of the user's own: nothing about it is known."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        X = np.asarray(X, float)
        return np.column_stack([X[:, 2] / (1 + X[:, 1] ** 2), X[:, 3], X[:, 0] * X[:, 2]])


KINDS = {
    "reordered": lambda: ColumnTransformer(
        [("late", StandardScaler(), NUMBERS[::-1]), ("early", OrdinalEncoder(), WORDS)]
    ),
    "one-hot": lambda: ColumnTransformer([("words", OneHotEncoder(), WORDS)], remainder="passthrough"),
    "one-hot, first dropped": lambda: ColumnTransformer(
        [("words", OneHotEncoder(drop="first", sparse_output=False), WORDS), ("numbers", RobustScaler(), NUMBERS)]
    ),
    "target": lambda: ColumnTransformer([("words", TargetEncoder(), WORDS), ("numbers", "passthrough", NUMBERS)]),
    "polynomials": lambda: ColumnTransformer([("p", PolynomialFeatures(2, include_bias=False), NUMBERS)]),
    "principal components": lambda: ColumnTransformer([("p", PCA(3), NUMBERS), ("w", OrdinalEncoder(), WORDS)]),
    "imputed with indicators": lambda: ColumnTransformer(
        [("n", SimpleImputer(add_indicator=True), NUMBERS), ("w", OrdinalEncoder(), WORDS)]
    ),
    "nearest neighbours": lambda: ColumnTransformer(
        [("n", KNNImputer(), ["crp", "pulse"]), ("a", "passthrough", ["age"])]
    ),
    "chain": lambda: make_pipeline(
        ColumnTransformer([("w", OneHotEncoder(sparse_output=False), WORDS), ("n", SimpleImputer(), NUMBERS)]),
        StandardScaler(),
        SelectKBest(f_regression, k=5),
    ),
    "union": lambda: ColumnTransformer(
        [
            (
                "u",
                FeatureUnion([("s", StandardScaler()), ("p", PolynomialFeatures(2, interaction_only=True))]),
                NUMBERS[:3],
            )
        ],
        remainder="drop",
    ),
    "bins and splines": lambda: ColumnTransformer(
        [
            ("b", KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"), ["crp", "age"]),
            ("s", SplineTransformer(3), ["lactate", "pulse"]),
        ]
    ),
    "a function": lambda: ColumnTransformer([("f", FunctionTransformer(np.sinh), NUMBERS[::-1])]),
    "one's own": lambda: ColumnTransformer([("own", Ratio(), NUMBERS)]),
}


def dependencies(transformer, X):
    """The oracle: an output needs a column if putting any other rows' values there changes it."""
    rng = np.random.default_rng(99)
    plain = dense(transformer.transform(X))
    found = [set() for _ in range(plain.shape[1])]
    for name in X.columns:
        for _ in range(6):
            other = X.copy()
            other[name] = rng.permutation(X[name].to_numpy())
            changed = dense(transformer.transform(other))
            for j in np.flatnonzero(((plain != changed) & ~((plain != plain) & (changed != changed))).any(axis=0)):
                found[j].add(name)
    return found


def dense(Z):
    return np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z, float)


def by_hand(pipeline, X, oracle):
    """What a row pays under charge by learner: the union of the raw columns of every output that the plan uses."""
    used = set().union(*(oracle[j] for j in pipeline.plan_.used_features), set())
    return RAW.price(used)


@pytest.mark.filterwarnings("ignore:What .* outputs need was found by probing")
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=4, deadline=None)
@given(st.integers(0, 50), st.sampled_from([1e-3, 1e-2, 5e-2]))
def test_costs_are_those_of_raw_columns(kind, seed, tradeoff):
    X, y = table(seed=seed, missing="imputed" in kind or "nearest" in kind or "chain" in kind)
    model = GreedyMiserRegressor(RAW, tradeoff=tradeoff, n_estimators=12, min_samples_leaf=10)
    fitted = PricedPipeline(KINDS[kind](), model).fit(X, y)
    oracle = dependencies(fitted.preprocessing_, X)
    needs = [set(need) for need in fitted.needs_.values()]
    assert all(found <= need for found, need in zip(oracle, needs))
    exact = [set(n) for n, o in zip(needs, oracle) if o or "nearest" in kind]
    if kind not in ("nearest neighbours", "chain", "bins and splines"):  # there a dependence may not show on these rows
        assert exact == [set(o) for o in oracle if o]
        np.testing.assert_allclose(fitted.predict_cost(X), by_hand(fitted, X, oracle))
    assert fitted.predict_cost(X).max() <= RAW.price(fitted.selected_features_) + 1e-12
    unpaid = [name for name in X.columns if name not in fitted.selected_features_]
    poisoned = X.copy()
    for name in unpaid:
        poisoned[name] = X[name].to_numpy()[::-1]
    np.testing.assert_array_equal(fitted.predict(poisoned), fitted.predict(X))


def test_paths_pay_for_the_columns_that_they_meet():
    X, _ = table()
    y = np.where(X["age"] > 0, 9 + np.sign(X["lactate"]), np.sign(X["pulse"]))
    model = GreedyMiserRegressor(RAW, tradeoff=1e-3, n_estimators=3, charge="path", max_depth=2, learning_rate=1.0)
    fitted = PricedPipeline(KINDS["one-hot"](), model).fit(X, y)
    assert len(np.unique(fitted.predict_cost(X))) > 1
    capped = fitted.predict_cost(X, budget=7)
    assert capped.max() <= 7
    assert np.isfinite(fitted.predict(X, budget=7)).all()


def test_the_two_silent_mistakes_are_refused():
    """They charged lactate (29) as another column, and each principal component as if it were one column."""
    X, y = table()
    prices = dict.fromkeys(NUMBERS, 1.0) | {"lactate": 29.0}
    costs = ms.CostTable.per_feature(prices)
    reorder = ColumnTransformer([("a", StandardScaler(), ["lactate"]), ("b", "passthrough", ["age", "crp", "pulse"])])
    for step in (reorder, PCA(4), make_pipeline(StandardScaler(), PCA(4))):
        pipe = Pipeline([("prepare", step), ("model", GreedyMiserRegressor(costs, n_estimators=3))])
        with pytest.raises(ValueError, match=r"prices would be charged to the wrong ones. Use PricedPipeline"):
            pipe.fit(X[NUMBERS], y)
    safe = Pipeline([("scale", StandardScaler()), ("log", FunctionTransformer(np.sinh))])
    pipe = Pipeline([("prepare", safe), ("model", GreedyMiserRegressor(costs, n_estimators=3))]).fit(X[NUMBERS], y)
    assert pipe[-1].plan_.costs.features == tuple(NUMBERS)
    named = make_pipeline(reorder, GreedyMiserRegressor(costs, n_estimators=3)).set_output(transform="pandas")
    with pytest.raises(ValueError, match="The cost table prices 4 features, X has 4: missing 'a__lactate'"):
        named.fit(X[NUMBERS], y)
    GreedyMiserRegressor(costs, n_estimators=3).fit(X[NUMBERS].to_numpy(), y)


def test_searches_sweeps_and_clones():
    X, y = table()
    labels = np.where(y > 0, "high", "low")
    model = PricedPipeline(KINDS["one-hot"](), GreedyMiserClassifier(RAW, n_estimators=8))
    search = GridSearchCV(model, {"estimator__tradeoff": [1e-3, 1.0]}, cv=2).fit(X, labels)
    assert search.best_params_ == {"estimator__tradeoff": 1e-3}
    assert set(search.predict(X)) == {"high", "low"}
    assert search.best_estimator_.predict_proba(X).shape == (len(X), 2)
    front = ms.frontier(
        model, (X[:160], labels[:160]), (X[160:], labels[160:]), grid={"estimator__tradeoff": [1e-3, 0.1]}
    )
    costs = [point.validation.cost["mean"] for point in front.points]
    assert costs[0] > costs[1]
    assert len(ms.frontier(model, (X[:160], labels[:160]), (X[160:], labels[160:])).points) > 4
    again = clone(model)
    assert again.get_params()["estimator__n_estimators"] == 8
    assert not hasattr(PricedPipeline(PCA(2), GreedyMiserRegressor(RAW)), "predict_proba")


def test_watched_rows_are_transformed_too():
    X, y = table()
    model = GreedyMiserRegressor(RAW, n_estimators=50, n_iter_no_change=2)
    fitted = PricedPipeline(KINDS["one-hot"](), model).fit(X[:160], y[:160], eval_set=(X[160:], y[160:]))
    assert fitted.estimator_.n_iter_ < 50


class Noisy(Ratio):
    """Gives other outputs at every call."""

    def transform(self, X):
        return super().transform(X) + np.random.default_rng().normal(size=(len(X), 3))


def test_what_cannot_be_known_is_asked_for():
    X, y = table()
    model = GreedyMiserRegressor(RAW.restrict(NUMBERS), n_estimators=3)
    with pytest.warns(UserWarning, match=r"found by probing: 'output 0' needs crp, lactate"):
        fitted = PricedPipeline(Ratio(), model).fit(X[NUMBERS], y)
    assert fitted.needs_ == {"output 0": ("crp", "lactate"), "output 1": ("pulse",), "output 2": ("age", "lactate")}
    confirmed = PricedPipeline(Ratio(), model, needs=fitted.needs_).fit(X[NUMBERS], y)
    assert confirmed.probed_ == []
    with pytest.raises(ValueError, match=r"give needs=\{'output 0': \[raw columns\]"):
        PricedPipeline(Noisy(), model).fit(X[NUMBERS], y)
    assert PricedPipeline(Noisy(), model, needs=fitted.needs_).fit(X[NUMBERS], y).needs_ == fitted.needs_
    with pytest.raises(ValueError, match="there is no raw column 'lactat'"):
        PricedPipeline(Ratio(), model, needs={"output 0": ["lactat"]}).fit(X[NUMBERS], y)
    with pytest.raises(ValueError, match="which is no output"):
        PricedPipeline(Ratio(), model, needs={"ratio": ["lactate"]}).fit(X[NUMBERS], y)
    with pytest.raises(ValueError, match="Give it the prices of the raw columns"):
        PricedPipeline(Ratio(), GreedyMiserRegressor()).fit(X[NUMBERS], y)


def test_arrays_are_priced_by_their_order():
    X, y = table()
    model = GreedyMiserRegressor(ms.CostTable.per_feature([1, 2, 3, 4]), n_estimators=5)
    fitted = PricedPipeline(PCA(2), model).fit(X[NUMBERS].to_numpy(), y)
    assert set(fitted.predict_cost(X[NUMBERS].to_numpy())) <= {0.0, 10.0}


def test_the_table_vectorizer_of_skrub():
    """Words, dates and numbers become columns that need what they were made from."""
    skrub = pytest.importorskip("skrub")
    rng = np.random.default_rng(0)
    n = 300
    days = pd.to_timedelta(rng.integers(0, 300, n), "D")
    X = pd.DataFrame(
        {
            "age": rng.normal(50, 10, n),
            "crp": rng.exponential(5, n),
            "sex": rng.choice(["f", "m"], n),
            "city": rng.choice([f"c{i}" for i in range(6)], n),
            "when": pd.to_datetime("2024-01-01") + days,
        }
    )
    y = (((X["age"] > 50) & (X["sex"] == "f")) | (X["crp"] > 8)).astype(int)
    prices = {"age": 1.0, "crp": 20.0, "sex": 1.0, "city": 2.0, "when": 3.0}
    boosted = ms.GreedyMiserClassifier(ms.CostTable.per_feature(prices), 1e-3, n_estimators=20)
    model = ms.PricedPipeline(skrub.TableVectorizer(), boosted)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model.fit(X, y)
    for output, needs in model.needs_.items():
        assert needs == (output.split("_")[0],), output
    used = {output.split("_")[0] for output in np.array(list(model.needs_))[list(model.plan_.used_features)]}
    assert np.allclose(model.predict_cost(X), sum(prices[name] for name in used))
