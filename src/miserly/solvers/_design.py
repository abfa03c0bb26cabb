"""Designs: the standardised matrix of learner outputs that linear solvers work over, never held in memory for trees.

A solver sees a design only through sums over rows: scores, sums, Gram matrices, single columns. A dictionary of 3000
trees over 141,397 rows is one byte per row and tree (the number of the leaf), not eight; blocks of rows are decoded
when they are needed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from miserly._typing import Floats
from miserly.kernels import columns as dense_kernels
from miserly.kernels import leaves as kernels
from miserly.plan import Trees

logger = logging.getLogger(__name__)
Rows = slice | NDArray[np.intp]
BLOCK_CELLS = 1 << 21
MANY_CELLS = 1 << 20  # of a dense table: from here on sums in one pass are worth compiling
MAX_LEAVES = 255
CONSTANT = 8 * np.finfo(np.float64).eps
NOISE = 64 * np.finfo(np.float64).eps  # of its mean: a column that varies by less is lost in the rounding of products


class Design(Protocol):
    """H, rows × columns: (raw output − centre) / scale. A column that does not vary is zero, its scale is one.
    Raw features each have their own scale, trees a common one.

    All sums over rows that a solver makes go through these methods. Weights and values may have several columns. If the
    rows are `far`, their columns are not to be fetched: products are all that is asked for.
    """

    far: bool
    n_rows: int
    n_columns: int
    centre: Floats
    scale: Floats
    varies: NDArray[np.bool_]

    def scores(self, weights: ArrayLike) -> Floats:
        """H @ weights; columns whose weights are all zero are skipped."""
        ...

    def sums(self, values: ArrayLike, columns: ArrayLike | None = None) -> Floats:
        """H.T @ values for some columns, or all."""
        ...

    def gram(self, weight: ArrayLike, columns: ArrayLike | None = None) -> Floats:
        """H.T @ diag(weight) @ H for some columns, or all; rows without weight are not looked at."""
        ...

    def column(self, j: int) -> Floats:
        """One column of H."""
        ...

    def squares(self, share: Floats) -> Floats:
        """Σ share · value² of each column."""
        ...

    def close(self) -> None:
        """Let go of rows that are far."""
        ...


def raw_weights(design: Design, weights: ArrayLike, intercept: ArrayLike = 0.0) -> tuple[Floats, Floats]:
    """Weights and bias of a plan node, which reads learners as they are, from those of the standardised columns.

    `weights` are (columns,) or (columns, k), the intercept one number or k; columns that do not vary get no weight.
    """
    table, shape = as_table(weights, design.n_columns)
    raw = np.where(design.varies[:, None], table / design.scale[:, None], 0.0)
    used = np.flatnonzero(raw.any(axis=1))
    bias = np.asarray(intercept, np.float64) - design.centre[used] @ raw[used]
    return raw.reshape(design.n_columns, *shape), np.atleast_1d(bias)


class _Blocks:
    """What both kinds share: rows that are here, all or those of one partition, and everything done block by block.

    `standardise_with` says how columns are standardised, for which all rows must be asked first.
    """

    far = False
    n_rows: int
    n_columns: int
    centre: Floats
    scale: Floats
    varies: NDArray[np.bool_]

    def standardise_with(self, centre: Floats, scale: Floats, varies: NDArray[np.bool_]) -> None:
        """From now on columns are (raw output − centre) / scale, and zero where they do not vary."""
        self.centre, self.scale, self.varies = centre, scale, varies

    def scores(self, weights: ArrayLike) -> Floats:
        """H @ weights; columns whose weights are all zero are skipped."""
        table, shape = as_table(weights, self.n_columns)
        used = np.flatnonzero(table.any(axis=1))
        return self.products(used, table[used]).reshape(self.n_rows, *shape)

    def products(self, columns: NDArray[np.intp], table: Floats) -> Floats:
        """H @ weights, given those of some columns as a table."""
        raise NotImplementedError

    def gram(self, weight: ArrayLike, columns: ArrayLike | None = None) -> Floats:
        """H.T @ diag(weight) @ H for some columns, or all; rows without weight are not looked at."""
        w = np.asarray(weight, np.float64)
        chosen = self._chosen(columns)
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

    def close(self) -> None:
        """Nothing is to be let go of here."""

    def _chosen(self, columns: ArrayLike | None) -> NDArray[np.intp]:
        return np.arange(self.n_columns) if columns is None else np.asarray(columns, np.intp)

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


class RawRows(_Blocks):
    """Raw features as learners; the data stay where they are, in the precision they have, sparse if they are.

    `columns` says which features, in which order, are the columns; all as they stand if it is not given.
    """

    def __init__(self, X: Any, columns: ArrayLike | None = None) -> None:
        self._X = X.tocsr() if issparse(X) else X
        self.features = np.arange(X.shape[1]) if columns is None else np.asarray(columns, np.intp)
        self.n_rows, self.n_columns = X.shape[0], len(self.features)
        plain = type(X) is np.ndarray and X.dtype in (np.float32, np.float64) and X.flags.c_contiguous
        self._is_plain = plain and X.size >= MANY_CELLS

    def standardise_with(self, centre: Floats, scale: Floats, varies: NDArray[np.bool_]) -> None:
        """From now on columns are (raw value − centre) / scale, and zero where they do not vary."""
        super().standardise_with(centre, scale, varies)
        self._centre, self._inverse = np.zeros(self._X.shape[1]), np.zeros(self._X.shape[1])
        with np.errstate(over="ignore"):
            self._centre[self.features], self._inverse[self.features] = centre, np.where(varies, 1.0 / scale, 0.0)
        self._in_one_pass = self._is_plain and bool(np.isfinite(self._inverse).all())

    def totals(self, share: Floats) -> Floats:
        """Σ share · value of each column."""
        found = np.zeros(self.n_columns)
        for rows in self._pieces(None, self.n_columns):
            found += self._block(rows, np.arange(self.n_columns)) @ share[rows]
        return found

    def extent(self, share: Floats) -> Floats:
        """The largest and the negated smallest of each column, whatever the rows' shares; below them, the totals."""
        found = np.full((3, self.n_columns), -np.inf)
        found[2] = 0.0
        for rows in self._pieces(None, self.n_columns):
            block = self._block(rows, np.arange(self.n_columns))
            np.maximum(found[0], block.max(axis=1, initial=-np.inf), out=found[0])
            np.maximum(found[1], -block.min(axis=1, initial=np.inf), out=found[1])
            found[2] += block @ share[rows]
        return found

    def squares(self, share: Floats) -> Floats:
        """Σ share · value² of each column."""
        if self._in_one_pass:
            every = np.zeros(self._X.shape[1])
            dense_kernels.sum_squares(self._X, self._centre, self._inverse, share, every)
            return every[self.features]
        found = np.zeros(self.n_columns)
        for rows in self._pieces(share, self.n_columns):
            block = self._block(rows, np.arange(self.n_columns))
            found += (block * block) @ share[rows]
        return found

    def products(self, columns: NDArray[np.intp], table: Floats) -> Floats:
        """H @ weights, given those of some columns as a table."""
        out = np.zeros((self.n_rows, table.shape[1]))
        if len(columns):
            for rows in self._pieces(None, len(columns)):
                out[rows] = (table.T @ self._block(rows, columns)).T
        return out

    def sums(self, values: ArrayLike, columns: ArrayLike | None = None) -> Floats:
        """H.T @ values for some columns, or all."""
        table, shape = as_table(values, self.n_rows)
        if self._in_one_pass and columns is None:
            every = np.zeros((table.shape[1], self._X.shape[1]))
            dense_kernels.sum_products(self._X, self._centre, self._inverse, np.ascontiguousarray(table), every)
            return every[:, self.features].T.reshape(self.n_columns, *shape)
        chosen = self._chosen(columns)
        out = np.zeros((len(chosen), table.shape[1]))
        present = np.asarray(table.any(axis=1), np.float64)
        for rows in self._pieces(present, len(chosen)):
            out += self._block(rows, chosen) @ table[rows]
        return out.reshape(len(chosen), *shape)

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
        if not self.varies[columns].all():
            block[~self.varies[columns]] = 0.0
        return block


