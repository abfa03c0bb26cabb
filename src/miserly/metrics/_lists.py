"""Rows into ranked lists: one list per query, its rows by falling score, each row as often as it counts."""

import numpy as np

from miserly.metrics._inputs import as_copies, as_numbers, as_vector, check_rows


def as_lists(y_true, score, qid, multiplicity) -> tuple[np.ndarray, np.ndarray, "Queries"]:
    """Grades, scores and queries of the rows that count; a row of multiplicity 0 is as if not given."""
    grades, score = as_numbers(y_true, "y_true"), as_numbers(score, "score")
    check_rows("score", len(score), len(grades))
    qid = np.zeros(len(grades), dtype=np.int8) if qid is None else as_vector(qid, "qid")
    check_rows("qid", len(qid), len(grades))
    if multiplicity is None:
        return grades, score, Queries(qid)
    copies = as_copies(multiplicity, "multiplicity")
    check_rows("multiplicity", len(copies), len(grades))
    counts = copies > 0
    return grades[counts], score[counts], Queries(qid[counts], copies[counts])


class Queries:
    """Where each query's rows are; qid need not be sorted, rows of one query keep their order."""

    def __init__(self, qid: np.ndarray, copies: np.ndarray | None = None):
        self.rows = np.argsort(qid, kind="stable")
        grouped = qid[self.rows]
        self.start = np.concatenate([[0], np.flatnonzero(grouped[1:] != grouped[:-1]) + 1])
        self.length = np.diff(np.append(self.start, len(qid)))
        self.copies = None if copies is None else copies[self.rows]

    def ranked(self, values: np.ndarray, score: np.ndarray, k: int | None) -> np.ndarray:
        """Matrix (queries, k): `values` by falling score, ties in row order, 0 past a query's end.

        Queries of one length are sorted together as a matrix: a loop over the few lengths, not over the
        many queries, and several times faster than sorting all rows by (query, score).
        """
        if k is not None and (int(k) != k or k < 1):
            raise ValueError(f"k must be a whole number of 1 or more, got {k!r}. Pass k=None for the whole list.")
        width = self._longest() if k is None else int(k)
        values, falling = values[self.rows], -score[self.rows]
        table = np.zeros((len(self.start), width))
        for length in np.unique(self.length):
            queries = np.flatnonzero(self.length == length)
            cells = self.start[queries, None] + np.arange(length)
            best = np.argsort(falling[cells], axis=1, kind="stable")[:, :width]
            cells = np.take_along_axis(cells, best, axis=1)
            if self.copies is None:
                table[queries, : cells.shape[1]] = values[cells]
            else:
                table[queries] = _repeated(values[cells], self.copies[cells], width)
        return table

    def any(self, hits: np.ndarray) -> np.ndarray:
        """Per query, whether any of its rows (at any place) is a hit."""
        return np.logical_or.reduceat(hits[self.rows], self.start)

    def _longest(self) -> int:
        return int((self.length if self.copies is None else np.add.reduceat(self.copies, self.start)).max())


def _repeated(values: np.ndarray, copies: np.ndarray, width: int) -> np.ndarray:
    """The first `width` places when each value stands `copies` times; no copy beyond them is ever made."""
    end = np.minimum(np.cumsum(np.minimum(copies, width), axis=1), width)
    table = np.zeros((len(values), width))
    table[np.arange(width) < end[:, -1:]] = np.repeat(values.ravel(), np.diff(end, axis=1, prepend=0).ravel())
    return table
