"""err and mrr: cases by hand, a plain loop, what is refused, their names."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miserly.metrics import err, get_metric, mrr

GRADES, SCORE, QID = np.array([0, 1, 1, 0, 4]), np.array([0.7, 0.9, 0.2, 0.6, 0.1]), np.array([0, 0, 1, 1, 1])

rows = st.lists(st.tuples(st.integers(0, 4), st.integers(-2, 2), st.integers(0, 5)), min_size=1, max_size=40)
depths = st.sampled_from([1, 2, 5, 50, None])


def by_query(grades, score, qid):
    """The grades of each query by falling score; Python's sort is stable, so ties keep the row order."""
    queries = {}
    for g, s, q in zip(grades, score, qid):
        queries.setdefault(q, []).append((g, s))
    return [[g for g, _ in sorted(query, key=lambda row: -row[1])] for query in queries.values()]


def plain_err(ordered, max_grade):
    figure, reading = 0.0, 1.0
    for place, grade in enumerate(ordered, start=1):
        stop = (2**grade - 1) / 2**max_grade
        figure += reading * stop / place
        reading *= 1 - stop
    return figure


def plain_rr(ordered, relevant):
    return next((1 / place for place, grade in enumerate(ordered, start=1) if grade >= relevant), 0.0)


@settings(max_examples=100, deadline=None)
@given(rows, depths, st.sampled_from([4, 5, 4.5]))
def test_err_equals_a_plain_loop_with_ties_and_unsorted_queries(rows, k, max_grade):
    grades, score, qid = (np.array(column) for column in zip(*rows))
    expected = [plain_err(query[:k], max_grade) for query in by_query(grades.tolist(), score, qid)]
    assert err(grades, score, k, qid, max_grade=max_grade) == pytest.approx(np.mean(expected), abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(rows, depths, st.sampled_from([1, 3]))
def test_mrr_equals_a_plain_loop_with_ties_and_unsorted_queries(rows, k, relevant):
    grades, score, qid = (np.array(column) for column in zip(*rows))
    expected = [plain_rr(query[:k], relevant) for query in by_query(grades, score, qid)]
    assert mrr(grades, score, k, qid, relevant=relevant) == pytest.approx(np.mean(expected), abs=1e-12)


def test_err_by_hand():
    # Stops with chance 3/4, 0, 1/4: 3/4 at place 1, then a quarter of the readers stops at place 3 with 1/4.
    assert err([2, 0, 1], [3, 2, 1], max_grade=2) == 3 / 4 + (1 / 4) * (1 / 4) / 3
    assert err([2, 0, 1], [3, 2, 1], k=2, max_grade=2) == 3 / 4
    assert err([2, 0, 1], [1, 2, 3], k=1, max_grade=2) == 1 / 4


def test_err_does_not_take_the_scale_from_the_data():
    assert err([1, 0], [2, 1]) == 1 / 16
    assert err([1, 0], [2, 1], max_grade=1) == 1 / 2


def test_mrr_by_hand():
    grades, score, qid = [0, 1, 0, 0, 2, 0], [3, 2, 1, 3, 3, 1], [0, 0, 0, 1, 1, 1]
    assert mrr(grades, score, qid=qid) == 1 / 2
    assert mrr(grades, score, qid=qid, relevant=2) == 1 / 4
    assert mrr(grades, score, k=1, qid=qid) == 0.0


@pytest.mark.parametrize("figure", [err, mrr])
def test_the_rule_for_queries_without_relevant_rows_is_an_argument(figure):
    grades, score, qid = [0, 4, 0, 0], [1, 2, 2, 1], [0, 0, 1, 1]
    alone = figure(grades[:2], score[:2])
    means = {empty: figure(grades, score, qid=qid, empty=empty) for empty in ("zero", "skip", "one", "half")}
    assert means == {"zero": alone / 2, "skip": alone, "one": (alone + 1) / 2, "half": (alone + 0.5) / 2}
    assert figure(grades, score, qid=qid) == means["zero"]
    # A relevant row below place k was missed, not absent: the query still counts.
    assert figure([0, 4], [2, 1], k=1, empty="skip") == 0.0
    with pytest.raises(ValueError, match=f"{figure.__name__} with empty='skip' needs a query"):
        figure([0, 0], [1, 2], empty="skip")
    with pytest.raises(ValueError, match="empty must be"):
        figure(grades, score, empty="two")


def test_what_has_no_err_is_refused():
    with pytest.raises(ValueError, match=r"grades from 0 to max_grade=4, got 5\. Pass the top"):
        err([0, 5], [1, 2])
    with pytest.raises(ValueError, match="err needs grades of 0 or more, got -1"):
        err([-1, 1], [1, 2])
    for max_grade in (0, -1, np.nan, np.inf):
        with pytest.raises(ValueError, match="max_grade must be"):
            err([0, 0], [1, 2], max_grade=max_grade)
    with pytest.raises(ValueError, match="k must be"):
        err([0, 1], [1, 2], k=0)
    with pytest.raises(ValueError, match="k must be"):
        mrr([0, 1], [1, 2], k=1.5)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("err", err(GRADES, SCORE, qid=QID)),
        ("err@1", err(GRADES, SCORE, 1, QID)),
        ("mrr", mrr(GRADES, SCORE, qid=QID)),
        ("mrr@1", mrr(GRADES, SCORE, 1, QID)),
    ],
)
def test_err_and_mrr_have_names_with_and_without_a_depth(name, expected):
    metric = get_metric(name)
    assert (metric.name, metric.input, metric.greater_is_better, metric.grouped) == (name, "score", True, True)
    assert metric(GRADES, SCORE, qid=QID) == expected
    assert pickle.loads(pickle.dumps(metric))(GRADES, SCORE, qid=QID) == expected


@pytest.mark.parametrize("name", ["err@0", "mrr@-1", "err@", "nonsense@3"])
def test_the_valid_names_include_err_and_mrr(name):
    with pytest.raises(ValueError, match=r"err@k, mrr@k, err, mrr with"):
        get_metric(name)
