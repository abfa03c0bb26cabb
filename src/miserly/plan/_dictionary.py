"""The weak learners of a plan: raw features, regression trees, or kernel functions at support vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from miserly._typing import Array
from miserly.kernels import machines
from miserly.kernels import trees as kernels
from miserly.plan._frozen import Frozen, frozen

MOST_DEGREES = 64


@dataclass(frozen=True, eq=False)
class Dictionary(Frozen):
    """Weak learners by number: the base of raw features, trees and kernels. It has no parameters of its own.

    `arrays` are what a plan file keeps; the rest is what running a plan asks for.

    Attributes
    ----------
    kind : str
        What a plan file calls this kind of dictionary.
    array_types : dict of str to dtype
        The arrays that a dictionary is made of.
    dimensions : dict of str to int
        How many dimensions those of them have that are not lists.

    Examples
    --------
    >>> dictionary = RawFeatures([2, 0])
    >>> dictionary.kind, len(dictionary), dictionary.n_features
    ('raw', 2, 3)
    >>> dictionary.arrays()
    {'columns': array([2, 0], dtype=int32)}
    """

    kind: ClassVar[str]
    array_types: ClassVar[dict[str, Any]]
    dimensions: ClassVar[dict[str, int]] = {}

    def __post_init__(self) -> None:
        for name, dtype in self.array_types.items():
            array = frozen(getattr(self, name), dtype)
            wanted = self.dimensions.get(name, 1)
            if array.ndim != wanted:
                raise ValueError(f"The dictionary's {name} must have {wanted} dimensions, got {array.ndim}.")
            object.__setattr__(self, name, array)
        self.check()

    def arrays(self) -> dict[str, Array]:
        """The data of the dictionary, by name."""
        return {name: getattr(self, name) for name in self.array_types}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            np.array_equal(a, getattr(other, name)) for name, a in self.arrays().items()
        )

    def check(self) -> None:
        """Refuse arrays that would make an evaluation read outside its bounds or run for ever."""
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def n_features(self) -> int:
        """One more than the largest feature number in use."""
        raise NotImplementedError

    def features_of(self, learner: int) -> Array:
        """The features that a learner may look at."""
        raise NotImplementedError

    def features_in_order(self, learner: int) -> list[int]:
        """The same in the order in which they are bought when not all of them fit a budget."""
        features: list[int] = self.features_of(learner).tolist()
        return features


@dataclass(frozen=True, eq=False)
class RawFeatures(Dictionary):
    """Learner t is feature `columns[t]` itself.

    Parameters
    ----------
    columns : array of int of shape (n_learners,)
        The number of each learner's feature, 0 or more.

    Examples
    --------
    >>> dictionary = RawFeatures([2, 0])
    >>> dictionary.features_of(0)
    array([2], dtype=int32)
    """

    columns: Array

    kind: ClassVar[str] = "raw"
    array_types: ClassVar[dict[str, Any]] = {"columns": np.int32}

    def check(self) -> None:
        if (self.columns < 0).any():
            raise ValueError("Raw features are a list of column numbers.")

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def n_features(self) -> int:
        return int(self.columns.max(initial=-1)) + 1

    def features_of(self, learner: int) -> Array:
        return self.columns[learner : learner + 1]


@dataclass(frozen=True, eq=False)
class Trees(Dictionary):
    """Regression trees in one table of splits and leaves (see `kernels.trees` for the layout).

    Tree t holds the places from `start[t]` to before `start[t + 1]`; children are places of the whole table.

    Parameters
    ----------
    start : array of int of shape (n_trees + 1,)
        Where each tree begins, then the number of places. The first is 0, and no tree is empty.
    feature : array of int of shape (n_places,)
        The feature that each split looks at, 0 or more; 0 at leaves.
    threshold : array of float of shape (n_places,)
        Values above it go right, others left. Not NaN; infinite at leaves.
    left : array of int of shape (n_places,)
        The place of the left child, after its parent and in the same tree. The right child is next to it. A leaf has
        its own place.
    missing_right : array of bool of shape (n_places,)
        Whether missing values go right at the split; False at leaves.
    value : array of float of shape (n_places,)
        What the tree gives for rows that end here; only those of leaves are read.

    Examples
    --------
    >>> import numpy as np
    >>> leaf = np.inf
    >>> trees = Trees([0, 3], [1, 0, 0], [1.5, leaf, leaf], [1, 1, 2], [False, False, False], [0.0, -1.0, 1.0])
    >>> trees.evaluate(np.array([[7.0, 1.0], [7.0, 2.0]]), 0)
    array([-1.,  1.])
    """

    start: Array
    feature: Array
    threshold: Array
    left: Array
    missing_right: Array
    value: Array

    kind: ClassVar[str] = "trees"
    array_types: ClassVar[dict[str, Any]] = {
        "start": np.int32,
        "feature": np.int32,
        "threshold": np.float64,
        "left": np.int32,
        "missing_right": np.bool_,
        "value": np.float64,
    }

    def check(self) -> None:
        n = len(self.feature)
        places = np.arange(n)
        ok = (
            len(self.start) >= 1
            and self.start[0] == 0
            and self.start[-1] == n
            and (self.start[1:] > self.start[:-1]).all()  # differences of int32 could overflow
            and all(len(a) == n for a in (self.threshold, self.left, self.missing_right, self.value))
        )
        if ok and n:
            end = self.start[np.searchsorted(self.start, places, side="right")]
            leaf = self.left == places
            ok = bool(((self.left > places) & (self.left < end - 1) & (self.feature >= 0) | leaf).all())
            ok = ok and bool((np.isposinf(self.threshold[leaf]) & ~self.missing_right[leaf]).all())
            ok = ok and not np.isnan(self.threshold).any() and bool((self.feature[leaf] == 0).all())
        if not ok:
            raise ValueError("The tree table is not well formed: a child lies outside its tree or before its parent.")

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def n_features(self) -> int:
        return int(self.feature.max(initial=-1)) + 1

    @cached_property
    def is_leaf(self) -> NDArray[np.bool_]:
        """True at the places that are leaves."""
        leaf: NDArray[np.bool_] = self.left == np.arange(len(self.left))
        return leaf

    @cached_property
    def depth(self) -> NDArray[np.int32]:
        """Number of levels of splits of each tree."""
        level = np.zeros(len(self.left), np.int32)
        for place in np.flatnonzero(~self.is_leaf):
            below = slice(self.left[place], self.left[place] + 2)
            level[below] = np.maximum(level[below], level[place] + 1)  # some have several parents
        return np.array([level[a:b].max() for a, b in zip(self.start[:-1], self.start[1:])], np.int32)

    @cached_property
    def used(self) -> NDArray[np.int32]:
        """The features that some tree splits on, in rising order."""
        return np.unique(self.feature[~self.is_leaf]).astype(np.int32)

    @cached_property
    def table(self) -> tuple[Array, ...]:
        """The arguments of the kernels."""
        slot = np.searchsorted(self.used, self.feature).astype(np.int32)
        slot[self.is_leaf] = 0
        return (
            self.start[:-1],
            self.depth,
            self.feature,
            slot,
            self.threshold,
            self.left,
            self.missing_right,
            self.value,
        )

    def features_of(self, learner: int) -> Array:
        places = slice(self.start[learner], self.start[learner + 1])
        return np.array(sorted(set(self.feature[places][~self.is_leaf[places]].tolist())), self.feature.dtype)

    def features_in_order(self, learner: int) -> list[int]:
        places = slice(self.start[learner], self.start[learner + 1])
        return list(dict.fromkeys(self.feature[places][~self.is_leaf[places]].tolist()))

    def evaluate(self, X: Array, learner: int) -> NDArray[np.float64]:
        """One tree's value for each row."""
        out = np.zeros((len(X), 1))
        rows, one = np.arange(len(X)), np.zeros(1, np.int32)
        learners, pointer = np.array([learner], np.int32), np.array([0, 1], np.int32)
        keep = np.full(len(self), -1, np.int32)
        no_values, no_known = np.zeros((1, 1)), np.zeros((1, 1), np.bool_)
        kernels.add_trees(
            X, rows, self.table, self.used, learners, pointer, one, np.ones(1), keep, no_values, no_known, out
        )
        return out[:, 0]


