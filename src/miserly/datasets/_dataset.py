"""A table of data together with its prices and, for ranking, its queries."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from miserly.costs import CostTable


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows X with targets y, the price of every column and, for ranking, the query of every row.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The values.
    y : ndarray of shape (n_rows,)
        Targets.
    costs : CostTable
        One price per column, in their order, or `CostTable.uniform()`.
    qid : ndarray of shape (n_rows,), default=None
        Query of each row.
    name : str, default=""
        What messages call it.

    Examples
    --------
    >>> import numpy as np
    >>> data = Dataset(np.zeros((4, 2)), np.arange(4), CostTable.uniform())
    >>> [len(part.y) for part in data.split(0.5, 0.5, seed=0)]
    [2, 2]
    """

    X: np.ndarray
    y: np.ndarray
    costs: CostTable
    qid: np.ndarray | None = None
    name: str = ""

    def __post_init__(self) -> None:
        for what, rows in (("y", self.y), ("qid", self.qid)):
            if rows is not None and len(rows) != len(self.X):
                raise ValueError(
                    f"Dataset {self.name!r}: {what} has {len(rows)} rows, X has {len(self.X)}. "
                    "Give one value per row of X."
                )
        n_priced = len(self.costs.features)
        if n_priced not in (0, self.X.shape[1]):
            raise ValueError(
                f"Dataset {self.name!r}: the costs price {n_priced} features, X has {self.X.shape[1]} columns. "
                "Give one feature per column, in their order."
            )

    def split(self, *shares: float, seed: int) -> tuple["Dataset", ...]:
        """Disjoint random parts of these shares, by whole queries when there are any, rows in their order.

        Parameters
        ----------
        *shares : float
            Shares above 0 that sum to 1 or less; what they leave is left out.
        seed : int
            Seed of the draw.

        Returns
        -------
        tuple of Dataset
            One per share.
        """
        if not shares or min(shares) <= 0 or sum(shares) > 1 + 1e-9:
            raise ValueError(
                f"split takes shares above 0 that sum to 1 or less, got {shares}. "
                "For example split(0.6, 0.2, 0.2, seed=0)."
            )
        labels = np.arange(len(self.X)) if self.qid is None else self.qid
        distinct, units = np.unique(labels, return_inverse=True)
        n_units = len(distinct)
        bounds = np.rint(np.cumsum((0.0, *shares)) * n_units).astype(int)
        if np.diff(bounds).min() < 1:
            raise ValueError(
                f"split of {n_units} {'rows' if self.qid is None else 'queries'} into shares {shares} leaves a part "
                "empty. Use larger shares or more data."
            )
        place = np.random.default_rng(seed).permutation(n_units)[units]
        return tuple(self._take((place >= low) & (place < high)) for low, high in pairwise(bounds))

    def _take(self, rows: np.ndarray) -> "Dataset":
        qid = None if self.qid is None else self.qid[rows]
        return replace(self, X=self.X[rows], y=self.y[rows], qid=qid)
