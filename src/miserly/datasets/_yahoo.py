"""An imitation of the Yahoo! Learning to Rank Challenge set, whose rows are under licence.

Shape, prices, grades and query lengths are the published ones; what the columns mean is invented. A document
has hidden factors (title match, clicks, …), a query has an intent that decides which of them matter. Each
price tier has *views*: measurements of a factor with the tier's noise, expensive ones cleaner. Columns of a tier
repeat its views through their own monotone curve, so most are redundant, and many are noise.

Only IEEE-exact operations touch the numbers (no exp, no BLAS), so a seed gives the same bits on every machine.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from miserly.costs import CostTable
from miserly.datasets._dataset import Dataset

TIERS = {1: 123, 5: 31, 20: 191, 50: 125, 100: 16, 150: 32, 200: 1}
GRADE_SHARES = (0.2609, 0.3580, 0.2855, 0.0767, 0.0189)

_FACTORS = ("authority", "spam", "freshness", "title", "anchor", "body", "clicks", "proximity")
_INTENTS = ("navigational", "newsy", "answered", "popular")
# Columns of a tier take these by rotation: (factor or intent, noise of its measurement), None for pure noise.
_VIEWS: dict[int, tuple[tuple[str, float] | None, ...]] = {
    1: (
        *(("authority", 0.6), None, ("navigational", 0.5), ("spam", 0.6), ("title", 1.0), None),
        *(("newsy", 0.5), ("freshness", 0.6), ("clicks", 1.0), ("answered", 0.5), ("popular", 0.3)),
        *(("anchor", 1.0), None, ("proximity", 0.9)),
    ),
    5: (("authority", 0.4), ("anchor", 0.9), None, ("title", 0.9), ("spam", 0.4)),
    20: (("title", 0.7), ("body", 1.0), None, ("anchor", 0.8), ("freshness", 0.4), None, ("clicks", 1.0)),
    50: (("body", 0.6), ("clicks", 0.8), None, ("anchor", 0.5), ("proximity", 0.8)),
    100: (("clicks", 0.5), ("title", 0.4), None),
    150: (("proximity", 0.7), None, ("body", 0.4), ("clicks", 0.35)),
    200: (("proximity", 0.45),),
}
_COLUMNS_SEED = 519
# Cuts of the hidden relevance that give GRADE_SHARES, from 150,000 queries; frozen: train and test share them.
_GRADE_CUTS = (-1.459, 0.157, 1.867, 3.148)
_LENGTH_SCALE, _LONGEST = 17.25, 140
_BLOCK = 2048


class _Columns(NamedTuple):
    """What each column shows: `view` scaled by `gain`, own `jitter`, `shift`, and how it ends in [0, 1]."""

    price: np.ndarray
    view: np.ndarray
    gain: np.ndarray
    jitter: np.ndarray
    shift: np.ndarray
    slope: np.ndarray
    base: np.ndarray


def yahoo_like(n_queries: int, seed: int) -> Dataset:
    """Draw queries with their documents: 519 priced columns in [0, 1] (float32), grades 0 to 4.

    Columns, prices and the true relevance never change, only the rows depend on the seed: draw train and
    test with two seeds. The unit of price is one tree evaluation, so a tree costs 1.

    Parameters
    ----------
    n_queries : int
        Queries, 1 or more; a query has 24 documents in the mean.
    seed : int
        Seed of the rows.

    Returns
    -------
    Dataset
        519 columns, grades 0 to 4, and the query of each row.

    Examples
    --------
    >>> yahoo_like(2, seed=0).X.shape[1]
    519
    """
    if n_queries < 1:
        raise ValueError(f"n_queries must be 1 or more, got {n_queries}.")
    rng = np.random.Generator(np.random.PCG64(seed))
    length = _query_lengths(rng, n_queries)
    qid = np.repeat(np.arange(n_queries), length)
    hidden = dict(zip(_INTENTS, _bell(rng, (len(_INTENTS), n_queries))[:, qid]))
    of_query = _bell(rng, (len(_FACTORS), n_queries))[:, qid]
    hidden |= zip(_FACTORS, 0.5 * of_query + 0.875 * _bell(rng, (len(_FACTORS), len(qid))))
    relevance = _relevance(hidden) + _bell(rng, (len(qid),))
    y = np.searchsorted(_GRADE_CUTS, relevance).astype(np.int64)
    X = _render(rng, _measure(rng, hidden, qid), _columns())
    costs = CostTable.per_feature(
        {f"f{j:03d}": float(price) for j, price in enumerate(_columns().price)},
        evaluation=1.0,
        unit="tree evaluations",
    )
    return Dataset(X, y, costs, qid.astype(np.int64), name="yahoo_like")


def _relevance(hidden: dict[str, np.ndarray]) -> np.ndarray:
    """Users with an address in mind want the linked, known page; the others the page whose text answers."""
    h = hidden
    found = np.where(h["navigational"] > 0.3, 0.9 * h["anchor"] + 0.5 * h["authority"], h["proximity"])
    read = 0.6 * np.minimum(h["title"], h["body"] + 0.5)
    trusted = 0.5 * h["clicks"] * (h["authority"] > -0.5)
    new = 0.4 * np.where(h["newsy"] > 0, h["freshness"], 0.0)
    return found + read + trusted + new - 0.7 * np.maximum(h["spam"] - 0.5, 0.0) + 0.5 * h["answered"]


def _query_lengths(rng: np.random.Generator, n_queries: int) -> np.ndarray:
    """1 to 140 documents, skewed, mean 23.7: a log-logistic law cut at the longest."""
    odds_cut = ((_LONGEST - 1) / _LENGTH_SCALE) ** 2
    u = rng.random(n_queries) * (odds_cut / (1 + odds_cut))
    return 1 + (_LENGTH_SCALE * np.sqrt(u / (1 - u))).astype(np.int64)


def _bell(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Nearly normal, mean 0, variance 1: the sum of three uniforms, exact on every machine."""
    total = rng.random(shape)
    total += rng.random(shape)
    total += rng.random(shape)
    return 2.0 * (total - 1.5)


