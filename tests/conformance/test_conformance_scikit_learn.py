"""Every public estimator where scikit-learn puts one: in pipelines, searches and cross-validation, on frames, cloned.

What scikit-learn's own checks look at (weights that stand for copies, names of features, pickles) is not repeated here.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from miserly.metrics import ndcg
from oracles.every_estimator import CLASSIFIERS, EVERY, data, model_of
from oracles.prices import shared_prices

X, Y = data(120)
COSTS = shared_prices()
NAMES = list(COSTS.features)
QID = np.repeat(np.arange(12), 10)
WEIGHT = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
RANKERS = [name for name in EVERY if name.endswith("Ranker")]
FRAMES = {"pandas": pd.DataFrame(X, columns=NAMES), "polars": pl.DataFrame(X, schema=NAMES)}


def target_of(name):
    if name in RANKERS:
        return np.digitize(Y, [-1.0, 0.0, 1.0])
    return np.where(Y > 0, "ill", "well") if name in CLASSIFIERS else Y


def same(one, other):
    return one.plan_ == other.plan_ and np.array_equal(one.predict(X), other.predict(X))


@pytest.fixture(params=EVERY)
def name(request):
    return request.param


def test_a_grid_search_over_a_pipeline_sweeps_the_cost_axis(name):
    model, y = model_of(name, COSTS), target_of(name)
    axis = getattr(model, "cost_axis", "C")  # a linear SVM buys everything
    values = model.suggest_grid(y, 2).tolist() if axis != "C" else [0.1, 10.0]
    grid = {f"model__{axis}": values}
    pipe = Pipeline([("scale", StandardScaler()), ("model", model)])
    search = GridSearchCV(pipe, grid, cv=2, error_score="raise").fit(X, y)
    assert len(search.cv_results_["params"]) == len(values)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    chosen = search.best_estimator_
    assert chosen["model"].get_params()[axis] == search.best_params_[f"model__{axis}"]
    scaled = chosen["scale"].transform(X)
    assert np.array_equal(search.predict(X), chosen["model"].plan_.predict(scaled))
    assert chosen["model"].predict_cost(scaled).shape == (len(X),)
    if is_classifier(model):
        assert set(search.classes_) == {"ill", "well"}


def test_weights_and_queries_are_routed_through_cross_validation(name):
    """Each fold's model is the one that is fitted by hand on its rows, with their weights and queries."""
    y = target_of(name)
    wanted = {"qid": QID, "sample_weight": WEIGHT} if name in RANKERS else {"sample_weight": WEIGHT}
    with sklearn.config_context(enable_metadata_routing=True):
        model = model_of(name, COSTS).set_fit_request(**dict.fromkeys(wanted, True))
        scorer = make_scorer(ndcg, k=5).set_score_request(qid=True, sample_weight=False) if name in RANKERS else None
        if scorer is None:
            model.set_score_request(sample_weight=True)
        found = cross_validate(
            model,
            X,
            y,
            cv=GroupKFold(2),
            params={**wanted, "groups": QID},
            scoring=scorer,
            error_score="raise",
            return_estimator=True,
            return_indices=True,
        )
    assert np.isfinite(found["test_score"]).all()
    rows = found["indices"]["train"][0]
    by_hand = model_of(name, COSTS).fit(X[rows], y[rows], **{key: value[rows] for key, value in wanted.items()})
    assert same(found["estimator"][0], by_hand)


def test_frames_and_clones_give_the_model_of_the_array(name):
    y = target_of(name)
    plain = model_of(name, COSTS).fit(X, y)
    assert not hasattr(plain, "feature_names_in_")
    for frame in FRAMES.values():
        model = clone(plain)
        assert not hasattr(model, "plan_")
        assert repr(model.get_params()) == repr(plain.get_params())
        assert model.fit(frame, y).plan_ == plain.plan_
        assert list(model.feature_names_in_) == NAMES
        for other in FRAMES.values():
            assert np.array_equal(model.predict(other), plain.predict(X))
            assert np.array_equal(model.predict_cost(other), plain.predict_cost(X))
        with pytest.raises(ValueError, match="same order"):
            model.predict(frame[NAMES[::-1]])
        with pytest.raises(ValueError, match="eature names"):
            model.predict(frame[NAMES[:-1]])


def test_prices_follow_the_names_of_the_columns():
    model = model_of("GreedyMiserRegressor", COSTS).fit(FRAMES["pandas"][NAMES[::-1]], Y)
    assert list(model.plan_.costs.features) == NAMES[::-1]
    assert model.plan_.costs.prices == COSTS.prices


@pytest.mark.parametrize("library", FRAMES)
def test_frames_from_the_steps_before_keep_their_names(library):
    y = target_of("GreedyMiserClassifier")
    pipe = make_pipeline(StandardScaler(), model_of("GreedyMiserClassifier", COSTS)).set_output(transform=library)
    pipe.fit(FRAMES[library], y)
    assert list(pipe[-1].feature_names_in_) == NAMES
    by_hand = model_of("GreedyMiserClassifier", COSTS).fit(StandardScaler().fit_transform(X), y)
    assert np.array_equal(pipe.predict_proba(FRAMES[library]), by_hand.predict_proba(StandardScaler().fit_transform(X)))


def test_none_is_forgotten():
    assert len(EVERY) == 32
    assert RANKERS == ["GreedyMiserRanker", "EarlyExitRanker"]
