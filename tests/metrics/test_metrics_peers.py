"""The figures of ir-measures, scikit-learn and LightGBM, each under its own rules."""

import shutil

import ir_measures
import lightgbm as lgb
import numpy as np
import pytest
from ir_measures import ERR, RR, P, nDCG
from sklearn.metrics import label_ranking_average_precision_score

from miserly.metrics import err, mrr, ndcg, precision_at

needs_perl = pytest.mark.skipif(shutil.which("perl") is None, reason="ir-measures runs TREC's gdeval, a Perl script")


@pytest.fixture(scope="module")
def lists():
    """Queries of 1 to 25 rows in mixed order, many equal scores, every fifth query without a relevant row."""
    rng = np.random.default_rng(3)
    qid = rng.permutation(np.repeat(np.arange(60), rng.integers(1, 26, 60)))
    grades = np.where(qid % 5 == 0, 0, rng.integers(0, 5, len(qid)))
    return grades, rng.integers(0, 8, len(qid)) / 4.0, qid


def of_ir_measures(measure, grades, score, qid):
    """Its ties go by falling document name: names that fall with the rows give our rule, the order of the rows."""
    names = [f"d{10**6 - row}" for row in range(len(grades))]
    qrels = [ir_measures.Qrel(str(q), d, int(g)) for q, d, g in zip(qid, names, grades)]
    run = [ir_measures.ScoredDoc(str(q), d, float(s)) for q, d, s in zip(qid, names, score)]
    return ir_measures.calc_aggregate([measure], qrels, run)[measure]


@pytest.mark.parametrize("k", [1, 3, 10, 40])
def test_precision_and_linear_ndcg_equal_ir_measures(lists, k):
    assert ndcg(*lists[:2], k, lists[2], gain="linear", empty="zero") == pytest.approx(
        of_ir_measures(nDCG @ k, *lists), abs=1e-12
    )
    for relevant in (1, 3):
        expected = of_ir_measures(P(rel=relevant) @ k, *lists)
        assert precision_at(*lists[:2], k, lists[2], relevant=relevant) == pytest.approx(expected, abs=1e-12)


def test_whole_lists_equal_ir_measures(lists):
    grades, score, qid = lists
    expected = of_ir_measures(nDCG, *lists)
    assert ndcg(grades, score, None, qid, gain="linear", empty="zero") == pytest.approx(expected, abs=1e-12)
    for relevant in (1, 3):
        expected = of_ir_measures(RR(rel=relevant), *lists)
        assert mrr(grades, score, qid=qid, relevant=relevant) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", [1, 2, 10])
def test_mrr_at_k_equals_ir_measures(lists, k):
    grades, score, qid = lists
    distinct = score - np.arange(len(score)) * 1e-6  # for RR@k its ties go by rising name
    expected = of_ir_measures(RR @ k, grades, distinct, qid)
    assert mrr(grades, score, k, qid) == pytest.approx(expected, abs=1e-12)


@needs_perl
@pytest.mark.parametrize("k", [1, 5, 20])
def test_err_and_exponential_ndcg_equal_gdeval(lists, k):
    """gdeval prints five decimals per query and leaves out queries without relevant rows; ir-measures adds zeros."""
    grades, score, qid = lists
    assert err(grades, score, k, qid) == pytest.approx(of_ir_measures(ERR @ k, *lists), abs=5e-6)
    expected = of_ir_measures(nDCG(dcg="exp-log2") @ k, *lists)
    assert ndcg(grades, score, k, qid, empty="zero") == pytest.approx(expected, abs=5e-6)


def test_multiplicities_equal_ir_measures_on_repeated_rows(lists):
    copies = np.where(lists[0] >= 3, 1, 10)
    repeated = [np.repeat(column, copies) for column in lists]
    grades, score, qid = lists
    assert precision_at(grades, score, 5, qid, relevant=3, multiplicity=copies) == pytest.approx(
        of_ir_measures(P(rel=3) @ 5, *repeated), abs=1e-12
    )
    assert ndcg(grades, score, 5, qid, "linear", "zero", multiplicity=copies) == pytest.approx(
        of_ir_measures(nDCG @ 5, *repeated), abs=1e-12
    )


def test_mrr_with_one_relevant_row_equals_scikit_learn():
    rng = np.random.default_rng(0)
    truth, score = np.eye(9, dtype=int)[rng.integers(0, 9, 50)], rng.normal(size=(50, 9))
    expected = label_ranking_average_precision_score(truth, score)
    assert mrr(truth.ravel(), score.ravel(), qid=np.repeat(np.arange(50), 9)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rounds", [1, 8])
def test_ndcg_equals_lightgbm_with_its_ties_and_empty_queries(lists, rounds):
    """After one round of four leaves most scores are equal: LightGBM's sort is stable, its empty queries count 1."""
    grades, score, qid = lists
    order = np.argsort(qid, kind="stable")
    grades, qid = grades[order], qid[order]
    X = np.column_stack([score[order], grades + np.random.default_rng(4).normal(0, 2, len(grades))])
    depths = [1, 3, 10, 40]
    data = lgb.Dataset(X, grades, group=np.bincount(qid), free_raw_data=False)
    params = {"objective": "lambdarank", "metric": "ndcg", "eval_at": depths, "num_leaves": 4, "verbose": -1}
    history: dict = {}
    booster = lgb.train(
        params | {"num_threads": 1, "seed": 0},
        data,
        rounds,
        valid_sets=[data],
        valid_names=["rows"],
        callbacks=[lgb.record_evaluation(history)],
    )
    predicted = booster.predict(X, raw_score=True)
    assert len(np.unique(predicted)) < len(predicted)
    for k in depths:
        assert ndcg(grades, predicted, k, qid, empty="one") == pytest.approx(
            history["rows"][f"ndcg@{k}"][-1], abs=1e-12
        )
