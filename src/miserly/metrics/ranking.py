"""Figures of ranked lists: one list per query, the mean over queries.

Every figure here reads one matrix, `ranked`: a row per query, the grades of its best k rows in the order
of the scores. A new figure (err, mrr) is a few lines over that matrix and a line in the registry.
"""

from typing import Literal

import numpy as np

from miserly.metrics.border import as_numbers, as_vector, check_rows

_EMPTY = {"one": 1.0, "half": 0.5, "zero": 0.0, "skip": np.nan}
_GAINS = ("exponential", "linear")


def ndcg(
    y_true,
    score,
    k: int | None = None,
    qid=None,
    gain: Literal["exponential", "linear"] = "exponential",
    empty: Literal["one", "half", "zero", "skip"] = "skip",
) -> float:
    """Normalised discounted cumulative gain of the first k (None: of all), mean over queries.

    Gains are 2^grade − 1 ("exponential", the Yahoo! challenge and the papers) or the grade ("linear"), the
    discount of place i is 1/log2(i + 1). Equal scores keep the order of the rows. Without qid all rows are
    one query. A query without a relevant row has no ideal to divide by, and no ranking can change it: it
    counts as 1 ("one", LightGBM), as 0.5 ("half", the script of the Yahoo! challenge), as 0 ("zero",
    scikit-learn) or not at all ("skip", the default: no invented number enters the mean). All four order
    models alike; only figures made under one rule may be compared.
    """
    grades, score = as_numbers(y_true, "y_true"), as_numbers(score, "score")
    check_rows("score", len(score), len(grades))
    if gain not in _GAINS:
        raise ValueError(f"gain must be one of {list(_GAINS)}, got {gain!r}.")
    if empty not in _EMPTY:
        raise ValueError(f"empty must be one of {list(_EMPTY)}, got {empty!r}.")
    if grades.min() < 0:
        raise ValueError(
            f"ndcg needs grades of 0 or more, got {grades.min():g}. Map the labels first, for example -1 to 0."
        )
    gains = np.exp2(grades) - 1.0 if gain == "exponential" else grades
    lists = _Queries(qid, len(gains))
    dcg = _discounted(lists.ranked(gains, score, k))
    ideal = _discounted(lists.ranked(gains, gains, k))
    relevant = ideal > 0
    per_query = np.full(len(ideal), _EMPTY[empty])
    per_query[relevant] = dcg[relevant] / ideal[relevant]
    if empty == "skip":
        per_query = per_query[relevant]
        if per_query.size == 0:
            raise ValueError(
                "ndcg with empty='skip' needs a query with a relevant row, got none. "
                "Give rows with grades above 0, or choose empty='one', 'half' or 'zero'."
            )
    return float(per_query.mean())


def precision_at(y_true, score, k: int, qid=None, relevant: float = 1) -> float:
    """Share of relevant rows (grade `relevant` or more) among the first k, mean over queries.

    A query shorter than k is still divided by k (the TREC rule). Equal scores keep the order of the rows;
    without qid all rows are one query. The papers' Yahoo! protocol is `relevant=3` on grades 0 to 4.
    """
    grades, score = as_numbers(y_true, "y_true"), as_numbers(score, "score")
    check_rows("score", len(score), len(grades))
    hits = (grades >= relevant).astype(np.float64)
    return float((_Queries(qid, len(hits)).ranked(hits, score, k).sum(axis=1) / k).mean())


class _Queries:
    """Where each query's rows are; qid need not be sorted, rows of one query keep their order."""

    def __init__(self, qid, n_rows: int):
        qid = np.zeros(n_rows, dtype=np.int8) if qid is None else as_vector(qid, "qid")
        check_rows("qid", len(qid), n_rows)
        self.rows = np.argsort(qid, kind="stable")
        grouped = qid[self.rows]
        self.start = np.concatenate([[0], np.flatnonzero(grouped[1:] != grouped[:-1]) + 1])
        self.length = np.diff(np.append(self.start, n_rows))

    def ranked(self, values: np.ndarray, score: np.ndarray, k: int | None) -> np.ndarray:
        """Matrix (queries, k): `values` by falling score, ties in row order, 0 past a query's end.

        Queries of one length are sorted together as a matrix: a loop over the few lengths, not over the
        many queries, and several times faster than sorting all rows by (query, score).
        """
        if k is not None and (int(k) != k or k < 1):
            raise ValueError(f"k must be a whole number of 1 or more, got {k!r}. Pass k=None for the whole list.")
        width = int(self.length.max()) if k is None else int(k)
        values, falling = values[self.rows], -score[self.rows]
        table = np.zeros((len(self.start), width))
        for length in np.unique(self.length):
            queries = np.flatnonzero(self.length == length)
            cells = self.start[queries, None] + np.arange(length)
            best = np.argsort(falling[cells], axis=1, kind="stable")[:, :width]
            table[queries, : best.shape[1]] = np.take_along_axis(values[cells], best, axis=1)
        return table


def _discounted(table: np.ndarray) -> np.ndarray:
    return (table / np.log2(np.arange(2, table.shape[1] + 2))).sum(axis=1)
