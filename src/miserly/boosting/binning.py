"""Data in bins: one byte per value, eight features to a word, bin 255 for missing values."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from miserly.kernels import binning as kernels
from miserly.kernels.histograms import LANES
from miserly.kernels.threads import n_threads

COLUMNS_AT_ONCE = 16
MAX_BINS = 255


@dataclass(frozen=True)
class BinnedData:
    """One byte per value: a value lies in bin b if it is above its feature's cut b − 1 and not above cut b.

    `words` is tile × row: the bins of features 8t to 8t + 7 of a row are the bytes of one word, the first lowest.
    """

    words: np.ndarray
    cuts: np.ndarray
    n_bins: np.ndarray

    @classmethod
    def from_bins(cls, bins: np.ndarray, cuts: np.ndarray, n_bins: np.ndarray) -> BinnedData:
        """From bins that are known already, feature × row."""
        words = _empty_words(*bins.shape)
        for f, column in enumerate(bins):
            _lane(words, f)[:] = column
        return cls(words, cuts, n_bins)

    @property
    def bins(self) -> np.ndarray:
        """The bins as a matrix of their own, feature × row."""
        return np.stack([_lane(self.words, f) for f in range(self.n_features)])

    @property
    def n_features(self) -> int:
        return len(self.n_bins)

    @property
    def n_rows(self) -> int:
        return self.words.shape[1]

    def threshold(self, feature: int, cut: int) -> float:
        """The number that parts bins up to `cut` from those above; infinite where only missing values lie above."""
        return float(self.cuts[feature, cut])


def bin_data(X: Any, max_bins: int = MAX_BINS, sample: int | None = 200_000, n_jobs: int | None = None) -> BinnedData:
    """Cut each column at the quantiles of (a sample of) its rows and put every value in its bin.

    A sparse matrix (best by columns, CSC) is made dense a few columns at a time; what it does not hold is zero. The
    sample is chosen by a hash of the row number, so it does not depend on how the data are stored; None takes all.
    """
    n_rows, n_features = X.shape
    words = _empty_words(n_features, n_rows)
    cuts = np.full((n_features, MAX_BINS + 1), np.inf)
    n_bins = np.zeros(n_features, np.int32)
    chosen = _chosen_rows(n_rows, sample)

    def work(first: int) -> None:
        part = X[:, first : first + COLUMNS_AT_ONCE]
        columns = np.ascontiguousarray((part.toarray() if issparse(X) else part).T, dtype=np.float64)
        ordered = columns[:, chosen] if chosen is not None else columns.copy()
        ordered.sort(axis=1)
        for j, column in enumerate(columns):
            f = first + j
            present = ordered[j, : len(ordered[j]) - np.count_nonzero(np.isnan(ordered[j]))]
            n_bins[f] = kernels.find_cuts(present, max_bins, cuts[f]) + (len(present) > 0)
            kernels.encode(column, cuts[f], _lane(words, f))

    with ThreadPoolExecutor(n_threads(n_jobs)) as pool:
        list(pool.map(work, range(0, n_features, COLUMNS_AT_ONCE)))
    return BinnedData(words, cuts, n_bins)


def _empty_words(n_features: int, n_rows: int) -> np.ndarray:
    return np.zeros((-(-n_features // LANES), n_rows), "<u8")


def _lane(words: np.ndarray, feature: int) -> np.ndarray:
    """The bins of one feature: every eighth byte of its tile."""
    return words[feature // LANES].view(np.uint8)[feature % LANES :: LANES]


def _chosen_rows(n_rows: int, sample: int | None) -> np.ndarray | None:
    """The rows with the smallest hashes (splitmix64 of the row number), in their order."""
    if sample is None or n_rows <= sample:
        return None
    h = np.arange(n_rows, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.sort(np.argpartition(h ^ (h >> np.uint64(31)), sample)[:sample])
