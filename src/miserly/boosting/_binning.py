"""Data in bins: one byte per value, eight features to a word, bin 255 for missing values."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from miserly.kernels import binning as kernels
from miserly.kernels.histograms import LANES, MISSING
from miserly.kernels.threads import n_threads

COLUMNS_AT_ONCE, ROWS_AT_ONCE = 16, 2048  # a block of float64 that stays in the second cache
MAX_BINS = 255  # a byte, less the value for missing
SAMPLE = 200_000  # rows whose quantiles are the cuts: within 0.2 % of those of all rows


@dataclass(frozen=True)
class BinnedData:
    """One byte per value: a value lies in bin b if it is above its feature's cut b − 1 and not above cut b.

    `words` is tile × row: the bins of features 8t to 8t + 7 of a row are the bytes of one word, the first lowest.
    """

    words: np.ndarray
    cuts: np.ndarray
    n_bins: np.ndarray

    @property
    def bins(self) -> np.ndarray:
        """The bins as a matrix of their own, feature × row."""
        return np.stack([self.lane(f) for f in range(self.n_features)])

    def lane(self, feature: int) -> np.ndarray:
        """The bins of one feature."""
        return _lane(self.words, feature)

    @property
    def n_features(self) -> int:
        return len(self.n_bins)

    @property
    def n_rows(self) -> int:
        return self.words.shape[1]

    def threshold(self, feature: int, cut: int) -> float:
        """The number that parts bins up to `cut` from those above; infinite where only missing values lie above."""
        return float(self.cuts[feature, cut])

    def cut(self, feature: int, threshold: float) -> int:
        """The last bin that is not above a threshold, which must be one of this feature's."""
        cut = int(np.searchsorted(self.cuts[feature], threshold))
        if cut >= self.cuts.shape[1] or self.cuts[feature, cut] != threshold:
            raise ValueError(
                f"The trees part feature {feature} at {threshold!r}, which is no border of these bins: they were grown "
                "on data in other bins. Put the data in the same bins, or give the values themselves."
            )
        return cut

    def values(self, rows: slice, features: Iterable[int]) -> np.ndarray:
        """Some rows as numbers that lie in their bins (the upper end of each), for these features; zero in all others.

        Trees that were grown on the same bins send them where they send the values themselves.
        """
        out = np.zeros((len(range(*rows.indices(self.n_rows))), self.n_features))
        for f in features:
            ends = np.append(self.cuts[f, :MISSING], np.nan)
            out[:, f] = ends[self.lane(f)[rows]]
        return out


def bin_data(X: Any, max_bins: int = MAX_BINS, sample: int | None = SAMPLE, n_jobs: int | None = None) -> BinnedData:
    """Cut each column at the quantiles of (a sample of) its rows and put every value in its bin.

    A sparse matrix (best by columns, CSC) is made dense a few columns at a time; what it does not hold is zero. The
    sample is chosen by a hash of the row number, so it does not depend on how the data are stored; None takes all.
    """
    n_rows, n_features = X.shape
    words = _empty_words(n_features, n_rows)
    cuts, n_bins = no_cuts(n_features)
    chosen = None if sample is None else chosen_rows(n_rows, sample)

    def work(first: int) -> None:
        columns = _columns(X, first)
        cut_columns(columns[:, chosen] if chosen is not None else columns.copy(), max_bins, first, cuts, n_bins)
        _encode(columns, first, cuts, words)

    with ThreadPoolExecutor(n_threads(n_jobs)) as pool:
        list(pool.map(work, range(0, n_features, COLUMNS_AT_ONCE)))
    return BinnedData(words, cuts, n_bins)


def no_cuts(n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Arrays for the cuts of each feature, and for its number of bins."""
    return np.full((n_features, MAX_BINS + 1), np.inf), np.zeros(n_features, np.int32)


def cut_columns(columns: np.ndarray, max_bins: int, first: int, cuts: np.ndarray, n_bins: np.ndarray) -> None:
    """Find the cuts of some columns (feature × row, which are sorted in place), those of number `first` and on."""
    columns.sort(axis=1)
    for f, column in enumerate(columns, start=first):
        present = column[: len(column) - np.count_nonzero(np.isnan(column))]
        n_bins[f] = kernels.find_cuts(present, max_bins, cuts[f]) + (len(present) > 0)


def encode_rows(X: np.ndarray, cuts: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """The bins of some rows as words, with cuts that are known."""
    words = _empty_words(X.shape[1], len(X))

    def work(first: int) -> None:
        _encode(_columns(X, first), first, cuts, words)

    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(work, range(0, X.shape[1], COLUMNS_AT_ONCE)))
    return words


def _columns(X: Any, first: int) -> np.ndarray:
    """Some features as rows of a matrix, turned a few rows at a time, which stay in the cache."""
    part = X[:, first : first + COLUMNS_AT_ONCE]
    part = part.toarray() if issparse(X) else part
    columns = np.empty(part.shape[::-1])
    for at in range(0, len(part), ROWS_AT_ONCE):
        columns[:, at : at + ROWS_AT_ONCE] = part[at : at + ROWS_AT_ONCE].T
    return columns


def _encode(columns: np.ndarray, first: int, cuts: np.ndarray, words: np.ndarray) -> None:
    for f, column in enumerate(columns, start=first):
        kernels.encode(column, cuts[f], _lane(words, f))


def _empty_words(n_features: int, n_rows: int) -> np.ndarray:
    return np.zeros((-(-n_features // LANES), n_rows), "<u8")


def _lane(words: np.ndarray, feature: int) -> np.ndarray:
    """The bins of one feature: every eighth byte of its tile."""
    return words[feature // LANES].view(np.uint8)[feature % LANES :: LANES]


def hashes(first: int, last: int, seed: int = 0) -> np.ndarray:
    """The hashes of some row numbers (splitmix64 of a seed): no two are equal."""
    h = np.arange(first, last, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


def chosen_rows(n_rows: int, sample: int = SAMPLE) -> np.ndarray | None:
    """The rows with the smallest hashes of their numbers, in their order; None if all are needed."""
    if n_rows <= sample:
        return None
    return np.sort(np.argpartition(hashes(0, n_rows), sample)[:sample])