class RawDesign(RawRows):
    """All rows of raw features, standardised."""

    def __init__(self, X: Any, sample_weight: ArrayLike | None = None, columns: ArrayLike | None = None) -> None:
        super().__init__(X, columns)
        standardise_features(self, shares(sample_weight, self.n_rows))


def standardise_features(design: Any, share: Floats) -> None:
    """Standardise a design of raw features, local or remote, by its `totals`, `extent` and `squares`."""
    zero, one, every = np.zeros(design.n_columns), np.ones(design.n_columns), np.ones(design.n_columns, bool)
    design.standardise_with(zero, one, every)
    mean = design.totals(share)
    design.standardise_with(mean, one, every)
    high, below, rest = design.extent(share)
    largest, spread = np.maximum(high, below), high + below
    varies = spread > NOISE * np.abs(mean)
    for j in np.flatnonzero(~varies & (spread > 0))[:1]:
        what = (
            "Column %d (from 0) varies by %.3g around %.3g, less than rounding: it is taken as constant. Subtract %.3g."
        )
        logger.warning(what, design.features[j] if hasattr(design, "features") else j, spread[j], mean[j], mean[j])
    centre, scale = mean + rest, np.where(varies, largest, 1.0)
    design.standardise_with(centre, scale, varies)
    square = design.squares(share)
    varies = varies & (square > 0)
    design.standardise_with(centre, np.where(varies, scale * np.sqrt(square), 1.0), varies)