@dataclass(frozen=True, eq=False)
class Kernels(Dictionary):
    """Learner t is a kernel function between the row, in these `columns`, and the t-th of the `vectors`.

    The base of the three kinds of kernels; build one of those.

    Parameters
    ----------
    columns : array of int of shape (n_columns,)
        The features that the kernels look at, 0 or more.
    vectors : array of float of shape (n_learners, n_columns)
        The support vectors, finite.
    gamma : float
        The factor in the kernel function, finite and above 0.

    Examples
    --------
    >>> kernels = RBFKernels([0, 3], [[1.0, 2.0], [0.0, 1.0]], gamma=0.5)
    >>> len(kernels), kernels.features_of(1).tolist()
    (2, [0, 3])
    """

    columns: Array
    vectors: Array
    gamma: Array

    function: ClassVar[int]
    array_types: ClassVar[dict[str, Any]] = {"columns": np.int32, "vectors": np.float64, "gamma": np.float64}
    dimensions: ClassVar[dict[str, int]] = {"vectors": 2, "gamma": 0, "coef0": 0, "degree": 0}

    def check(self) -> None:
        numbers = self.machine[3]
        if self.vectors.shape[1] != len(self.columns) or (self.columns < 0).any():
            raise ValueError("A kernel's vectors have one value for each of its columns, which are not negative.")
        if not (np.isfinite(self.vectors).all() and np.isfinite(numbers).all() and numbers[0] > 0):
            raise ValueError("A kernel's vectors and parameters are finite numbers, and its gamma is positive.")

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def n_features(self) -> int:
        return int(self.columns.max(initial=-1)) + 1

    def features_of(self, learner: int) -> Array:
        return self.columns

    @property
    def numbers(self) -> tuple[float, float, float]:
        """Gamma, the constant and the degree."""
        return float(self.gamma), 0.0, 0.0

    @cached_property
    def machine(self) -> tuple[Array, Array, int, Array]:
        """The first argument of the kernels."""
        return self.columns, self.vectors, self.function, np.array(self.numbers)


