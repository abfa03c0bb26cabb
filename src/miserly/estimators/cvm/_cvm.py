"""CVM, the compressed vector machine (Xu, thesis 2014, chapter 4): a kernel SVM that says the same with few vectors.

An SVM is trained as usual (LibSVM by scikit-learn), or given. A few of its support vectors are picked by least angle
regression on the SVM's own objective, then these vectors and their coefficients are moved to minimise

    Σ_i (k(x_i, Z) α + b − f(x_i))²     over Z, α, b, at the training rows x_i, f the full machine    (4.10).

At its support vectors alone, which the thesis leaves open, the small machine is free everywhere else (page-blocks at
1 % of the vectors: .72 to .93 correct instead of .96). Where there are many more rows than support vectors, these and a
weighted sample of the others stand for all.

A row costs one kernel evaluation per vector, whatever the number of classes: all pairs of classes share one pool.
Ours: several starts, variable projection, calibrated probabilities, and machines nested in each other as a cascade in
which easy rows leave after few vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.sparse import issparse
from sklearn.svm import SVC
from sklearn.utils import check_random_state

from miserly._blas import blas_threads
from miserly._typing import Floats
from miserly.costs import CostTable
from miserly.estimators._base import KernelClassifier, constraints, dense_rows
from miserly.estimators.cvm._compression import Compression, Points
from miserly.estimators.cvm._kernel_machine import KernelMachine, from_svc
from miserly.estimators.cvm._libsvm import read_libsvm, write_libsvm
from miserly.estimators.cvm._matching import Moved
from miserly.plan import EXIT, Gate, Node, Plan, probabilities
from miserly.solvers import common_temperature, temperature

RATIO = 0.1
HELD_OUT = 0.2
MOST_HELD_OUT = 2000
GROWTH = 3.0
FEWEST_POINTS, POINTS_PER_VECTOR = 4000, 4  # rows beside the support vectors: more cost time and change nothing
CACHE_MB, BYTES = 500, 8
C_GRID = (0.1, 1.0, 10.0, 100.0, 1000.0)
GAMMA_GRID = (0.125, 0.5, 2.0, 8.0)


@dataclass(frozen=True)
class PathPoint:
    """A machine on the path: its size, how far its scores are from the full machine's (squared, as a share), its
    accuracy and how often it agrees with the full machine on the rows given, and its plan."""

    n_vectors: int
    distance: float
    accuracy: float
    agreement: float
    plan: Plan


class CompressedSVC(KernelClassifier):
    """A kernel SVM compressed to a few vectors.

    The full SVM is trained as usual; a few of its support vectors are picked and moved until they say what it says
    at the training rows. A row costs one kernel evaluation per vector.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the margin, above 0.
    gamma : float, "scale" or "auto", default="scale"
        Parameter of the kernel, above 0, or scikit-learn's rule for it.
    kernel : {"rbf", "poly", "chi2"}, default="rbf"
        Kernel function. "chi2" is exp(−γ Σ (x − z)² / (x + z)), for counts and histograms, 0 or more; "scale" is then
        one over the mean distance to the mean row.
    degree : int, default=3
        Degree of the polynomial kernel, 1 to 64.
    coef0 : float, default=0.0
        Constant of the polynomial kernel, 0 or more.
    n_vectors : int or None, default=None
        Vectors of the small machine, 1 or more. At most one of `n_vectors`, `ratio` and `budget` is given.
    ratio : float in (0, 1] or None, default=None
        The same as a share of the support vectors; a tenth if nothing is given.
    costs : CostTable or None, default=None
        Prices; without any, a row pays one unit per kernel evaluation.
    budget : float or None, default=None
        What a row may pay at `costs`, 0 or more: all features, then as many vectors as are left.
    tune : bool, default=False
        Whether C and gamma are chosen on a held-out fifth.
    init : {"lars", "random"}, default="lars"
        How the first vectors are picked.
    n_starts : int or None, default=None
        More starts from random support vectors, 0 or more; None is 16 for up to 16 vectors, else 4.
    max_iter : int, default=200
        Most iterations of moving, 0 or more; with 0 vectors stay where they are.
    n_stages : int, default=1
        Machines nested in each other, 1 or more: easy rows leave after few vectors.
    confidence : float in [0, 1], default=0.95
        Probability of its best class at which a row leaves.
    max_memory : float, default=1073741824.0
        Bytes of the matrices, above 0; if more are needed, fewer rows are matched and a warning says so.
    random_state : int, RandomState or None, default=0
        Seed of everything that is drawn.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    classes_ : ndarray
        The classes, in order.
    n_vectors_ : int
        Vectors of the small machine.
    n_targets_ : int
        Rows at which it was matched.
    agreement_ : float or None
        How often it decides as the full machine on rows matched that are no support vectors.
    full_ : KernelMachine
        The full machine.
    C_, gamma_ : float
        Parameters used.
    losses_ : tuple of float
        What was minimised, on the way.

    References
    ----------
    Z. Xu. Supervised Machine Learning Under Test-Time Resource Constraints. Thesis, 2014, chapter 4, equations
    (4.1) to (4.10).

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = ms.CompressedSVC(n_vectors=5, max_iter=20).fit(X, y)
    >>> model.predict_cost(X[:1])
    array([5.])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": [constraints.positive()],
        "gamma": [constraints.positive(), constraints.one_of("scale", "auto")],
        "kernel": [constraints.one_of("rbf", "poly", "chi2")],
        "degree": [constraints.whole(1, 64)],
        "coef0": [constraints.not_negative()],
        "n_vectors": [constraints.at_least(1), None],
        "ratio": [constraints.share(), None],
        "costs": constraints.COSTS,
        "budget": [constraints.not_negative(), None],
        "tune": ["boolean"],
        "init": [constraints.one_of("lars", "random")],
        "n_starts": [constraints.at_least(0), None],
        "max_iter": [constraints.at_least(0)],
        "n_stages": [constraints.at_least(1)],
        "confidence": [constraints.limits(0.0, 1.0)],
        "max_memory": [constraints.positive()],
        "random_state": ["random_state"],
    }
    full_: KernelMachine

    def __init__(
        self,
        C: float = 1.0,
        gamma: float | str = "scale",
        kernel: str = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        n_vectors: int | None = None,
        ratio: float | None = None,
        costs: CostTable | None = None,
        budget: float | None = None,
        tune: bool = False,
        init: str = "lars",
        n_starts: int | None = None,
        max_iter: int = 200,
        n_stages: int = 1,
        confidence: float = 0.95,
        max_memory: float = 2.0**30,
        random_state: Any = 0,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.n_vectors = n_vectors
        self.ratio = ratio
        self.costs = costs
        self.budget = budget
        self.tune = tune
        self.init = init
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.n_stages = n_stages
        self.confidence = confidence
        self.max_memory = max_memory
        self.random_state = random_state

    @property
    def cost_axis(self) -> str:  # type: ignore[override]
        """What trades quality for cost: the budget if there is one, else the number of vectors."""
        return "n_vectors" if self.budget is None else "budget"

    def suggest_grid(self, y: Any, n_points: int = 8, sample_weight: Any = None) -> np.ndarray:
        """Numbers of vectors from two to a fifth of the rows, or budgets up to the one given."""
        if self.budget is not None:
            return np.geomspace(self.budget / 64.0, self.budget, n_points)
        return super().suggest_grid(y, n_points, sample_weight)

    # ---- making one -------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the full machine, and compress it.

        Parameters
        ----------
        X : array-like, sparse matrix, frame of shape (n_rows, n_features)
            Training rows.
        y : array-like of shape (n_rows,)
            Labels.
        sample_weight : array-like or None, default=None
            Weights of the rows, 0 or more.

        Returns
        -------
        self
        """
        X, codes, weight = self._fit_rows(X, y, sample_weight)
        self._check_sizes()
        rng = check_random_state(self.random_state)
        known, new = _parted(codes, rng)
        scale = self._gamma_for(X)
        self.C_, self.gamma_, honest = float(self.C), scale, None
        if self.tune:
            self.C_, self.gamma_, honest = self._tuned(X, codes, weight, known, new, scale)
        full, support = self._trained(X, codes, weight, self.C_, self.gamma_)
        if len(new) and honest is None:
            honest, _ = self._trained(X[known], codes[known], weight[known], self.C_, self.gamma_)
        shares = np.bincount(codes, weight).astype(np.float64)
        points = _points(X, codes, weight, support, rng)
        with blas_threads(X.shape[0] * X.shape[1]):
            return self._compress(full, (X[new], codes[new], honest), shares, rng, points)

    @classmethod
    def from_sklearn(cls, svc: SVC, X: Any = None, **parameters: Any) -> Self:
        """Compress a fitted scikit-learn SVC. Probabilities are not calibrated before `calibrate` is called.

        Parameters
        ----------
        svc : SVC
            Fitted, with an RBF or polynomial kernel.
        X : array-like or None, default=None
            Rows like those that will come, best the training rows: the small machine is matched there. Without them it
            is matched at the support vectors alone, and may go astray between them.
        **parameters
            Parameters of the class.

        Returns
        -------
        CompressedSVC
        """
        model = cls(**parameters)
        names = getattr(svc, "feature_names_in_", None)
        if names is not None:
            model.feature_names_in_ = names
        return model._given(from_svc(svc), np.asarray(svc.classes_), float(svc.C), X)

    @classmethod
    def from_libsvm(cls, path: str | Path, n_features: int | None = None, X: Any = None, **parameters: Any) -> Self:
        """Compress the machine in a model file of LibSVM. Columns are LibSVM's indices less one; `n_features` says how
        many there are if the last ones are zero in all support vectors. `classes_` keep the order of the file."""
        machine, classes = read_libsvm(path, n_features)
        return cls(**parameters)._given(machine, classes, float(np.abs(machine.coef).max()), X)

    def _given(self, machine: KernelMachine, classes: np.ndarray, C: float, X: Any) -> Self:
        self._validate_params()
        self._check_sizes()
        self.categories_ = {}
        self.classes_, self.C_, self.gamma_ = classes, C, machine.kernel.gamma
        self.n_features_in_ = int(machine.vectors.shape[1])
        self._order = np.arange(self.n_features_in_)
        shares = np.ones(len(classes)) if machine.counts is None else np.array(machine.counts, float)
        rng, points = check_random_state(self.random_state), None
        if X is not None:
            X = self._checked(X)
            X = X if issparse(X) else np.asarray(X, np.float64)
            points = _points(X, _answers(machine, X), np.ones(X.shape[0]), np.zeros(0, np.intp), rng)
            points = _with_vectors(points, machine)
        return self._compress(machine, None, shares, rng, points)

    def to_libsvm(self, path: str | Path) -> None:
        """Write the compressed machine as a model file of LibSVM (of a cascade: its last stage)."""
        kernels = self._fitted_plan().dictionary
        node = self.plan_.nodes[-1]
        vectors = np.zeros((len(kernels), self.n_features_in_))
        vectors[:, kernels.columns] = kernels.vectors  # type: ignore[attr-defined]
        pool = KernelMachine(self.full_.kernel, vectors, node.weights, node.bias, len(self.classes_))
        write_libsvm(pool, self.classes_, path)

    # ---- training ---------------------------------------------------------------------------------------------

    def _check_sizes(self) -> None:
        given = [name for name in ("n_vectors", "ratio", "budget") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"The size is said {len(given)} times: {', '.join(given)}. Give one of them.")
        if self.budget is not None and self.costs is None:
            raise ValueError("A budget needs prices: costs=CostTable.per_feature(..., evaluation=...).")

    def _trained(
        self, X: Any, codes: np.ndarray, weight: Floats, C: float, gamma: float
    ) -> tuple[KernelMachine, np.ndarray]:
        """The full machine, and which rows are its vectors. LibSVM takes the chi-squared kernel as a matrix."""
        if self.kernel == "chi2":
            if BYTES * X.shape[0] ** 2 > self.max_memory:
                raise ValueError(
                    f"The chi-squared kernel holds the matrix of {X.shape[0]} training rows, which needs "
                    f"{BYTES * X.shape[0] ** 2:.3g} bytes: raise max_memory={self.max_memory:.3g}, or take fewer rows."
                )
            kernel = self._kernel(gamma)
            svc = SVC(C=C, kernel="precomputed", cache_size=CACHE_MB).fit(kernel.matrix(X, X), codes, weight)
            return from_svc(svc, kernel, X), svc.support_
        svc = SVC(C=C, gamma=gamma, kernel=self.kernel, degree=self.degree, coef0=self.coef0, cache_size=CACHE_MB)
        return from_svc(svc.fit(X, codes, weight)), svc.support_

    def _tuned(
        self, X: Any, codes: np.ndarray, weight: Floats, known: np.ndarray, new: np.ndarray, scale: float
    ) -> tuple[float, float, KernelMachine | None]:
        """The C and gamma that get most of a held-out fifth right, and the machine that did."""
        if not len(new):
            raise ValueError("tune=True holds out a fifth of each class: there are fewer than five rows of each.")
        best: tuple[float, float, float, Any] = (-1.0, 0.0, 0.0, None)
        self.tuning_: list[dict[str, float]] = []
        for C in C_GRID:
            for factor in GAMMA_GRID:
                machine, _ = self._trained(X[known], codes[known], weight[known], C, factor * scale)
                right = float(np.average(_answers(machine, X[new]) == codes[new], weights=weight[new]))
                self.tuning_.append({"C": C, "gamma": factor * scale, "accuracy": right})
                if right > best[0]:
                    best = (right, C, factor * scale, machine)
        return best[1], best[2], best[3]

    def _compress(self, machine: KernelMachine, held_out: Any, shares: Floats, rng: Any, points: Points | None) -> Self:
        self.full_ = machine
        self._shares, self._costs_bound = shares, self._table()
        m = self._size(len(machine))
        self._compression = Compression(
            machine,
            self.C_,
            self.init,
            self.n_starts,
            self.max_iter,
            float(self.max_memory),
            rng.randint(2**31),
            points,
        )
        self.n_vectors_, self.n_targets_ = m, len(machine)
        if m >= len(machine) and self.n_stages == 1:
            moved = [Moved(dense_rows(machine.vectors), machine.coef, machine.bias, (0.0,))]
        else:
            moved = self._compression.nested(self._sizes(m)) if self.n_stages > 1 else [self._compression.to(m)]
            self.n_targets_ = self._compression.n_targets
        self.losses_ = moved[-1].losses
        self.n_iter_ = max(1, len(self.losses_) - 1)
        self.plan_ = self._plan(moved)
        self.agreement_ = self._agreement(points)
        if held_out is not None and held_out[2] is not None:
            self._calibrate(*held_out)
        return self

    def _agreement(self, points: Points | None) -> float | None:
        """How often the small machine decides as the full one, on the rows matched that are no support vectors."""
        if points is None or not (~points.support).any():
            return None
        rows = np.flatnonzero(~points.support)[:MOST_HELD_OUT]
        X = dense_rows(points.X[rows])
        full, small = self.full_.decide(X), np.empty((len(X), self.n_features_in_))
        small[:, self._order] = X
        same = self.plan_.read(full) == self.plan_.predict(small)
        return float(np.average(same, weights=points.weights[rows]))

    def _size(self, n: int) -> int:
        if self.budget is None:
            share = RATIO if self.ratio is None else self.ratio
            return min(n, math.ceil(share * n) if self.n_vectors is None else self.n_vectors)
        table = self._costs_bound
        if isinstance(table.evaluation, tuple):
            raise ValueError("The vectors of a compressed machine cost the same: give one evaluation price.")
        features = table.price(table.features)
        left = float(self.budget) - features
        if left < table.evaluation or left < 0:
            raise ValueError(
                f"The budget of {self.budget:g} {table.unit} pays for no vector: all features cost {features:g}, one "
                f"evaluation {table.evaluation:g}. A kernel looks at every feature; give a larger budget."
            )
        return min(n, int(left / table.evaluation * (1 + 1e-12))) if table.evaluation else n

    def _sizes(self, m: int) -> list[int]:
        """The sizes of the stages, each three times the one before."""
        return sorted({max(1, round(m / GROWTH**k)) for k in range(self.n_stages)})

    # ---- the plan ---------------------------------------------------------------------------------------------

    def _plan(self, stages: Sequence[Moved]) -> Plan:
        n_outputs, last = len(self.full_.bias), len(stages) - 1
        gate = Gate.unless_confident(float(self.confidence))
        nodes = tuple(
            Node(
                np.arange(len(moved.coef), dtype=np.int32),
                moved.coef,
                moved.bias,
                tuple(range(n_outputs)),
                combine="replace",
                gate=gate if k < last else Gate(),
                passed=k + 1 if k < last else EXIT,
            )
            for k, moved in enumerate(stages)
        )
        return self._with_background(
            Plan(
                costs=self._costs_bound,
                dictionary=self.full_.kernel.dictionary(self._order, stages[-1].vectors),
                nodes=nodes,
                prior=self._prior(),
                link="logistic" if n_outputs == 1 else "coupled",
                classes=self.classes_,
                notes={
                    "estimator": type(self).__name__,
                    "support vectors of the full machine": len(self.full_),
                    "matched on": self.n_targets_,
                },
            )
        )

    def _prior(self) -> Floats:
        """Log-odds of each output when nothing is known."""
        logs = np.log(self._shares + 1.0)
        if len(logs) == 2:
            return logs[1:] - logs[:1]
        return np.array([logs[a] - logs[b] for a, b in self.full_.pairs])

    def calibrate(self, X: Any, y: Any) -> Self:
        """Read scores as probabilities by what they say of these rows, which should not be those of the training."""
        X = self._dense(X)
        order = np.argsort(self.classes_)
        codes = order[np.searchsorted(self.classes_, np.asarray(y), sorter=order)]
        self._calibrate(X[:, self._order], codes, None)
        return self

    def _calibrate(self, X: Any, codes: np.ndarray, honest: KernelMachine | None) -> None:
        """Scale the scores of each stage. Rows that the full machine was trained on flatter it: for them its score is
        replaced by that of an `honest` machine that was not, and what compression changed is added to that."""
        X, codes = X[:MOST_HELD_OUT], codes[:MOST_HELD_OUT]
        flattered = 0.0 if honest is None else honest.decide(X) - self.full_.decide(X)
        kernels = self.plan_.dictionary
        nodes = []
        for node in self.plan_.nodes:
            vectors = kernels.vectors[: len(node.learners)]  # type: ignore[attr-defined]
            stage = KernelMachine(self.full_.kernel, vectors, node.weights, node.bias, len(self.classes_))
            scores = stage.decide(X) + flattered
            if len(self.classes_) == 2:
                scale = temperature(scores[:, 0], codes)
            else:
                scale = common_temperature(scores, codes, self.plan_.probabilities)
            nodes.append(replace(node, scale=np.full(scores.shape[1], scale)))
        self.plan_ = replace(self.plan_, nodes=tuple(nodes))

    # ---- asking it --------------------------------------------------------------------------------------------

    def decision_function(self, X: Any, budget: float | None = None, confidence: float | None = None) -> np.ndarray:
        """One score per row for two classes. For more, one per class: the pairs it wins, and in the decimals by how
        much, as scikit-learn's SVC does."""
        scores = super().decision_function(X, budget, confidence)
        if scores.ndim == 1:
            return scores
        pairs = self.full_.pairs
        votes = len(pairs) * probabilities("vote", scores, len(self.classes_))
        sums = np.zeros(votes.shape)
        for p, (a, b) in enumerate(pairs):
            sums[:, a] += scores[:, p]
            sums[:, b] -= scores[:, p]
        return votes + sums / (3.0 * (np.abs(sums) + 1.0))

    def path(self, X: Any, y: Any, n_vectors: Sequence[int] | None = None) -> list[PathPoint]:
        """Accuracy against the number of vectors: each machine begins where the one before ended."""
        self._fitted_plan()
        n = len(self.full_)
        sizes = np.unique(np.geomspace(2, max(2, n // 4), 8).astype(int)) if n_vectors is None else np.unique(n_vectors)
        if sizes[0] < 1 or sizes[-1] > n:
            raise ValueError(f"The full machine has {n} vectors: sizes are 1 to {n}, got {sizes[0]} to {sizes[-1]}.")
        rows = self._dense(X)
        answers = self.plan_.read(self.full_.decide(rows[:, self._order]))
        points = []
        for moved in self._compression.path(sizes.tolist()):
            plan = self._plan([moved])
            said = plan.predict(rows)
            right, same = float(np.mean(said == np.asarray(y))), float(np.mean(said == answers))
            points.append(PathPoint(len(moved.coef), moved.distance, right, same, plan))
        return points


def _answers(machine: KernelMachine, X: Any) -> np.ndarray:
    """The numbers of the classes that a machine finds."""
    scores = machine.decide(X)
    several = machine.n_classes > 2
    return probabilities("vote" if several else "logistic", scores, machine.n_classes).argmax(axis=1)


def _parted(codes: np.ndarray, rng: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from and a fifth of each class held out, as far as there are five."""
    held_out = np.zeros(len(codes), bool)
    for c in range(int(codes.max()) + 1):
        rows = rng.permutation(np.flatnonzero(codes == c))
        held_out[rows[: int(HELD_OUT * len(rows))]] = True
    return np.flatnonzero(~held_out), rng.permutation(np.flatnonzero(held_out))


def _points(X: Any, codes: np.ndarray, weight: Floats, support: np.ndarray, rng: Any) -> Points:
    """The support vectors and all other rows, or a sample of these that stands for them."""
    is_support = np.zeros(X.shape[0], bool)
    is_support[support] = True
    others = np.flatnonzero(~is_support & (weight > 0))
    most = max(FEWEST_POINTS, POINTS_PER_VECTOR * len(support))
    factor = 1.0
    if len(others) > most:
        factor, others = len(others) / most, np.sort(rng.permutation(others)[:most])
    rows = np.concatenate([np.flatnonzero(is_support), others])
    weights = weight[rows] * np.where(is_support[rows], 1.0, factor)
    return Points(X[rows], codes[rows], weights / weight[weight > 0].mean(), is_support[rows])


def _with_vectors(points: Points, machine: KernelMachine) -> Points:
    """Rows of a machine that was given, and its support vectors beside them."""
    stack = sparse.vstack if issparse(machine.vectors) and issparse(points.X) else _dense_stack
    n = len(machine)
    return Points(
        stack([machine.vectors, points.X]),
        np.concatenate([machine.labels, points.labels]),
        np.concatenate([np.ones(n), points.weights]),
        np.concatenate([np.ones(n, bool), points.support]),
    )


def _dense_stack(parts: list[Any]) -> Floats:
    return np.concatenate([dense_rows(part) for part in parts])