class TreeRows(_Blocks):
    """Trees as learners: the number of each row's leaf in each tree, and a table of the leaves' standardised values."""

    def __init__(self, trees: Trees, X: Any) -> None:
        self.n_rows, self.n_columns = X.shape[0], len(trees)
        numbers, _ = _leaf_numbers(trees)
        self._codes = np.zeros((self.n_columns, self.n_rows), np.uint8)
        for rows, part in _dense(X):
            kernels.leaf_codes(part, trees.table, trees.used, numbers, self._codes[:, rows])
        self._raw = leaf_values(trees)

    def standardise_with(self, centre: Floats, scale: Floats, varies: NDArray[np.bool_]) -> None:
        """From now on columns are (raw output − centre) / scale, and zero where they do not vary."""
        super().standardise_with(centre, scale, varies)
        self._value = np.where(varies[:, None], (self._raw - centre[:, None]) / scale[:, None], 0.0)

    def mass(self, share: Floats) -> Floats:
        """The shares of the rows in each leaf, tree × leaf."""
        found = np.zeros((*self._raw.shape, 1))
        kernels.sum_by_leaf(self._codes, share[:, None], found)
        return found[:, :, 0]

    def squares(self, share: Floats) -> Floats:
        """Σ share · value² of each column."""
        return np.einsum("tl,tl->t", self.mass(share), self._value**2)

    def products(self, columns: NDArray[np.intp], table: Floats) -> Floats:
        """H @ weights, given those of some columns as a table."""
        out = np.zeros((self.n_rows, table.shape[1]))
        kernels.add_leaf_values(self._codes, columns, self._value, np.ascontiguousarray(table), out)
        return out

    def sums(self, values: ArrayLike, columns: ArrayLike | None = None) -> Floats:
        """H.T @ values for some columns, or all."""
        table, shape = as_table(values, self.n_rows)
        codes, value = self._codes, self._value
        if columns is not None:
            chosen = self._chosen(columns)
            codes, value = codes[chosen], value[chosen]
        by_leaf = np.zeros((*value.shape, table.shape[1]))
        kernels.sum_by_leaf(codes, np.ascontiguousarray(table), by_leaf)
        return np.einsum("tl,tlk->tk", value, by_leaf).reshape(len(codes), *shape)

    def column(self, j: int) -> Floats:
        """One column of H."""
        return self._value[j][self._codes[j]]

    def _block(self, rows: Rows, columns: NDArray[np.intp]) -> Floats:
        block = np.empty((len(columns), self._codes[:1, rows].shape[1]))
        for i, j in enumerate(columns):
            np.take(self._value[j], self._codes[j, rows], out=block[i], mode="clip")
        return block


class TreeDesign(TreeRows):
    """All rows in the leaves of trees, standardised."""

    def __init__(self, trees: Trees, X: Any, sample_weight: ArrayLike | None = None) -> None:
        super().__init__(trees, X)
        standardise_trees(self, trees, shares(sample_weight, self.n_rows))


def standardise_trees(design: Any, trees: Trees, share: Floats) -> None:
    """Standardise a design of trees, local or remote, by its `mass`.

    All have the scale of the one that varies most: a boosted tree that says little takes a large weight to say much.
    """
    mass, value = design.mass(share), leaf_values(trees)
    centre = np.einsum("tl,tl->t", mass, value)
    centre += np.einsum("tl,tl->t", mass, value - centre[:, None])
    away = np.where(mass > 0, value - centre[:, None], 0.0)
    largest = np.abs(away).max(axis=1, initial=0.0)
    varies = largest > CONSTANT * np.abs(centre)
    std = np.sqrt(np.einsum("tl,tl->t", mass, (away / np.where(varies, largest, 1.0)[:, None]) ** 2))
    common = np.max(std * largest, where=varies, initial=0.0)
    design.standardise_with(centre, np.where(varies, common, 1.0), varies)


def leaf_values(trees: Trees) -> Floats:
    """What each leaf says, tree × number of the leaf."""
    numbers, n_leaves = _leaf_numbers(trees)
    value = np.zeros((len(trees), n_leaves))
    tree, leaf = np.repeat(np.arange(len(trees)), np.diff(trees.start)), trees.is_leaf
    value[tree[leaf], numbers[leaf]] = trees.value[leaf]
    return value


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


def shares(sample_weight: ArrayLike | None, n_rows: int) -> Floats:
    """Row weights that add up to one."""
    weight = np.ones(n_rows) if sample_weight is None else np.asarray(sample_weight, np.float64)
    return weight / weight.sum()


def as_table(values: ArrayLike, n_lines: int) -> tuple[Floats, tuple[int, ...]]:
    """One or several columns as a table, and the shape that the answer has beside its lines."""
    given = np.asarray(values, np.float64)
    if len(given) != n_lines or given.ndim > 2:
        raise ValueError(f"Expected {n_lines} lines of one or several columns, got the shape {given.shape}.")
    return given.reshape(n_lines, math.prod(given.shape[1:])), given.shape[1:]
