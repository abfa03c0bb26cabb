"""Designs: the standardised matrix of learner outputs that linear solvers work over, never held in memory for trees.

A solver sees a design only through sums over rows: scores, sums, Gram matrices, single columns. A dictionary of 3000
trees over 141,397 rows is one byte per row and tree (the number of the leaf), not eight; blocks of rows are decoded
when they are needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from miserly.kernels import leaves as kernels
from miserly.plan import Trees

Floats = NDArray[np.float64]
Rows = slice | NDArray[np.intp]
BLOCK_CELLS = 1 << 21
MAX_LEAVES = 255
CONSTANT = 8 * np.finfo(np.float64).eps


class Design(Protocol):
    """H, rows × columns: (raw output − centre) / scale. A column that does not vary is zero, its scale is one.

    All sums over rows that a solver makes go through these methods. Weights and values may have several columns.
    """

    n_rows: int
    n_columns: int
    centre: Floats
    scale: Floats
    varies: NDArray[np.bool_]

    def scores(self, weights: ArrayLike) -> Floats:
        """H @ weights; columns whose weights are all zero are skipped."""
        ...

    def sums(self, values: ArrayLike) -> Floats:
        """H.T @ values."""
        ...

    def gram(self, weight: ArrayLike, columns: ArrayLike | None = None) -> Floats:
        """H.T @ diag(weight) @ H for some columns, or all; rows without weight are not looked at."""
        ...

    def column(self, j: int) -> Floats:
        """One column of H."""
        ...


def raw_weights(design: Design, weights: ArrayLike, intercept: ArrayLike = 0.0) -> tuple[Floats, Floats]:
    """Weights and bias of a plan node, which reads learners as they are, from those of the standardised columns.

    `weights` are (columns,) or (columns, k), the intercept one number or k; columns that do not vary get no weight.
    """
    table, shape = _table(weights, design.n_columns)
    raw = np.where(design.varies[:, None], table / design.scale[:, None], 0.0)
    used = np.flatnonzero(raw.any(axis=1))
    bias = np.asarray(intercept, np.float64) - design.centre[used] @ raw[used]
    return raw.reshape(design.n_columns, *shape), np.atleast_1d(bias)


class _Blocks:
    """What both kinds share: everything that is done block by block."""

    n_rows: int
    n_columns: int
    centre: Floats
    scale: Floats
    varies: NDArray[np.bool_]

    def gram(self, weight: ArrayLike, columns: ArrayLike | None = None) -> Floats:
        """H.T @ diag(weight) @ H for some columns, or all; rows without weight are not looked at."""
        w = np.asarray(weight, np.float64)
        chosen = np.arange(self.n_columns) if columns is None else np.asarray(columns, np.intp)
        total = np.zeros((len(chosen), len(chosen)))
        signed = bool((w < 0).any())
        for rows in self._pieces(w, len(chosen)):
            block, part = self._block(rows, chosen), w[rows]
            if signed:
                total += block @ (block * part).T
            else:
                block *= np.sqrt(part)
                total += block @ block.T
        return total

    def _pieces(self, weight: Floats | None, n_columns: int) -> Iterator[Rows]:
        """Blocks of rows; with weights, only of those that have some."""
        size = max(64, BLOCK_CELLS // max(1, n_columns))
        if weight is None or weight.all():
            for first in range(0, self.n_rows, size):
                yield slice(first, min(first + size, self.n_rows))
            return
        present = np.flatnonzero(weight)
        for first in range(0, len(present), size):
            yield present[first : first + size]

    def _block(self, rows: Rows, columns: NDArray[np.intp]) -> Floats:
        """Standardised values, columns × rows, in an array of their own."""
        raise NotImplementedError


class RawDesign(_Blocks):
    """Raw features as learners; the data stay where they are, in the precision they have, sparse if they are.

    `columns` says which features, in which order, are the columns; all as they stand if it is not given.
    """

    def __init__(self, X: Any, sample_weight: ArrayLike | None = None, columns: ArrayLike | None = None) -> None:
        self._X = X.tocsr() if issparse(X) else X
        self.features = np.arange(X.shape[1]) if columns is None else np.asarray(columns, np.intp)
        self.n_rows, self.n_columns = X.shape[0], len(self.features)
        share = _shares(sample_weight, self.n_rows)
        everything = np.arange(self.n_columns)
        self.centre, self.scale = np.zeros(self.n_columns), np.ones(self.n_columns)
        mean = np.zeros(self.n_columns)
        for rows in self._pieces(None, self.n_columns):
            mean += self._block(rows, everything) @ share[rows]
        self.centre = mean
        largest, rest = np.zeros(self.n_columns), np.zeros(self.n_columns)
        for rows in self._pieces(None, self.n_columns):
            block = self._block(rows, everything)
            np.maximum(largest, np.abs(block).max(axis=1, initial=0.0), out=largest)
            rest += block @ share[rows]
        # what is left of a constant column after subtracting its rounded mean is not variation
        self.varies = largest > CONSTANT * self.n_rows**0.5 * np.abs(mean)
        self.centre, self.scale = mean + rest, np.where(self.varies, largest, 1.0)
        square = np.zeros(self.n_columns)
        for rows in self._pieces(None, self.n_columns):
            block = self._block(rows, everything)
            square += (block * block) @ share[rows]
        self.varies &= square > 0
        self.scale = np.where(self.varies, self.scale * np.sqrt(square), 1.0)

    def scores(self, weights: ArrayLike) -> Floats:
        """H @ weights; columns whose weights are all zero are skipped."""
        table, shape = _table(weights, self.n_columns)
        used = np.flatnonzero(table.any(axis=1))
        out = np.zeros((self.n_rows, table.shape[1]))
        if len(used):
            for rows in self._pieces(None, len(used)):
                out[rows] = (table[used].T @ self._block(rows, used)).T
        return out.reshape(self.n_rows, *shape)

    def sums(self, values: ArrayLike) -> Floats:
        """H.T @ values."""
        table, shape = _table(values, self.n_rows)
        out = np.zeros((self.n_columns, table.shape[1]))
        everything = np.arange(self.n_columns)
        present = np.asarray(table.any(axis=1), np.float64)
        for rows in self._pieces(present, self.n_columns):
            out += self._block(rows, everything) @ table[rows]
        return out.reshape(self.n_columns, *shape)

    def column(self, j: int) -> Floats:
        """One column of H."""
        return self._block(slice(0, self.n_rows), np.array([j]))[0]

    def _block(self, rows: Rows, columns: NDArray[np.intp]) -> Floats:
        part = self._X[rows]
        if issparse(part):
            part = part[:, self.features[columns]].toarray()
        else:
            part = part[:, self.features[columns]]
        block = np.array(part.T, np.float64, order="C")
        block -= self.centre[columns, None]
        block /= self.scale[columns, None]
        varies = getattr(self, "varies", None)
        if varies is not None and not varies[columns].all():
            block[~varies[columns]] = 0.0
        return block


class TreeDesign(_Blocks):
    """Trees as learners: the number of each row's leaf in each tree, and a table of the leaves' standardised values."""

    def __init__(self, trees: Trees, X: Any, sample_weight: ArrayLike | None = None) -> None:
        self.n_rows, self.n_columns = X.shape[0], len(trees)
        numbers, n_leaves = _leaf_numbers(trees)
        self._codes = np.zeros((self.n_columns, self.n_rows), np.uint8)
        for rows, part in _dense(X):
            kernels.leaf_codes(part, trees.table, trees.used, numbers, self._codes[:, rows])
        value = np.zeros((self.n_columns, n_leaves))
        tree = np.repeat(np.arange(self.n_columns), np.diff(trees.start))
        leaf = trees.is_leaf
        value[tree[leaf], numbers[leaf]] = trees.value[leaf]
        share = _shares(sample_weight, self.n_rows)
        mass = np.zeros((self.n_columns, n_leaves, 1))
        kernels.sum_by_leaf(self._codes, share[:, None], mass)
        mass = mass[:, :, 0]
        self.centre = np.einsum("tl,tl->t", mass, value)
        self.centre += np.einsum("tl,tl->t", mass, value - self.centre[:, None])
        away = np.where(mass > 0, value - self.centre[:, None], 0.0)
        largest = np.abs(away).max(axis=1, initial=0.0)
        self.varies = largest > CONSTANT * np.abs(self.centre)
        spread = np.sqrt(np.einsum("tl,tl->t", mass, (away / np.where(self.varies, largest, 1.0)[:, None]) ** 2))
        self.scale = np.where(self.varies, spread * largest, 1.0)
        self._value = np.where(self.varies[:, None], (value - self.centre[:, None]) / self.scale[:, None], 0.0)

    def scores(self, weights: ArrayLike) -> Floats:
        """H @ weights; columns whose weights are all zero are skipped."""
        table, shape = _table(weights, self.n_columns)
        used = np.flatnonzero(table.any(axis=1))
        out = np.zeros((self.n_rows, table.shape[1]))
        kernels.add_leaf_values(self._codes, used, self._value, np.ascontiguousarray(table[used]), out)
        return out.reshape(self.n_rows, *shape)

    def sums(self, values: ArrayLike) -> Floats:
        """H.T @ values."""
        table, shape = _table(values, self.n_rows)
        by_leaf = np.zeros((*self._value.shape, table.shape[1]))
        kernels.sum_by_leaf(self._codes, np.ascontiguousarray(table), by_leaf)
        return np.einsum("tl,tlk->tk", self._value, by_leaf).reshape(self.n_columns, *shape)

    def column(self, j: int) -> Floats:
        """One column of H."""
        return self._value[j][self._codes[j]]

    def _block(self, rows: Rows, columns: NDArray[np.intp]) -> Floats:
        block = np.empty((len(columns), self._codes[:1, rows].shape[1]))
        for i, j in enumerate(columns):
            np.take(self._value[j], self._codes[j, rows], out=block[i], mode="clip")
        return block


def _leaf_numbers(trees: Trees) -> tuple[NDArray[np.uint8], int]:
    """The number of each leaf among those of its tree, by place in the table, and the largest number of leaves."""
    leaf = trees.is_leaf
    before = np.concatenate([[0], np.cumsum(leaf)])
    counts = before[trees.start[1:]] - before[trees.start[:-1]]
    if counts.max(initial=0) > MAX_LEAVES:
        worst = int(np.argmax(counts))
        raise ValueError(
            f"Tree {worst} of the dictionary has {counts[worst]} leaves; at most {MAX_LEAVES} can be used, since a "
            "leaf's number is kept in one byte. Grow smaller trees (max_depth, max_leaf_nodes)."
        )
    first = np.repeat(before[trees.start[:-1]], np.diff(trees.start))
    return np.where(leaf, before[:-1] - first, 0).astype(np.uint8), int(counts.max(initial=1))


def _dense(X: Any) -> Iterator[tuple[slice, NDArray[Any]]]:
    """A matrix as it is; a sparse one as blocks of rows that are not."""
    if not issparse(X):
        yield slice(0, len(X)), X
        return
    lines, size = X.tocsr(), max(64, BLOCK_CELLS // max(1, X.shape[1]))
    for first in range(0, X.shape[0], size):
        rows = slice(first, min(first + size, X.shape[0]))
        yield rows, lines[rows].toarray()


def _shares(sample_weight: ArrayLike | None, n_rows: int) -> Floats:
    """Row weights that add up to one."""
    weight = np.ones(n_rows) if sample_weight is None else np.asarray(sample_weight, np.float64)
    return weight / weight.sum()


def _table(values: ArrayLike, n_lines: int) -> tuple[Floats, tuple[int, ...]]:
    """One or several columns as a table, and the shape that the answer has beside its lines."""
    given = np.asarray(values, np.float64)
    if len(given) != n_lines or given.ndim > 2:
        raise ValueError(f"Expected {n_lines} lines of one or several columns, got the shape {given.shape}.")
    return given.reshape(n_lines, math.prod(given.shape[1:])), given.shape[1:]
