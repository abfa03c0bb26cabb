"""Models in front of imported ones: rankers that send the first documents on, and cascades."""

from dataclasses import replace

import numpy as np
import pytest

import miserly as ms
from miserly.checks import check_plan

lightgbm = pytest.importorskip("lightgbm")

RNG = np.random.default_rng(2)
X, QID = RNG.normal(size=(600, 5)), np.repeat(np.arange(30), 20)
GRADES = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * RNG.normal(size=600), [0.0, 1.0])
COSTS = ms.CostTable.per_feature([1.0, 2.0, 4.0, 8.0, 16.0])
GBM = {"n_estimators": 30, "verbose": -1, "n_jobs": 1}


@pytest.fixture(scope="module")
def rankers():
    whole = ms.import_plan(lightgbm.LGBMRanker(**GBM).fit(X, GRADES, group=[20] * 30), COSTS)
    return ms.GreedyMiserRanker(COSTS, tradeoff=0.01, n_estimators=5).fit(X, GRADES, qid=QID).plan_, whole


def test_the_first_documents_get_the_sum_of_both_and_rank_above_the_others(rankers):
    front, whole = rankers
    plan = ms.put_in_front(front, whole, X, keep=4)
    factor = np.std(whole.score(X)) / np.std(front.score(X))
    first, score = front.score(X) * factor, plan.score(X, QID)
    for q in range(30):
        rows = np.flatnonzero(q == QID)
        order = rows[np.argsort(-first[rows], kind="stable")]
        np.testing.assert_allclose(score[order[:4]], (first + whole.score(X))[order[:4]], atol=1e-9)
        np.testing.assert_allclose(score[order[4:]], first[order[4:]], atol=1e-9)
        assert plan.rank_score(X, QID)[order[:4]].min() > plan.rank_score(X, QID)[order[4:]].max()
    assert plan.predict_cost(X, QID).mean() < whole.predict_cost(X).mean()
    assert len(ms.put_in_front(front, whole, X, rounds=3).nodes) == len(front.nodes) + 3


def test_it_is_a_plan_like_others(rankers, tmp_path):
    plan = ms.put_in_front(*rankers, X, keep=3, rounds=5)
    plan.save(tmp_path / "a.plan")
    assert ms.load_plan(tmp_path / "a.plan") == plan
    assert len(check_plan(plan, X[:40], QID[:40])) == 6


def test_what_does_not_fit_together_is_refused(rankers):
    front, whole = rankers
    classes = ms.import_plan(lightgbm.LGBMClassifier(**GBM).fit(X, GRADES), COSTS)
    other = ms.CostTable.per_feature([2.0, 2.0, 4.0, 8.0, 16.0]).bind(5)
    for call, words in (
        (lambda: ms.put_in_front(front, classes, X), "one number"),
        (lambda: ms.put_in_front(front, whole, X, rounds=0), "1 or more"),
        (lambda: ms.put_in_front(replace(front, costs=other), whole, X), "other features or prices"),
        (lambda: ms.put_in_front(ms.put_in_front(front, whole, X), whole, X), "without gates"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_a_small_classifier_stands_in_front_of_an_imported_one():
    y = (GRADES > 0).astype(int)
    whole = ms.import_plan(lightgbm.LGBMClassifier(**GBM).fit(X, y), COSTS)
    small = ms.GreedyMiserClassifier(COSTS, tradeoff=0.01, n_estimators=30, charge="path").fit(X, y).plan_
    plan = ms.cascade([small, whole])
    np.testing.assert_allclose(plan.predict_proba(X), whole.predict_proba(X), atol=1e-12)
    sure = plan.predict_cost(X, confidence=0.6)
    assert (sure <= plan.predict_cost(X)).all()
    assert sure.mean() < plan.predict_cost(X).mean()
