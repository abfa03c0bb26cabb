"""Figures of ranked lists: one list per query, the mean over queries.

Every figure here reads one matrix, `ranked`: a row per query, the values of its best k rows in the order
of the scores. What they share:

- Without `qid` all rows are one query. k=None reads the whole list.
- Equal scores keep the order of the rows. A row of `multiplicity` m counts as m copies that stand next to
  each other at the row's place, so among equal scores the copies of an earlier row all precede a later row:
  the figure is that of `np.repeat(rows, multiplicity)`, without the memory. 0 leaves the row out.
- `empty` is the rule for a query without a relevant row, which no ranking can change: it counts as 1 ("one"),
  0.5 ("half"), 0 ("zero") or not at all ("skip"). Only figures made under one rule may be compared.
"""

from typing import Literal

import numpy as np

from miserly.metrics._lists import as_lists

Empty = Literal["one", "half", "zero", "skip"]
_EMPTY = {"one": 1.0, "half": 0.5, "zero": 0.0, "skip": np.nan}
_GAINS = ("exponential", "linear")


def ndcg(
    y_true,
    score,
    k: int | None = None,
    qid=None,
    gain: Literal["exponential", "linear"] = "exponential",
    empty: Empty = "skip",
    multiplicity=None,
) -> float:
    """Normalised discounted cumulative gain of the first k (None: of all), mean over queries.

    Gains are 2^grade − 1 ("exponential", the Yahoo! challenge and the papers) or the grade ("linear"), the
    discount of place i is 1/log2(i + 1). Equal scores keep the order of the rows. Without qid all rows are
    one query. A query without a relevant row has no ideal to divide by, and no ranking can change it: it
    counts as 1 ("one", LightGBM), as 0.5 ("half", the script of the Yahoo! challenge), as 0 ("zero",
    scikit-learn, trec_eval) or not at all ("skip", the default: no invented number enters the mean). All four
    order models alike; only figures made under one rule may be compared. A row of multiplicity m counts as m
    copies side by side, in the ideal list too.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Grades of relevance, 0 or more.
    score : array-like of shape (n_rows,)
        Scores; rows are ranked by falling score within their query.
    k : int, default=None
        How many rows of each list are read, 1 or more; None reads all.
    qid : array-like of shape (n_rows,), default=None
        Query of each row; None puts all rows into one query.
    gain : {"exponential", "linear"}, default="exponential"
        The gain of grade g: 2^g − 1, or g.
    empty : {"one", "half", "zero", "skip"}, default="skip"
        What a query without a relevant row counts: 1, 0.5, 0, or not at all.
    multiplicity : array-like of shape (n_rows,), default=None
        How often each row counts: whole numbers of 0 or more; None counts each once.

    Returns
    -------
    float
        From 0 to 1; greater is better.

    Examples
    --------
    >>> ndcg([2, 0, 1], [0.9, 0.5, 0.1])
    0.9639404333166532
    """
    if gain not in _GAINS:
        raise ValueError(f"gain must be one of {list(_GAINS)}, got {gain!r}.")
    grades, score, queries = as_lists(y_true, score, qid, multiplicity)
    _check_grades("ndcg", grades)
    gains = np.exp2(grades) - 1.0 if gain == "exponential" else grades
    dcg = _discounted(queries.ranked(gains, score, k))
    ideal = _discounted(queries.ranked(gains, gains, k))
    relevant = ideal > 0
    return _mean("ndcg", dcg / np.where(relevant, ideal, 1.0), relevant, empty)


def precision_at(
    y_true, score, k: int, qid=None, relevant: float = 1, empty: Empty = "zero", multiplicity=None
) -> float:
    """Share of relevant rows (grade `relevant` or more) among the first k, mean over queries.

    A query shorter than k is still divided by k (the TREC rule). Equal scores keep the order of the rows;
    without qid all rows are one query. The papers' Yahoo! protocol is `relevant=3` on grades 0 to 4, with a
    multiplicity of 10 for the rows below: each counts as ten copies side by side.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Grades of relevance, 0 or more.
    score : array-like of shape (n_rows,)
        Scores; rows are ranked by falling score within their query.
    k : int
        How many rows of each list are read, 1 or more.
    qid : array-like of shape (n_rows,), default=None
        Query of each row; None puts all rows into one query.
    relevant : float, default=1
        The least grade that counts as relevant.
    empty : {"one", "half", "zero", "skip"}, default="zero"
        What a query without a relevant row counts: 1, 0.5, 0, or not at all.
    multiplicity : array-like of shape (n_rows,), default=None
        How often each row counts: whole numbers of 0 or more; None counts each once.

    Returns
    -------
    float
        From 0 to 1; greater is better.

    Examples
    --------
    >>> precision_at([1, 0, 1], [0.9, 0.5, 0.1], k=2)
    0.5
    """
    grades, score, queries = as_lists(y_true, score, qid, multiplicity)
    hits = grades >= relevant
    table = queries.ranked(hits, score, k)
    return _mean("precision_at", table.sum(axis=1) / k, queries.any(hits), empty)