@dataclass(frozen=True, eq=False)
class RBFKernels(Kernels):
    """Learner t is exp(−gamma ‖x − v‖²), with v the t-th of the `vectors`.

    Parameters
    ----------
    columns : array of int of shape (n_columns,)
        The features that the kernels look at, 0 or more.
    vectors : array of float of shape (n_learners, n_columns)
        The support vectors, finite.
    gamma : float
        How fast the kernel falls with the distance, finite and above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from miserly.costs import CostTable
    >>> from miserly.plan import Node, Plan, RBFKernels
    >>> kernels = RBFKernels([0], [[1.0], [3.0]], gamma=0.5)
    >>> plan = Plan(CostTable.per_feature([2.0]), kernels, (Node([0, 1], [1.0, 1.0]),), [0.0])
    >>> plan.predict(np.array([[1.0]])).round(3)
    array([1.135])
    """

    kind: ClassVar[str] = "rbf"
    function: ClassVar[int] = machines.RBF


@dataclass(frozen=True, eq=False)
class Chi2Kernels(Kernels):
    """Learner t is exp(−gamma Σ (x − v)² / (x + v)), with v the t-th of the `vectors`: for counts and histograms.

    A value of a row that is below zero counts as zero.

    Parameters
    ----------
    columns : array of int of shape (n_columns,)
        The features that the kernels look at, 0 or more.
    vectors : array of float of shape (n_learners, n_columns)
        The support vectors, finite, 0 or more.
    gamma : float
        How fast the kernel falls with the distance, finite and above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from miserly.costs import CostTable
    >>> from miserly.plan import Chi2Kernels, Node, Plan
    >>> kernels = Chi2Kernels([0], [[1.0], [3.0]], gamma=0.5)
    >>> plan = Plan(CostTable.per_feature([2.0]), kernels, (Node([0, 1], [1.0, 1.0]),), [0.0])
    >>> plan.predict(np.array([[1.0]])).round(3)
    array([1.607])
    """

    kind: ClassVar[str] = "chi2"
    function: ClassVar[int] = machines.CHI2

    def check(self) -> None:
        super().check()
        if (self.vectors < 0).any():
            raise ValueError("The vectors of a chi-squared kernel are 0 or more.")


