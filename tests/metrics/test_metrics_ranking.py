import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from miserly.metrics import ndcg, precision_at

EMPTY = {"one": 1.0, "half": 0.5, "zero": 0.0}


def by_query(grades, score, qid):
    """The grades of each query by falling score; Python's sort is stable, so ties keep the row order."""
    rows = {}
    for g, s, q in zip(grades, score, qid):
        rows.setdefault(q, []).append((g, s))
    return [[g for g, _ in sorted(query, key=lambda row: -row[1])] for query in rows.values()]


def plain_ndcg(grades, score, k, qid, gain, empty):
    def dcg(ordered):
        gains = (2.0**g - 1 if gain == "exponential" else g for g in ordered[:k])
        return sum(g / math.log2(place + 2) for place, g in enumerate(gains))

    figures = []
    for query in by_query(grades, score, qid):
        ideal = dcg(sorted(query, reverse=True))
        if ideal > 0:
            figures.append(dcg(query) / ideal)
        elif empty != "skip":
            figures.append(EMPTY[empty])
    return sum(figures) / len(figures) if figures else None


rows = st.lists(st.tuples(st.integers(0, 4), st.integers(-2, 2), st.integers(0, 5)), min_size=1, max_size=40)


@settings(max_examples=150, deadline=None)
@given(
    rows,
    st.sampled_from([1, 2, 5, 50, None]),
    st.sampled_from(["exponential", "linear"]),
    st.sampled_from(["one", "half", "zero", "skip"]),
)
def test_ndcg_equals_a_plain_loop_with_ties_and_unsorted_queries(rows, k, gain, empty):
    grades, score, qid = (np.array(column) for column in zip(*rows))
    expected = plain_ndcg(grades.tolist(), score.tolist(), k, qid.tolist(), gain, empty)
    if expected is None:
        with pytest.raises(ValueError, match="relevant row"):
            ndcg(grades, score, k, qid, gain=gain, empty=empty)
    else:
        assert ndcg(grades, score, k, qid, gain=gain, empty=empty) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(rows, st.sampled_from([1, 2, 5, 50]))
def test_precision_equals_a_plain_loop(rows, k):
    grades, score, qid = (np.array(column) for column in zip(*rows))
    lists = by_query(grades.tolist(), score.tolist(), qid.tolist())
    expected = sum(sum(g >= 3 for g in query[:k]) / k for query in lists) / len(lists)
    assert precision_at(grades, score, k, qid, relevant=3) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", [3, 10, None])
def test_ndcg_equals_scikit_learn_per_query(k):
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(30), rng.integers(2, 20, 30))
    grades, score = rng.integers(0, 5, len(qid)), rng.normal(size=len(qid))
    gains = 2.0**grades - 1
    per_query = [ndcg_score([gains[qid == q]], [score[qid == q]], k=k) for q in range(30)]
    assert ndcg(grades, score, k, qid, empty="zero") == pytest.approx(np.mean(per_query), rel=1e-12)
    linear = [ndcg_score([grades[qid == q]], [score[qid == q]], k=k) for q in range(30)]
    assert ndcg(grades, score, k, qid, gain="linear", empty="zero") == pytest.approx(np.mean(linear), rel=1e-12)


def test_without_qid_all_rows_are_one_query():
    grades, score = [0, 3, 1, 2], [0.4, 0.3, 0.2, 0.1]
    assert ndcg(grades, score, 3) == ndcg(grades, score, 3, qid=[7, 7, 7, 7])
    assert precision_at([-1, 1, 1, -1], score, 2) == 0.5


def test_queries_may_have_names():
    grades, score = [0, 3, 1, 2], [0.4, 0.3, 0.2, 0.1]
    assert ndcg(grades, score, 3, qid=list("abab")) == ndcg(grades, score, 3, qid=[0, 1, 0, 1])


def test_equal_scores_keep_the_order_of_the_rows():
    assert ndcg([4, 0, 0], [1, 1, 1], 1) == 1.0
    assert ndcg([0, 0, 4], [1, 1, 1], 1) == 0.0


def test_what_cannot_be_ranked_is_refused():
    with pytest.raises(ValueError, match="score must not hold NaN"):
        ndcg([0, 1], [np.nan, 1.0], 1)
    for missing, name in ((None, "None"), (np.nan, "NaN")):
        with pytest.raises(ValueError, match=f"qid must not hold {name}"):
            ndcg([0, 1], [0.0, 1.0], 1, qid=np.array(["a", missing], object))
    with pytest.raises(ValueError, match="grades of 0 or more, got -1"):
        ndcg([-1, 1], [0.0, 1.0], 1)
    with pytest.raises(ValueError, match="k must be"):
        ndcg([0, 1], [0.0, 1.0], 0)
    with pytest.raises(ValueError, match="empty must be"):
        ndcg([0, 1], [0.0, 1.0], 1, empty="two")
    with pytest.raises(ValueError, match="gain must be"):
        ndcg([0, 1], [0.0, 1.0], 1, gain="cubic")
    with pytest.raises(ValueError, match="qid has 1 rows"):
        ndcg([0, 1], [0.0, 1.0], 1, qid=[0])
