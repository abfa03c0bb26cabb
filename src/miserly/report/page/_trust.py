"""How far predictions can be trusted: how often they are right, for which class, and where they are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from miserly.metrics import Metric
from miserly.report._intervals import wilson
from miserly.report._observed import Observed

SHARES = (10, 50, 90)  # percent of rows, of errors and of queries
MOST_QUERIES = 400  # measured one by one


def confusion(seen: Observed) -> list[list[int]] | None:
    """Counts of true classes (rows) × predictions (columns), in the order of the plan's classes."""
    counts = _by_cell(seen, None)
    return None if counts is None else counts.astype(int).tolist()


def spent(seen: Observed) -> dict[str, Any] | None:
    """What rows paid, summed by true class × prediction, and the sum of its squares: with the costs of mistakes they
    give the variance of the total."""
    sums = _by_cell(seen, seen.cost)
    if sums is None:
        return None
    return {"cells": sums.tolist(), "squares": float(np.square(seen.cost).sum())}


def _by_cell(seen: Observed, weights: np.ndarray | None) -> np.ndarray | None:
    """Rows, or their weights, summed by true class × prediction; None where there are no classes."""
    classes = seen.plan.classes
    if classes is None:
        return None
    n = len(classes)
    place = {label: i for i, label in enumerate(classes.tolist())}
    truth = np.array([place.get(label, -1) for label in seen.rows.y.tolist()])
    said = np.array([place[label] for label in seen.answers.tolist()])
    known = truth >= 0  # a label that the plan has never seen is no class of its own
    counted = None if weights is None else weights[known]
    return np.bincount(truth[known] * n + said[known], counted, minlength=n * n).reshape(n, n)


def rates(seen: Observed) -> list[dict[str, Any]]:
    """Sensitivity, specificity and predictive values with their intervals: of two classes for the second, of more for
    each."""
    matrix = confusion(seen)
    if matrix is None or seen.plan.classes is None:
        return []
    counts = np.array(matrix)
    n, found = counts.sum(), []
    for i, label in enumerate(seen.plan.classes.tolist()):
        if len(counts) == 2 and i == 0:
            continue
        hits, is_so, says_so = counts[i, i], counts[i].sum(), counts[:, i].sum()
        neither = n - is_so - says_so + hits
        pairs = {
            "sensitivity": (hits, is_so),
            "specificity": (neither, n - is_so),
            "positive": (hits, says_so),
            "negative": (neither, n - says_so),
        }
        found.append({"label": str(label), "rows": int(is_so)} | {k: share(*pair) for k, pair in pairs.items()})
    return found


def right(seen: Observed) -> list[float] | None:
    """The share of right predictions with its interval, where there are classes."""
    return None if seen.plan.classes is None else share(np.sum(seen.answers == seen.rows.y), len(seen.rows))


def share(hits: Any, n: Any) -> list[float] | None:
    """A share with its interval; None where there is nothing to count."""
    return list(wilson(int(hits), int(n))) if n else None


def gap(bins: list[dict[str, Any]]) -> float:
    """The expected calibration error: the mean gap between predicted and observed, by the rows of each mark."""
    n = sum(b["rows"] for b in bins)
    return float(sum(b["rows"] * abs(b["seen"] - b["predicted"]) for b in bins) / n)


def errors(seen: Observed, metric: Metric) -> dict[str, Any] | None:
    """How far numbers are off, or how well single queries do: values that are not exceeded by these shares of them."""
    if seen.plan.classes is not None:
        return None
    if seen.rows.qid is None:
        off = np.abs(seen.answers - seen.rows.y)
        return {"what": "rows", "mean": float(off.mean()), "shares": _quantiles(off)}
    values = _by_query(seen, metric)
    return {"what": "queries", "mean": float(values.mean()), "shares": _quantiles(values)} if len(values) else None


def _by_query(seen: Observed, metric: Metric) -> np.ndarray:
    """The metric of each query, of a sample if there are many; those on which it is not defined are left out."""
    output, rows, values = seen.output(metric), seen.rows, []
    numbers = np.arange(rows.query.max() + 1)
    if len(numbers) > MOST_QUERIES:
        numbers = np.sort(np.random.default_rng(0).choice(numbers, MOST_QUERIES, replace=False))
    order = np.argsort(rows.query, kind="stable")
    ends = np.searchsorted(rows.query[order], [numbers, numbers + 1])
    for first, last in ends.T:
        here = order[first:last]
        try:
            value = metric(rows.y[here], output[here], qid=np.zeros(len(here), int), classes=None)
        except ValueError:
            continue
        if np.isfinite(value):
            values.append(float(value))
    return np.array(values)


def _quantiles(values: np.ndarray) -> list[list[float]]:
    return [[s, float(np.percentile(values, s))] for s in SHARES]
