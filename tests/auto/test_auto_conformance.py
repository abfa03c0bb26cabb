"""scikit-learn's own checks on AutoMiser*, none skipped but the one that needs another array library."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

from miserly import AutoMiserClassifier, AutoMiserRanker, AutoMiserRegressor, CostTable

KINDS = [AutoMiserClassifier, AutoMiserRegressor, AutoMiserRanker]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_scikit_learns_contract(kind):
    results = check_estimator(kind(CostTable.uniform()), on_fail=None, on_skip=None)
    wrong = [(r["check_name"], r["status"], r["exception"]) for r in results if r["status"] != "passed"]
    assert [name for name, *_ in wrong if name != "check_array_api_input"] == []
    assert len(results) > 45
