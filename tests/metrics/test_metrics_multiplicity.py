"""A row of multiplicity m is m rows: the figures equal those of rows literally repeated."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from miserly.metrics import err, get_metric, mrr, ndcg, precision_at

FIGURES = {
    "precision": partial(precision_at, relevant=3),
    "ndcg": partial(ndcg, empty="half"),
    "ndcg linear": partial(ndcg, gain="linear", empty="one"),
    "err": err,
    "mrr": partial(mrr, relevant=3),
}
row = st.tuples(st.integers(0, 4), st.integers(-2, 2), st.integers(0, 4), st.integers(0, 12))


@settings(max_examples=200, deadline=None)
@given(st.lists(row, min_size=1, max_size=30), st.sampled_from([1, 3, 10, 200, None]), st.sampled_from([*FIGURES]))
def test_equals_rows_literally_repeated_with_ties_zeros_and_unsorted_queries(rows, k, name):
    grades, score, qid, copies = (np.array(column) for column in zip(*rows))
    if not copies.any():
        copies[0] = 1
    if k is None and name == "precision":
        k = 5
    figure = FIGURES[name]
    repeated = figure(*(np.repeat(column, copies) for column in (grades, score)), k, np.repeat(qid, copies))
    assert figure(grades, score, k, qid, multiplicity=copies) == repeated


def test_the_protocol_of_the_papers_by_hand():
    # Ten copies of each negative: 1 positive, 10 negatives, 1 positive. Five places hold one positive.
    grades, score, copies = [4, 0, 3], [3.0, 2.0, 1.0], [1, 10, 1]
    assert precision_at(grades, score, 5, relevant=3) == 2 / 5
    assert precision_at(grades, score, 5, relevant=3, multiplicity=copies) == 1 / 5
    assert precision_at(grades, score, 12, relevant=3, multiplicity=copies) == 2 / 12
    assert mrr(grades, -np.array(score), relevant=4, multiplicity=copies) == 1 / 12


def test_among_equal_scores_all_copies_of_an_earlier_row_come_first():
    assert precision_at([1, 0], [7, 7], 4, multiplicity=[3, 3]) == 3 / 4
    assert precision_at([0, 1], [7, 7], 4, multiplicity=[3, 3]) == 1 / 4


def test_the_ideal_list_holds_the_copies_too():
    assert ndcg([1, 0], [2, 1], 3, multiplicity=[2, 1]) == 1.0
    assert ndcg([1, 0], [1, 2], 2, gain="linear", multiplicity=[2, 1]) == pytest.approx(
        1 / np.log2(3) / (1 + 1 / np.log2(3))
    )


@pytest.mark.parametrize("k", [5, None])
def test_ndcg_with_copies_equals_scikit_learn_on_repeated_rows(k):
    rng = np.random.default_rng(1)
    qid = np.repeat(np.arange(20), rng.integers(2, 15, 20))
    grades, score, copies = rng.integers(0, 5, len(qid)), rng.normal(size=len(qid)), rng.integers(1, 11, len(qid))
    queries = [
        (np.repeat(grades[qid == q], copies[qid == q]), np.repeat(score[qid == q], copies[qid == q])) for q in range(20)
    ]
    expected = np.mean([ndcg_score([2.0**g - 1], [s], k=k) for g, s in queries])
    assert ndcg(grades, score, k, qid, empty="zero", multiplicity=copies) == pytest.approx(expected, rel=1e-12)


def test_ones_change_nothing_and_a_zero_removes_the_row_and_an_emptied_query():
    grades, score, qid = np.array([0, 3, 1, 2]), np.array([0.4, 0.3, 0.2, 0.1]), np.array([0, 0, 1, 1])
    assert ndcg(grades, score, 3, qid, multiplicity=np.ones(4)) == ndcg(grades, score, 3, qid)
    assert mrr(grades, score, qid=qid, multiplicity=[1, 1, 0, 0]) == mrr(grades[:2], score[:2])


def test_huge_multiplicities_cost_no_memory_beyond_place_k():
    assert precision_at([0, 1], [1, 2], 4, multiplicity=[10**15, 3]) == 3 / 4
    # Their sum is beyond 64 bits.
    assert precision_at(np.ones(2000), np.arange(2000), 2000, multiplicity=np.full(2000, 2**53)) == 1.0


def test_a_metric_by_name_takes_multiplicities_or_says_it_cannot():
    y, score, copies = np.array([1, 0, 1]), np.array([3.0, 2.0, 1.0]), [1, 10, 1]
    for name in ("precision@5", "ndcg@5", "err@5", "mrr"):
        repeated = get_metric(name)(np.repeat(y, copies), np.repeat(score, copies))
        assert get_metric(name)(y, score, multiplicity=copies) == repeated
    with pytest.raises(ValueError, match=r"accuracy takes no multiplicity.*np\.repeat"):
        get_metric("accuracy")(y, y, multiplicity=copies)


def test_what_is_no_multiplicity_is_refused():
    for wrong, got in (
        ([1, -1], "-1 in row 1"),
        ([0.5, 1], "0.5 in row 0"),
        ([1, np.inf], "inf in row 1"),
        ([1, 1e17], r"1e\+17 in row 1"),
    ):
        with pytest.raises(ValueError, match=f"whole numbers from 0 to 2\\^53, got {got}"):
            ndcg([0, 1], [1, 2], 1, multiplicity=wrong)
    with pytest.raises(ValueError, match="multiplicity must not hold NaN"):
        ndcg([0, 1], [1, 2], 1, multiplicity=[1, np.nan])
    with pytest.raises(ValueError, match="multiplicity has 1 rows, y_true has 2"):
        precision_at([0, 1], [1, 2], 1, multiplicity=[1])
    with pytest.raises(ValueError, match="0 for all 2 rows"):
        precision_at([0, 1], [1, 2], 1, multiplicity=[0, 0])