def _views() -> list[tuple[str, float]]:
    return [view for tier in _VIEWS.values() for view in tier if view is not None]


def _measure(rng: np.random.Generator, hidden: dict[str, np.ndarray], qid: np.ndarray) -> np.ndarray:
    """One measurement per view, shared by all its columns: copies of a view do not average its noise away."""
    measured = np.empty((len(qid), len(_views())), dtype=np.float32)
    for i, (factor, noise) in enumerate(_views()):
        error = _bell(rng, (int(qid[-1]) + 1,))[qid] if factor in _INTENTS else _bell(rng, (len(qid),))
        measured[:, i] = hidden[factor] + noise * error
    return measured


@cache
def _columns() -> _Columns:
    """The roles of the 519 columns, shuffled once for all by a seed of their own."""
    rng = np.random.Generator(np.random.PCG64(_COLUMNS_SEED))
    numbered = iter(range(len(_views())))
    tiers = {price: [None if v is None else (next(numbered), v) for v in vs] for price, vs in _VIEWS.items()}
    roles = [(price, tiers[price][i % len(tiers[price])]) for price, n in TIERS.items() for i in range(n)]
    roles = [roles[i] for i in np.argsort(rng.random(len(roles)))]
    u = rng.random((5, len(roles)))
    noise = np.array([role is None for _, role in roles])
    of_query = np.array([role is not None and role[1][0] in _INTENTS for _, role in roles])
    sparse = (u[0] < 0.35) & ~of_query
    gain = np.where(u[1] < 0.15, -1.0, 1.0) * (0.5 + 1.5 * u[2])
    as_float32 = [
        np.where(noise, 0.0, gain),
        np.where(noise, 2.0, np.where(of_query, 0.0, 0.6 * u[3])),
        np.where(sparse, 0.2 + 0.8 * u[4], 2.0 * u[4] - 1.0),
        np.where(sparse, 1.0, 0.5),
        np.where(sparse, 0.0, 0.5),
    ]
    view = np.array([0 if role is None else role[0] for _, role in roles])
    return _Columns(np.array([price for price, _ in roles]), view, *(a.astype(np.float32) for a in as_float32))


def _render(rng: np.random.Generator, measured: np.ndarray, columns: _Columns) -> np.ndarray:
    """Every column's curve v / (1 + |v|) of its view and jitter, within [0, 1]; sparse ones are cut at 0."""
    X = np.empty((len(measured), len(columns.price)), dtype=np.float32)
    for start in range(0, len(X), _BLOCK):
        rows = X[start : start + _BLOCK]
        rng.random(dtype=np.float32, out=rows)
        rows -= np.float32(0.5)
        rows *= 2 * columns.jitter
        rows += measured[start : start + _BLOCK].take(columns.view, axis=1) * columns.gain
        rows -= columns.shift
        rows /= 1 + np.abs(rows)
        rows *= columns.slope
        rows += columns.base
        np.maximum(rows, 0, out=rows)
    return X
