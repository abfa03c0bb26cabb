"""Windows: some rows of some columns of a design, seen only through products, so that they may be remote.

Where the columns are here, a window is an array; where they are far, it is a name for questions to the design.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from miserly._typing import Floats
from miserly.solvers._design import Design

Places = NDArray[np.intp] | NDArray[np.bool_]


class Window(Protocol):
    """Z, rows × columns."""

    def scores(self, weights: Floats) -> Floats:
        """Z @ weights."""
        ...

    def sums(self, values: Floats) -> Floats:
        """Z.T @ values."""
        ...

    def gram(self, weight: Floats) -> Floats:
        """Z.T @ diag(weight) @ Z."""
        ...

    def bordered(self, weight: Floats) -> Floats:
        """The Gram matrix of Z with a column of ones at its end; no weight is negative."""
        ...

    def around(self, centre: Floats) -> Window:
        """Z − centre."""
        ...

    def part(self, rows: Places | None = None, columns: Places | None = None) -> Window:
        """Some rows, some columns."""
        ...


class Held:
    """A window whose values are here."""

    def __init__(self, values: Floats) -> None:
        self.values = values

    def scores(self, weights: Floats) -> Floats:
        return np.asarray(self.values @ weights)

    def sums(self, values: Floats) -> Floats:
        return np.asarray(self.values.T @ values)

    def gram(self, weight: Floats) -> Floats:
        return np.asarray(self.values.T @ (self.values * weight[:, None]))

    def bordered(self, weight: Floats) -> Floats:
        root = np.sqrt(weight)
        lines = np.column_stack([self.values * root[:, None], root])
        return np.asarray(lines.T @ lines)

    def around(self, centre: Floats) -> Held:
        return Held(self.values - centre)

    def part(self, rows: Places | None = None, columns: Places | None = None) -> Held:
        if rows is None or columns is None:
            return Held(self.values[:, columns] if rows is None else self.values[rows])
        return Held(self.values[np.ix_(rows, columns)])


class Asked:
    """A window on a design that is far: one number per row and column of the answer comes and goes, never Z itself."""

    def __init__(
        self,
        design: Design,
        columns: NDArray[np.intp],
        rows: NDArray[np.intp] | None = None,
        centre: Floats | None = None,
    ) -> None:
        self.design, self.columns = design, columns
        self.rows = np.arange(design.n_rows) if rows is None else rows
        self.centre = np.zeros(len(columns)) if centre is None else centre
        self._last: tuple[Floats, Floats] | None = None

    def scores(self, weights: Floats) -> Floats:
        """The last answer is kept: value and slope at one place ask for the same."""
        if self._last is None or not np.array_equal(self._last[0], weights):
            table = np.zeros((self.design.n_columns, *weights.shape[1:]))
            table[self.columns] = weights
            self._last = weights.copy(), self.design.scores(table)[self.rows] - self.centre @ weights
        return self._last[1]

    def sums(self, values: Floats) -> Floats:
        found = self.design.sums(self._scattered(values), self.columns)
        return found - np.multiply.outer(self.centre, values.sum(axis=0))

    def gram(self, weight: Floats) -> Floats:
        return self.bordered(weight)[:-1, :-1]

    def bordered(self, weight: Floats) -> Floats:
        scattered, m = self._scattered(weight), len(self.columns)
        found, centre = np.zeros((m + 1, m + 1)), self.centre
        total, sums = float(weight.sum()), self.design.sums(scattered, self.columns)
        found[:m, :m] = self.design.gram(scattered, self.columns)
        found[:m, :m] -= np.outer(sums, centre) + np.outer(centre, sums) - total * np.outer(centre, centre)
        found[:m, m] = found[m, :m] = sums - total * centre
        found[m, m] = total
        return found

    def around(self, centre: Floats) -> Asked:
        return Asked(self.design, self.columns, self.rows, self.centre + centre)

    def part(self, rows: Places | None = None, columns: Places | None = None) -> Asked:
        kept = slice(None) if columns is None else columns
        mine = self.rows if rows is None else self.rows[rows]
        return Asked(self.design, self.columns[kept], mine, self.centre[kept])

    def _scattered(self, values: Floats) -> Floats:
        """Values of the window's rows among zeros for all others."""
        scattered = np.zeros((self.design.n_rows, *values.shape[1:]))
        scattered[self.rows] = values
        return scattered
