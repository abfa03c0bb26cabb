"""The reduced SVM (Keerthi, Chapelle, DeCoste, JMLR 2006): a kernel SVM on a few training rows chosen one by one.

    min over α, b, J with |J| = m:   ½ αᵀK_JJ α + ½C Σ_i μ_i max(0, 1 − y_i(k(x_i, J) α + b))²

The next vector is the best of a few dozen rows drawn at random: the one whose own Newton step lowers the objective
most. All coefficients are found again whenever their number has doubled, and at the end. Several classes are taken each
against the rest; all share one J, and a candidate is judged by the sum over the classes. With selection="random" the
rows are drawn blindly: that is Nyström's features with a linear SVM.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.utils import check_random_state

from miserly._blas import blas_threads
from miserly._typing import Floats
from miserly.baselines._linear import calibrated, log_odds, signs
from miserly.costs import CostTable
from miserly.estimators import KernelClassifier, constraints, dense_rows
from miserly.plan import Node, Plan
from miserly.solvers import KernelFunction, newton_svm

JITTER = 1e-8


class ReducedSVC(KernelClassifier):
    """A kernel SVM with squared hinge loss on a few training rows chosen one by one.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the margin, above 0.
    gamma : float, "scale" or "auto", default="scale"
        Parameter of the kernel, above 0, or scikit-learn's rule for it.
    kernel : {"rbf", "poly"}, default="rbf"
        Kernel function.
    degree : int, default=3
        Degree of the polynomial kernel, 1 to 64.
    coef0 : float, default=0.0
        Constant of the polynomial kernel, 0 or more.
    n_vectors : int, default=20
        Training rows used, 1 or more.
    costs : CostTable or None, default=None
        Prices; without any, a row pays one unit per kernel evaluation.
    selection : {"greedy", "random"}, default="greedy"
        The best of a few candidates each time, or rows drawn blindly (Nyström's features).
    n_candidates : int, default=59
        Candidates tried for each vector, 1 or more.
    random_state : int, RandomState or None, default=0
        Seed of everything that is drawn.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    classes_ : ndarray
        The classes, in order.

    References
    ----------
    S. Keerthi, O. Chapelle, D. DeCoste. Building Support Vector Machines with Reduced Classifier Complexity. JMLR
    2006.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> from miserly.baselines import ReducedSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = ReducedSVC(n_vectors=5).fit(X, y)
    >>> model.predict_cost(X[:1])
    array([5.])
    """

    cost_axis = "n_vectors"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": [constraints.positive()],
        "gamma": [constraints.positive(), constraints.one_of("scale", "auto")],
        "kernel": [constraints.one_of("rbf", "poly")],
        "degree": [constraints.whole(1, 64)],
        "coef0": [constraints.not_negative()],
        "n_vectors": [constraints.at_least(1)],
        "costs": constraints.COSTS,
        "selection": [constraints.one_of("greedy", "random")],
        "n_candidates": [constraints.at_least(1)],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        C: float = 1.0,
        gamma: float | str = "scale",
        kernel: str = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        n_vectors: int = 20,
        costs: CostTable | None = None,
        selection: str = "greedy",
        n_candidates: int = 59,
        random_state: Any = 0,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.n_vectors = n_vectors
        self.costs = costs
        self.selection = selection
        self.n_candidates = n_candidates
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose vectors and find their coefficients; `sample_weight` multiplies the loss of a row."""
        X, codes, weights = self._fit_rows(X, y, sample_weight)
        targets = signs(self.classes_[codes], self.classes_)
        kernel = self._kernel(self._gamma_for(X))
        drawn = check_random_state(self.random_state).permutation(X.shape[0])
        m = min(int(self.n_vectors), X.shape[0])
        search = _Search(kernel, X, targets, weights, float(self.C))
        with blas_threads(X.shape[0] * m):
            if self.selection == "random":
                search.take(drawn[:m])
            else:
                search.choose(drawn, m, int(self.n_candidates))
        self.plan_ = self._one_node(kernel, search, log_odds(targets, weights))
        return self

    def _one_node(self, kernel: KernelFunction, search: _Search, prior: Floats) -> Plan:
        scale, offset = calibrated(search.scores, search.targets, search.weights)
        m, n_outputs = search.alpha.shape
        node = Node(
            np.arange(m, dtype=np.int32),
            search.alpha * scale,
            search.bias * scale + offset,
            tuple(range(n_outputs)),
            combine="replace",
        )
        return self._with_background(
            Plan(
                costs=self._table(),
                dictionary=kernel.dictionary(self._order, dense_rows(search.X[search.chosen])),
                nodes=(node,),
                prior=prior,
                link="logistic",
                classes=self.classes_,
                notes={"estimator": type(self).__name__},
            )
        )


class _Search:
    """The vectors chosen so far, their columns of the kernel matrix, and the scores of all rows."""

    def __init__(self, kernel: KernelFunction, X: Any, targets: Floats, weights: Floats, C: float) -> None:
        self.kernel, self.X, self.targets, self.weights, self.C = kernel, X, targets, weights, C
        self.chosen: list[int] = []
        self.columns = np.empty((X.shape[0], 0), order="F")
        self.alpha = np.empty((0, targets.shape[1]))
        self.bias = np.average(targets, axis=0, weights=weights)
        self.scores = np.repeat(self.bias[None], X.shape[0], axis=0)

    def take(self, rows: NDArray[np.intp]) -> None:
        """Use these rows, with the best coefficients."""
        self.chosen = [int(j) for j in rows]
        self.columns = np.asfortranarray(self.kernel.matrix(self.X, dense_rows(self.X[rows])))
        self.solve()

    def choose(self, drawn: NDArray[np.intp], m: int, n_candidates: int) -> None:
        """Take m rows, each the best of the next few in the order drawn; those that lost may be drawn again."""
        columns = np.empty((self.X.shape[0], m), order="F")
        waiting = [int(j) for j in drawn]
        solved = 0
        while len(self.chosen) < m:
            some, waiting = np.array(waiting[:n_candidates]), waiting[n_candidates:]
            K = self.kernel.matrix(self.X, dense_rows(self.X[some]))
            best, steps = self._best(some, K)
            waiting += [int(j) for j in some if j != some[best]]
            at = len(self.chosen)
            columns[:, at] = K[:, best]
            self.columns = columns[:, : at + 1]
            self.chosen.append(int(some[best]))
            self.alpha = np.vstack([self.alpha, steps])
            self.scores += np.outer(K[:, best], steps)
            if at + 1 >= 2 * solved or at + 1 == m:
                self.solve()
                solved = at + 1

    def _best(self, some: NDArray[np.intp], K: Floats) -> tuple[int, Floats]:
        """Which candidate lowers the objective most by a Newton step of its own, and the step for each output."""
        slack = np.maximum(1.0 - self.targets * self.scores, 0.0)
        residual = self.C * (self.weights[:, None] * self.targets * slack)
        own = K[some, np.arange(len(some))]
        gain_slope = K.T @ residual - self.columns[some] @ self.alpha
        curve = own[:, None] + self.C * ((K * K).T @ (self.weights[:, None] * (slack > 0)))
        curve = np.maximum(curve, JITTER)
        best = int(np.argmax((gain_slope**2 / curve).sum(axis=1)))
        return best, gain_slope[best] / curve[best]

    def solve(self) -> None:
        """All coefficients: with K_JJ = LLᵀ it is a linear SVM on the features k(x, J) L⁻ᵀ."""
        among = self.columns[self.chosen]
        among = (among + among.T) / 2.0
        among[np.diag_indices(len(among))] += JITTER * max(1.0, float(np.trace(among)) / len(among))
        factor = linalg.cholesky(among, lower=True)
        features = np.asfortranarray(linalg.solve_triangular(factor, self.columns.T, lower=True).T)
        found = [newton_svm(features, target, self.C, self.weights) for target in self.targets.T]
        w, self.bias = np.column_stack([w for w, _, _ in found]), np.array([b for _, b, _ in found])
        self.scores = features @ w + self.bias
        self.alpha = linalg.solve_triangular(factor.T, w, lower=False)
