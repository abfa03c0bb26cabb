import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from miserly.metrics import accuracy, auc, log_loss, mse


def test_accuracy_equals_scikit_learn_for_numbers_and_strings():
    y, guess = np.random.default_rng(0).integers(0, 3, (2, 200))
    assert accuracy(y, guess) == sk.accuracy_score(y, guess)
    assert accuracy(y.astype(str), guess.astype(str)) == sk.accuracy_score(y, guess)


def test_mse_equals_scikit_learn():
    y, guess = np.random.default_rng(0).normal(size=(2, 100))
    assert mse(y, guess) == pytest.approx(sk.mean_squared_error(y, guess), rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=2, max_size=40))
def test_auc_equals_scikit_learn_with_ties(rows):
    y = np.array([2 * label - 1 for label, _ in rows])
    score = np.array([float(s) for _, s in rows])
    if len(set(y)) < 2:
        with pytest.raises(ValueError, match="two labels"):
            auc(y, score)
    else:
        assert auc(y, score) == pytest.approx(sk.roc_auc_score(y, score), abs=1e-12)


def test_log_loss_equals_scikit_learn_for_many_classes_and_a_certain_mistake():
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c"], 100)
    proba = rng.dirichlet(np.ones(3), 100)
    proba[0] = (y[0] != "a", y[0] == "a", 0.0)
    assert log_loss(y, proba) == pytest.approx(sk.log_loss(y, proba), rel=1e-12)
    assert log_loss(y, proba[:, [2, 0, 1]], classes=["c", "a", "b"]) == pytest.approx(log_loss(y, proba))
    assert np.isfinite(log_loss(y, proba))


def test_log_loss_reads_a_vector_as_the_second_class():
    y, p = np.array([-1, 1, 1, -1]), np.array([0.2, 0.9, 0.4, 0.6])
    assert log_loss(y, p, classes=[-1, 1]) == pytest.approx(sk.log_loss(y, p), rel=1e-12)


def test_log_loss_of_rows_of_one_class_needs_the_classes():
    with pytest.raises(ValueError, match="classes="):
        log_loss([1, 1], [[0.1, 0.9], [0.2, 0.8]])
    assert log_loss([1, 1], [[0.1, 0.9], [0.2, 0.8]], classes=[0, 1]) > 0


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(ValueError, match=r"y_pred must not hold NaN, got 1 NaN in 2"):
        mse([1.0, 2.0], [np.nan, 1.0])
    with pytest.raises(ValueError, match="y_true has 2"):
        mse([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="one value per row"):
        accuracy([0, 1], [[0], [1]])
    with pytest.raises(ValueError, match="must be numbers"):
        mse(["a"], ["b"])
    with pytest.raises(ValueError, match="not scores"):
        log_loss([0, 1], [[2.0, -1.0], [0.5, 0.5]])
    with pytest.raises(ValueError, match=r"outside classes \[0, 1\]: \[2\]"):
        log_loss([0, 2], [[0.5, 0.5], [0.5, 0.5]], classes=[0, 1])
