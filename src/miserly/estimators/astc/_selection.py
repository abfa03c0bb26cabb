"""Forward selection of columns for least squares, in Gram form: one row of Cholesky's factor per chosen column.

It is the same as orthogonalising columns one by one (incremental QR), but after the Gram matrix no step looks at the
rows of the data again. Squaring the condition number is paid for by leaving out columns that hardly differ from what
the chosen ones span.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from miserly._typing import Floats

SINGULAR = 1e-10


class Selection:
    """Columns chosen so far, and what each other one would still explain.

    `gram` (columns × columns) and `moment` (columns × outputs) are centred weighted means of products; `floor` says how
    small a column's variance may be before it is taken for none. With a `ridge`, all that is said of the mean squared
    error is said of it plus ridge · ‖coefficients‖².
    """

    def __init__(self, gram: Floats, moment: Floats, floor: Floats, ridge: float = 0.0) -> None:
        self.usable = np.diag(gram) > np.maximum(floor, 0.0)
        self.gram, self.moment, self.ridge = gram, moment.copy(), ridge
        self.rest = np.diag(gram) + ridge
        self._floor = np.maximum(floor, SINGULAR * self.rest)
        self.chosen: list[int] = []
        self._factor = np.zeros((8, len(gram)))
        self._right: list[Floats] = []

    def gains(self) -> Floats:
        """By how much each column alone would lower the mean squared error, summed over outputs."""
        gains = np.zeros(len(self.rest))
        at = self.usable
        gains[at] = (self.moment[at] ** 2).sum(axis=1) / self.rest[at]
        return gains

    def joint_gain(self, columns: NDArray[np.intp]) -> float:
        """By how much some columns together would lower it."""
        if len(columns) == 1:
            j = columns[0]
            return float((self.moment[j] ** 2).sum() / self.rest[j]) if self.usable[j] else 0.0
        columns = columns[self.usable[columns]]
        above = self._factor[: len(self.chosen), columns]
        block = self.gram[np.ix_(columns, columns)]
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
        row = self.gram[j].copy()
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