@dataclass(frozen=True, eq=False)
class PolynomialKernels(Kernels):
    """Learner t is (gamma xᵀv + coef0) to the power `degree`, with v the t-th of the `vectors`.

    Parameters
    ----------
    columns : array of int of shape (n_columns,)
        The features that the kernels look at, 0 or more.
    vectors : array of float of shape (n_learners, n_columns)
        The support vectors, finite.
    gamma : float
        The factor of the product, finite and above 0.
    coef0 : float
        The constant, finite.
    degree : int
        The power, from 1 to 64.

    Examples
    --------
    >>> import numpy as np
    >>> from miserly.costs import CostTable
    >>> from miserly.plan import Node, Plan, PolynomialKernels
    >>> kernels = PolynomialKernels([0], [[2.0]], gamma=1.0, coef0=1.0, degree=2)
    >>> plan = Plan(CostTable.per_feature([2.0]), kernels, (Node([0], [1.0]),), [0.0])
    >>> plan.predict(np.array([[3.0]]))
    array([49.])
    """

    coef0: Array
    degree: Array

    kind: ClassVar[str] = "polynomial"
    function: ClassVar[int] = machines.POLYNOMIAL
    array_types: ClassVar[dict[str, Any]] = {**Kernels.array_types, "coef0": np.float64, "degree": np.int64}

    def check(self) -> None:
        super().check()
        if not 1 <= self.degree <= MOST_DEGREES:
            raise ValueError(f"A polynomial kernel's degree is 1 to {MOST_DEGREES}, got {self.degree}.")

    @property
    def numbers(self) -> tuple[float, float, float]:
        return float(self.gamma), float(self.coef0), float(self.degree)


def stack_trees(trees: Sequence[dict[str, Array]]) -> Trees:
    """Put single trees, each with places counted from zero, into one table.

    Parameters
    ----------
    trees : sequence of dict of str to array
        For each tree its `feature`, `threshold`, `left`, `missing_right` and `value`, as in `Trees`. May be empty.

    Returns
    -------
    Trees
        All of them, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> constant = {
    ...     "feature": np.array([0]),
    ...     "threshold": np.array([np.inf]),
    ...     "left": np.array([0]),
    ...     "missing_right": np.array([False]),
    ...     "value": np.array([0.5]),
    ... }
    >>> stack_trees([constant, constant]).left
    array([0, 1], dtype=int32)
    """
    sizes = [len(t["feature"]) for t in trees]
    start = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    joined = {
        name: np.concatenate([t[name] for t in trees]) if trees else np.zeros(0)
        for name in ("feature", "threshold", "missing_right", "value")
    }
    left = np.concatenate([t["left"] + s for t, s in zip(trees, start)]) if trees else np.zeros(0)
    return Trees(start=start, left=left, **joined)


KINDS: dict[str, type[Dictionary]] = {
    kind.kind: kind for kind in (RawFeatures, Trees, RBFKernels, PolynomialKernels, Chi2Kernels)
}
