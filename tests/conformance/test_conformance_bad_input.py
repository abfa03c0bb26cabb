"""Every estimator on odd and bad input: it refuses in words, or fits and answers every row at a finite cost."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from miserly.costs import CostTable
from oracles.every_estimator import CLASSIFIERS, EVERY, data, model_of

X, Y = data(60)
HOLES = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)


def one_cell(value):
    changed = X.copy()
    changed[3, 2] = value
    return changed


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def with_words():
    frame = pd.DataFrame(X).rename(columns=str)
    frame["0"] = pd.Categorical(np.where(X[:, 0] > 0, "high", "low"))
    return frame


TABLES = {
    "plain": X,
    "columns first": np.asfortranarray(X),
    "every second cell": np.repeat(np.repeat(X, 2, 0), 2, 1)[::2, ::2],
    "backwards": X[::-1, ::-1],
    "read only": read_only(X),
    "float16": X.astype(np.float16),
    "float32": X.astype(np.float32),
    "int8": (10 * X).clip(-100, 100).astype(np.int8),
    "bool": X > 0,
    "objects": X.astype(object),
    "words": np.full(X.shape, "high", object),
    "list": X.tolist(),
    "categories": with_words(),
    "sparse": sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0)),
    "sparse columns": sparse.csc_array(np.where(np.abs(X) > 0.5, X, 0.0)),
    "missing": HOLES,
    "all missing": np.full(X.shape, np.nan),
    "a column missing": np.where(np.arange(7) == 2, np.nan, X),
    "infinite": one_cell(np.inf),
    "huge": one_cell(1e300),
    "all huge": 1e300 * X,
    "tiny": 1e-300 * X,
    "constant": np.ones_like(X),
    "equal rows": np.repeat(X[:3], 20, 0),
    "equal columns": np.repeat(X[:, :1], 7, 1),
    "one row": X[:1],
    "two rows": X[:2],
    "no row": X[:0],
    "one feature": X[:, :1],
    "no feature": X[:, :0],
    "one dimension": X[:, 0],
    "three dimensions": X[:, :, None],
    "complex": X + 1j,
    "dates": np.full(X.shape, np.datetime64("2020-01-01")),
}
PRICES = {"none": 0.0, "one": 1.0, "huge": 1e12, "tiny": 1e-12, "mixed": None}
TRADEOFFS = (None, 0.0, 1e-12, 1e12)
LABELS = {
    "plain": lambda y: y,
    "words": lambda y: np.where(y > 0, "well", "ill"),
    "objects": lambda y: np.where(y > 0, "well", "ill").astype(object),
    "bool": lambda y: y > 0,
    "three": lambda y: np.digitize(y, [-0.5, 0.5]),
    "one class": lambda y: np.ones(len(y), int),
    "rare class": lambda y: (np.arange(len(y)) == 0).astype(int),
    "every row its own": lambda y: np.arange(len(y)),
    "float16": lambda y: y.astype(np.float16),
    "huge": lambda y: 1e300 * y,
    "column": lambda y: (y > 0)[:, None],
    "missing": lambda y: np.where(np.arange(len(y)) == 2, np.nan, y),
    "infinite": lambda y: np.where(np.arange(len(y)) == 2, np.inf, y),
    "too few": lambda y: (y > 0)[:-1],
    "none": lambda y: None,
    "list": lambda y: (y > 0).tolist(),
}
QUICK = sorted(LABELS.keys() - {"every row its own"})
CASES = st.tuples(
    st.sampled_from(sorted(TABLES)), st.sampled_from(sorted(PRICES)), st.sampled_from(TRADEOFFS), st.sampled_from(QUICK)
)


def costs_of(price, table):
    if PRICES[price] is not None:
        return CostTable.uniform(PRICES[price])
    n = np.shape(table)[1] if len(np.shape(table)) == 2 else 7
    return CostTable.per_feature([(0.0, 1.0, 1e12)[j % 3] for j in range(n)])


def check(name, case):
    """What happened: `refused` or `fitted`."""
    table, price, tradeoff, label = case
    given_X = TABLES[table]
    n_rows = given_X.shape[0] if hasattr(given_X, "shape") else len(given_X)
    default = (Y > 0) if name in CLASSIFIERS else Y
    y = LABELS[label](default[:n_rows] if label == "plain" else Y[:n_rows])
    before = [np.array(v.toarray() if sparse.issparse(v) else v, copy=True) for v in (given_X, y)]
    try:
        model = model_of(name, costs_of(price, given_X))
        if tradeoff is not None and "tradeoff" in model.get_params():
            model.set_params(tradeoff=tradeoff)
        model.fit(given_X, y)
    except (ValueError, TypeError) as error:
        message = str(error)
        assert len(message) > 10
        return "refused"
    finally:
        for one, other in zip(before, (given_X, y)):
            other = other.toarray() if sparse.issparse(other) else other
            np.testing.assert_array_equal(one, np.array(other))
    answers, cost = np.asarray(model.predict(given_X)), model.predict_cost(given_X)
    assert len(answers) == len(cost) == n_rows
    if name in CLASSIFIERS:
        assert np.isin(answers, model.classes_).all()
        if hasattr(model, "predict_proba"):
            np.testing.assert_allclose(model.predict_proba(given_X).sum(axis=1), 1.0)
    else:
        assert np.isfinite(answers).all()
    assert (cost >= 0).all()
    assert np.isfinite(cost).all()
    return "fitted"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=CASES)
def test_odd_input_is_refused_in_words_or_learnt_from(name, case):
    check(name, case)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EVERY)
def test_all_odd_input(name):
    """Every table with every price, and every label with every tradeoff."""
    cases = [(table, price, None, "plain") for table in TABLES for price in PRICES]
    cases += [(table, "one", tradeoff, "plain") for table in TABLES for tradeoff in TRADEOFFS]
    cases += [("plain", price, tradeoff, label) for price in PRICES for tradeoff in TRADEOFFS for label in LABELS]
    ends = [check(name, case) for case in cases]
    assert {"fitted", "refused"} <= set(ends)


def test_numbers_too_large_to_square():
    """ASTC and Cronus answered with infinities."""
    for name in ("ASTCRegressor", "CSTCRegressor", "CronusRegressor"):
        with pytest.raises(ValueError, match="y has numbers beyond 1e\\+150"):
            model_of(name, CostTable.uniform()).fit(X, 1e300 * Y)
