"""The dictionary of a post-processing learner: which weak learners it may weigh, and what each of them costs.

`dictionary=None` means the raw features, "trees" what `tree_dictionary` grows. Otherwise it is a `plan.Trees` (what
`miserly.import_trees` gives), a plan, an estimator that is fitted already (wrap it in scikit-learn's `FrozenEstimator`
to keep it through a clone), or one that is not, which is then fitted to the same data first.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import clone

from miserly._typing import Floats
from miserly.costs import CostTable, set_bits, total_price
from miserly.estimators._base import constraints
from miserly.plan import Dictionary, Plan, RawFeatures, Trees
from miserly.solvers import Design, RawDesign, TreeDesign, raw_weights

FIRST_ROWS = 256
DICTIONARY: list[Any] = [None, constraints.one_of("trees"), Trees, Plan, constraints.has_methods("fit")]


@dataclass(frozen=True)
class Learners:
    """Weak learners with their outputs as a design, and for each of its columns what it needs and costs.

    Column j of the design is learner `number[j]` of the plan's `dictionary`; it needs the acquisitions `masks[j]`, as
    bits, and its evaluation costs `evaluation[j]`. Raw features stand in an order that depends on their values, not on
    their places: what is computed is the same to the bit if the user's columns are permuted.
    """

    costs: CostTable
    dictionary: Dictionary
    design: Design
    number: NDArray[np.int32]
    masks: tuple[int, ...]
    evaluation: tuple[float, ...]
    model: Plan | None = None

    def price(self, columns: ArrayLike, owned: int = 0) -> float:
        """What some columns cost together a row that owns some acquisitions."""
        wanted = 0
        for j in (chosen := np.asarray(columns, np.intp)):
            wanted |= self.masks[j]
        prices = self.costs.price_list
        return total_price([*(prices[a] for a in set_bits(wanted & ~owned)), *(self.evaluation[j] for j in chosen)])

    def known(self, n_outputs: int) -> Floats | None:
        """The weights (column × output) of trees in the model that they come from, unless that has other outputs."""
        if not isinstance(self.dictionary, Trees):
            return None
        known, model = np.zeros((len(self.dictionary), n_outputs)), self.model
        if model is None:  # as imported: tree t belongs to output t mod K
            known[np.arange(len(known)), np.arange(len(known)) % n_outputs] = 1.0
            return known
        if model.n_outputs != n_outputs or any(node.combine != "add" for node in model.nodes):
            return None
        for node in model.nodes:
            np.add.at(known, (node.learners[:, None], np.array(node.outputs)), node.weights)
        return known

    @property
    def needs(self) -> NDArray[np.bool_]:
        """Acquisition × column: N of the notes, what each column needs."""
        table = np.zeros((len(self.costs.price_list), len(self.masks)), bool)
        for j, mask in enumerate(self.masks):
            table[list(set_bits(mask)), j] = True
        return table

    def for_node(self, weights: Floats, intercept: ArrayLike) -> tuple[NDArray[np.int32], Floats, Floats]:
        """Learners, weights and bias of a plan's node that scores as these standardised weights (column × output) do.

        Columns without weight are left out; the others stand in the order of the design.
        """
        raw, bias = raw_weights(self.design, weights, intercept)
        used = np.flatnonzero(raw.any(axis=1))
        return self.number[used], raw[used], bias


class RemoteTable(ABC):
    """Rows that are not in this process, as learners need them; `y` and `weight` (or None) are here."""

    shape: tuple[int, int]
    y: np.ndarray
    weight: Floats | None

    @abstractmethod
    def order(self) -> NDArray[np.intp]:
        """The order of columns, as `order_by_content` finds it."""

    @abstractmethod
    def raw_design(self, order: NDArray[np.intp]) -> Design:
        """Raw features as learners, in this order."""

    @abstractmethod
    def tree_design(self, trees: Trees) -> Design:
        """Trees as learners."""

    @abstractmethod
    def fitted(self, model: Any, weighted: bool) -> Any:
        """A model fitted to these rows, with their weights if it takes weights."""


def find_learners(
    dictionary: Any, costs: CostTable, X: Any, y: np.ndarray, sample_weight: Floats | None = None
) -> Learners:
    """The learners that a `dictionary` parameter names, over checked data X whose columns `costs` is bound to."""
    far = isinstance(X, RemoteTable)
    if dictionary is None:
        order = X.order() if far else order_by_content(X)
        raw = RawFeatures(np.arange(X.shape[1]))
        design = X.raw_design(order) if far else RawDesign(X, sample_weight, order)
        return _priced(costs, raw, design, order.astype(np.int32))
    trees, model = _trees_of(dictionary, costs, X, y, sample_weight)
    if trees.n_features > X.shape[1]:
        raise ValueError(
            f"The dictionary's trees look at feature {trees.n_features - 1} (from 0), X has {X.shape[1]} columns. "
            "Give the data that the trees were grown on, with the same columns."
        )
    design = X.tree_design(trees) if far else TreeDesign(trees, X, sample_weight)
    return replace(_priced(costs, trees, design, np.arange(len(trees), dtype=np.int32)), model=model)


def reads_missing(dictionary: Any) -> bool:
    """Whether a dictionary can do with missing values: trees can, raw features cannot."""
    return dictionary is not None


def _trees_of(
    dictionary: Any, costs: CostTable, X: Any, y: np.ndarray, sample_weight: Floats | None
) -> tuple[Trees, Plan | None]:
    """The trees, and the plan that they come from, if any."""
    model, found = None, dictionary
    if hasattr(dictionary, "fit"):
        found = getattr(dictionary, "plan_", None)
        if found is None:
            found = _fitted(dictionary, costs, X, y, sample_weight).plan_
    if isinstance(found, Plan):
        model, found = found, found.dictionary
    if not isinstance(found, Trees):
        raise ValueError(
            f"The dictionary {type(dictionary).__name__} is over {type(found).__name__}, not over trees. Give a model "
            "of boosted trees, or dictionary=None for the raw features."
        )
    return found, model


def _fitted(model: Any, costs: CostTable, X: Any, y: np.ndarray, sample_weight: Floats | None) -> Any:
    """The model fitted to checked data, which have lost their names: its prices are put in the columns' order here."""
    model = clone(model)
    if "costs" in model.get_params(deep=False):
        own = costs if model.costs is None else model.costs
        by_name = own.named and costs.named and own.each is None
        model.set_params(costs=own.bind(costs.features) if by_name else own)
    weighted = sample_weight is not None and "sample_weight" in inspect.signature(model.fit).parameters
    if isinstance(X, RemoteTable):
        X.fitted(model, weighted)
    else:
        model.fit(X, y, **({"sample_weight": sample_weight} if weighted else {}))
    if not isinstance(getattr(model, "plan_", None), Plan):
        raise ValueError(
            f"{type(model).__name__} has no plan_. Fit it, and give miserly.import_trees(model) as the dictionary."
        )
    return model