def mrr(
    y_true,
    score,
    k: int | None = None,
    qid=None,
    relevant: float = 1,
    empty: Empty = "zero",
    multiplicity=None,
) -> float:
    """Mean over queries of 1 / (place of the first row with grade `relevant` or more); 0 if not in the first k.

    Equal scores keep the order of the rows; without qid all rows are one query.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Grades of relevance, 0 or more.
    score : array-like of shape (n_rows,)
        Scores; rows are ranked by falling score within their query.
    k : int, default=None
        How many rows of each list are read, 1 or more; None reads all.
    qid : array-like of shape (n_rows,), default=None
        Query of each row; None puts all rows into one query.
    relevant : float, default=1
        The least grade that counts as relevant.
    empty : {"one", "half", "zero", "skip"}, default="zero"
        What a query without a relevant row counts: 1, 0.5, 0, or not at all.
    multiplicity : array-like of shape (n_rows,), default=None
        How often each row counts: whole numbers of 0 or more; None counts each once.

    Returns
    -------
    float
        From 0 to 1; greater is better.

    Examples
    --------
    >>> mrr([0, 1, 1], [0.9, 0.5, 0.1])
    0.5
    """
    grades, score, queries = as_lists(y_true, score, qid, multiplicity)
    hits = grades >= relevant
    table = queries.ranked(hits, score, k)
    reciprocal = table.max(axis=1) / (table.argmax(axis=1) + 1)
    return _mean("mrr", reciprocal, queries.any(hits), empty)


def err(
    y_true,
    score,
    k: int | None = None,
    qid=None,
    max_grade: float = 4,
    empty: Empty = "zero",
    multiplicity=None,
) -> float:
    """Expected reciprocal rank (Chapelle et al. 2009) of the first k (None: of all), mean over queries.

    A reader goes down the list and stops at a row of grade g with chance R = (2^g − 1) / 2^max_grade; the
    figure is the expected 1/place of the stop. `max_grade` is the top of the grading *scale*, never taken from
    the data, where it would differ between validation and test: 4 as in the Yahoo! challenge and TREC's gdeval;
    say 2 for LETOR and 1 for binary grades. A grade above it is refused. Relevant is a grade above 0. Equal
    scores keep the order of the rows; without qid all rows are one query.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Grades of relevance, 0 or more.
    score : array-like of shape (n_rows,)
        Scores; rows are ranked by falling score within their query.
    k : int, default=None
        How many rows of each list are read, 1 or more; None reads all.
    qid : array-like of shape (n_rows,), default=None
        Query of each row; None puts all rows into one query.
    max_grade : float, default=4
        The top of the grading scale, above 0.
    empty : {"one", "half", "zero", "skip"}, default="zero"
        What a query without a relevant row counts: 1, 0.5, 0, or not at all.
    multiplicity : array-like of shape (n_rows,), default=None
        How often each row counts: whole numbers of 0 or more; None counts each once.

    Returns
    -------
    float
        From 0 to 1; greater is better.

    Examples
    --------
    >>> err([4, 0], [0.9, 0.1])
    0.9375
    """
    if not 0 < max_grade < np.inf:
        raise ValueError(f"max_grade must be a number above 0, the top of the grading scale, got {max_grade!r}.")
    grades, score, queries = as_lists(y_true, score, qid, multiplicity)
    _check_grades("err", grades)
    if grades.max() > max_grade:
        raise ValueError(
            f"err needs grades from 0 to max_grade={max_grade:g}, got {grades.max():g}. "
            "Pass the top of your grading scale as max_grade."
        )
    stops = queries.ranked((np.exp2(grades) - 1.0) / np.exp2(max_grade), score, k)
    still_reading = np.cumprod(1.0 - stops, axis=1)
    still_reading = np.column_stack([np.ones(len(stops)), still_reading[:, :-1]])
    expected = (stops * still_reading / np.arange(1, stops.shape[1] + 1)).sum(axis=1)
    return _mean("err", expected, queries.any(grades > 0), empty)


def _check_grades(name: str, grades: np.ndarray) -> None:
    if grades.min() < 0:
        raise ValueError(
            f"{name} needs grades of 0 or more, got {grades.min():g}. Map the labels first, for example -1 to 0."
        )


def _mean(name: str, per_query: np.ndarray, relevant: np.ndarray, empty: Empty) -> float:
    """The mean over queries, those without a relevant row counted by the rule `empty`."""
    if empty not in _EMPTY:
        raise ValueError(f"empty must be one of {list(_EMPTY)}, got {empty!r}.")
    if empty != "skip":
        return float(np.where(relevant, per_query, _EMPTY[empty]).mean())
    if not relevant.any():
        raise ValueError(
            f"{name} with empty='skip' needs a query with a relevant row, got none. "
            "Give rows with grades that count as relevant, or choose empty='one', 'half' or 'zero'."
        )
    return float(per_query[relevant].mean())


def _discounted(table: np.ndarray) -> np.ndarray:
    return (table / np.log2(np.arange(2, table.shape[1] + 2))).sum(axis=1)
