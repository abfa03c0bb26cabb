"""What kernel machines share: finite rows in an order of columns that depends on their values, a kernel, prices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from miserly._typing import Floats
from miserly.costs import CostTable
from miserly.estimators._base._base import PlanClassifier
from miserly.estimators._base._dictionary import order_by_content
from miserly.solvers import RBF, Chi2, KernelFunction, Polynomial

LEAST = 1e-300  # of a kernel's value, of which the logarithm is taken


class KernelClassifier(PlanClassifier):
    """A classifier with the parameters `gamma`, `kernel`, `degree`, `coef0` and, if features have prices, `costs`."""

    gamma: float | str
    kernel: str
    degree: int
    coef0: float
    costs: CostTable | None
    _order: NDArray[np.intp]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, NDArray[np.intp], Floats]:
        """Checked rows, the numbers of their classes, their weights; sparse rows stay sparse."""
        X, y, weight = self._fit_data(X, y, sample_weight, y_numeric=False)
        if self.categories_:
            raise ValueError(
                f"A kernel cannot read categories as numbers: {sorted(self.categories_)}. Give one column per category "
                "(sklearn.preprocessing.OneHotEncoder) that all need one acquisition."
            )
        if self.kernel == "chi2" and X.min() < 0:
            raise ValueError(
                f"The chi-squared kernel compares counts or shares, which are 0 or more; X has {X.min():g}. Scale the "
                "columns (sklearn.preprocessing.MinMaxScaler) or take kernel='rbf'."
            )
        self.classes_ = self._find_classes(y)
        self._order = order_by_content(X)
        X = X.tocsr()[:, self._order] if issparse(X) else np.ascontiguousarray(X[:, self._order], np.float64)
        return X, np.searchsorted(self.classes_, y), np.ones(len(y)) if weight is None else weight

    def suggest_grid(self, y: Any, n_points: int = 8, sample_weight: Any = None) -> np.ndarray:
        """Numbers of vectors from two to a fifth of the rows."""
        return np.unique(np.geomspace(2.0, max(4.0, 0.2 * len(y)), n_points).astype(int))

    def _gamma_for(self, X: Any) -> float:
        """Gamma as scikit-learn understands it."""
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        if self.kernel == "chi2" and self.gamma == "scale":  # one over the mean distance to the mean row
            far = -float(np.log(np.maximum(Chi2(1.0).matrix(X, X.mean(axis=0).reshape(1, -1)), LEAST)).mean())
            return 1.0 / far if far > 0 else 1.0
        variance = 1.0
        if self.gamma == "scale":
            variance = float(X.multiply(X).mean() - X.mean() ** 2) if issparse(X) else float(X.var())
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0

    def _kernel(self, gamma: float) -> KernelFunction:
        if self.kernel == "poly":
            return Polynomial(gamma, float(self.coef0), int(self.degree))
        return Chi2(gamma) if self.kernel == "chi2" else RBF(gamma)

    def _table(self) -> CostTable:
        """The user's prices; without any, a row pays one unit per kernel evaluation and nothing for its values."""
        if self.costs is not None:
            return self._bound_costs()
        names = getattr(self, "feature_names_in_", None)
        features = [f"x{i}" for i in range(self.n_features_in_)] if names is None else [str(n) for n in names]
        return CostTable(
            features=tuple(features),
            needs=dict.fromkeys(features, ("row",)),
            prices={"row": 0.0},
            evaluation=1.0,
            unit="kernel evaluations",
            named=names is not None,
        )


def dense_rows(rows: Any) -> Floats:
    """Rows of a matrix as an array, sparse or not."""
    return np.asarray(rows.toarray() if issparse(rows) else rows, np.float64)
