"""scikit-learn's own checks on every public estimator, none of them skipped."""

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from oracles.contract import CONTRACT
from oracles.every_estimator import EVERY


def test_every_estimator_is_in_the_list():
    assert {type(model).__name__ for model, _, _ in CONTRACT.values()} == set(EVERY)


@pytest.mark.parametrize("name", CONTRACT)
def test_scikit_learns_contract(name):
    model, n_checks, expected = CONTRACT[name]
    results = check_estimator(clone(model), expected_failed_checks=expected, on_fail=None, on_skip=None)
    wrong = [(r["check_name"], r["status"], r["exception"]) for r in results if r["status"] not in ("passed", "xfail")]
    assert not wrong
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(expected)
    assert len(results) == n_checks