def _priced(costs: CostTable, dictionary: Dictionary, design: Design, number: NDArray[np.int32]) -> Learners:
    evaluation = costs.evaluation_prices(len(dictionary))
    masks = []
    for t in number:
        mask = 0
        for f in dictionary.features_of(int(t)):
            mask |= costs.feature_masks[f]
        masks.append(mask)
    return Learners(costs, dictionary, design, number, tuple(masks), tuple(evaluation[t] for t in number))


def order_by_content(X: Any) -> NDArray[np.intp]:
    """Columns sorted by their values in the first rows; where these tie, by all their values."""
    head = X[:FIRST_ROWS].toarray() if issparse(X) else X[:FIRST_ROWS]

    def contents() -> Sequence[Any]:
        columns = X.tocsc() if issparse(X) else X
        return [_content(columns, j) for j in range(X.shape[1])]

    return order_of_columns(head, contents)


def order_of_columns(head: np.ndarray, contents: Callable[[], Sequence[Any]]) -> NDArray[np.intp]:
    """The order of columns by their first rows, or, where these tie, by what is in them, given as keys."""
    order = np.lexsort(head[::-1])
    if head.shape[1] > 1 and (head[:, order[1:]] == head[:, order[:-1]]).all(axis=0).any():
        keys = contents()
        order = np.array(sorted(order, key=lambda j: keys[j]), np.intp)
    return order


def _content(X: Any, j: int) -> bytes:
    column = X[:, [j]].toarray() if issparse(X) else X[:, j]
    return np.ascontiguousarray(column, np.float64).tobytes()
