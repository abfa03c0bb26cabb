"""Forward selection of columns for least squares, in Gram form: one row of Cholesky's factor per chosen column.

It is the same as orthogonalising columns one by one (incremental QR), but a step looks at the rows of the data only for
the Gram row of the column that it adds, and not at all once the whole matrix is known. Squaring the condition number is
paid for by leaving out columns that hardly differ from what the chosen ones span.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from miserly._typing import Floats, Rows
from miserly.solvers import Design

SINGULAR = 1e-10
MANY_ROWS = 0.1  # of all columns: by then the whole matrix is cheaper than more rows one by one


class GramMatrix:
    """Centred weighted products of all columns, known at once."""

    def __init__(self, matrix: Floats) -> None:
        self._matrix = matrix
        self.diagonal = np.diag(matrix)

    def row(self, j: int) -> Floats:
        """The products of one column with all."""
        return self._matrix[j]

    def block(self, columns: Rows) -> Floats:
        """The products of some columns with each other."""
        return self._matrix[np.ix_(columns, columns)]


class GramRows:
    """The same, made row by row as they are asked for; after many rows, all at once.

    A budget that pays for two of 500 columns needs two rows of the matrix, not 500.
    """

    def __init__(self, design: Design, share: Floats, means: Floats) -> None:
        self.design, self.share, self.means = design, share, means
        self.diagonal = design.squares(share) - means**2
        self._rows: dict[int, Floats] = {}
        self._whole: GramMatrix | None = None

    def row(self, j: int) -> Floats:
        """The products of one column with all."""
        if self._whole is None and len(self._rows) > MANY_ROWS * self.design.n_columns:
            self._whole = GramMatrix(centred(self.design.gram(self.share), self.means))
        if self._whole is not None:
            return self._whole.row(j)
        if j not in self._rows:
            products = self.design.sums(self.share * self.design.column(j))
            self._rows[j] = products - self.means[j] * self.means
        return self._rows[j]

    def block(self, columns: Rows) -> Floats:
        """The products of some columns with each other."""
        if self._whole is not None:
            return self._whole.block(columns)
        return self.design.gram(self.share, columns) - np.outer(self.means[columns], self.means[columns])


def centred(gram: Floats, means: Floats) -> Floats:
    """Products around the means, in place: the whole of means · meansᵀ would be a second Gram matrix."""
    for line, mean in zip(gram, means):
        line -= mean * means
    return gram


class Selection:
    """Columns chosen so far, and what each other one would still explain.

    `gram` (columns × columns) and `moment` (columns × outputs) are centred weighted means of products; `floor` says how
    small a column's variance may be before it is taken for none. With a `ridge`, all that is said of the mean squared
    error is said of it plus ridge · ‖coefficients‖².
    """

    def __init__(self, gram: GramMatrix | GramRows, moment: Floats, floor: Floats, ridge: float = 0.0) -> None:
        self.usable = gram.diagonal > np.maximum(floor, 0.0)
        self.gram, self.moment, self.ridge = gram, moment.copy(), ridge
        self.rest = gram.diagonal + ridge
        self._floor = np.maximum(floor, SINGULAR * self.rest)
        self.chosen: list[int] = []
        self._factor = np.zeros((8, len(self.rest)))
        self._right: list[Floats] = []

    def gains(self) -> Floats:
        """By how much each column alone would lower the mean squared error, summed over outputs."""
        gains = np.zeros(len(self.rest))
        at = self.usable
        gains[at] = (self.moment[at] ** 2).sum(axis=1) / self.rest[at]
        return gains

    def joint_gain(self, columns: Rows) -> float:
        """By how much some columns together would lower it."""
        if len(columns) == 1:
            j = columns[0]
            return float((self.moment[j] ** 2).sum() / self.rest[j]) if self.usable[j] else 0.0
        columns = columns[self.usable[columns]]
        above = self._factor[: len(self.chosen), columns]
        block = self.gram.block(columns)
        block[np.diag_indices_from(block)] += self.ridge
        block -= above.T @ above
        size, vectors = linalg.eigh(block, check_finite=False)
        kept = size > SINGULAR * size[-1]
        return float(((vectors[:, kept].T @ self.moment[columns]) ** 2 / size[kept, None]).sum())

    def add(self, j: int) -> None:
        """Choose a column."""
        k = len(self.chosen)
        if k == len(self._factor):
            self._factor = np.concatenate([self._factor, np.zeros_like(self._factor)])
        root = float(np.sqrt(self.rest[j]))
        row = self.gram.row(j).copy()
        row[j] += self.ridge
        row = (row - self._factor[:k, j] @ self._factor[:k]) / root
        right = self.moment[j] / root
        self._factor[k] = row
        self._right.append(right)
        self.chosen.append(j)
        self.moment -= row[:, None] * right
        self.rest -= row**2
        self.usable &= self.rest > self._floor
        self.usable[j] = False

    def explained(self) -> float:
        """By how much the chosen columns lower the mean squared error."""
        return float(sum((right**2).sum() for right in self._right))

    def coefficients(self) -> Floats:
        """Least squares on the chosen columns, chosen × outputs."""
        k = len(self.chosen)
        if not k:
            return np.zeros((0, self.moment.shape[1]))
        return np.asarray(linalg.solve_triangular(self._factor[:k, self.chosen], np.array(self._right)))
