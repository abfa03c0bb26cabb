"""ASTC, the approximately submodular tree of classifiers (Kusner et al., AAAI 2014): a tree grown within budgets.

Every node is a least squares fit on learners chosen one by one, each time the affordable one with the largest

    (lowering of the node's mean squared error) / (price of what it still lacks),

free ones first: equation (7), with a price only for what the way down does not own yet. The node's own prediction then
sends its rows to two nodes that begin with everything it bought. The objective of a node with budget B:

    min_{A : price(A | owned) ≤ B}  min_β  Σ_i p_i (y_i − f(x_i) − h_A(x_i)ᵀβ − b)² + ρ‖β‖²,   f its parent's score.

Ours: what shares an acquisition is bought together; learners may be trees; several classes are one tree with an output
for each, routed by the direction in which these vary most; a learner must earn its coefficient (`penalty`), which is
shrunk a little (`l2_regularization`, ρ). With ρ = 0 and no penalty a node is the paper's: plain least squares on all
that is owned, since f lies in its span.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from miserly._blas import blas_threads
from miserly._typing import Floats
from miserly.costs import CostTable, set_bits, total_price
from miserly.estimators._base import DICTIONARY, LearnerEstimator, Learners, PlanClassifier, PlanRegressor, constraints
from miserly.estimators.astc._selection import GramMatrix, GramRows, Selection, centred
from miserly.kernels.threads import threads
from miserly.plan import Gate, Node, Plan
from miserly.solvers import platt, softmax_scaling

SAME = 1e-9
NOTHING = 1e-14
MAX_BUNDLE = 32
GATE_BY_SCORE = 1e-3


@dataclass
class _Branch:
    """A node on its way to the plan: weights of standardised columns, who is there, what the way down owns."""

    share: Floats
    weights: Floats
    intercept: Floats
    owned: int
    evaluated: frozenset[int]
    gain: float = 0.0
    changed: bool = False
    routing: Floats | None = None
    threshold: float = math.nan
    children: list[_Branch] = field(default_factory=list)


class _ASTC(LearnerEstimator):
    """The parameters and the growth that regression and classification share."""

    cost_axis = "node_budget"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "costs": constraints.COSTS,
        "node_budget": [constraints.not_negative(), "array-like", Mapping, None],
        "max_depth": [constraints.at_least(1)],
        "soft": ["boolean"],
        "dictionary": DICTIONARY,
        "temperature": [constraints.positive()],
        "threshold": [constraints.one_of("otsu", "half")],
        "penalty": [constraints.not_negative(), constraints.one_of("auto")],
        "l2_regularization": [constraints.not_negative()],
        "min_samples_leaf": [constraints.at_least(1)],
    }

    def __init__(
        self,
        costs: CostTable | None = None,
        node_budget: Any = None,
        max_depth: int = 3,
        soft: bool = False,
        dictionary: Any = None,
        temperature: float = 0.1,
        threshold: str = "otsu",
        penalty: float | str = "auto",
        l2_regularization: float = 1.0,
        min_samples_leaf: int = 20,
    ) -> None:
        self.costs = costs
        self.node_budget = node_budget
        self.max_depth = max_depth
        self.soft = soft
        self.dictionary = dictionary
        self.temperature = temperature
        self.threshold = threshold
        self.penalty = penalty
        self.l2_regularization = l2_regularization
        self.min_samples_leaf = min_samples_leaf

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, backend: Any = None) -> Self:
        """Grow the tree.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or Dask collection of shape (n_rows, n_features)
            Training rows.
        y : array-like of shape (n_rows,)
            Labels.
        sample_weight : array-like or None, default=None
            Weights of the rows, 0 or more.
        backend : DaskBackend or None, default=None
            Holds remote rows; for Dask collections it is found.

        Returns
        -------
        self
        """
        nodes: list[Node | None] = []
        learners, y, target, weight = self._ready(X, y, sample_weight, backend)
        targets = target.encode(y)
        cells = len(weight) * self.n_features_in_
        with closing(learners.design), threads(None, cells), blas_threads(cells):
            grower = _Grower(self, learners, targets, weight)
            self._append_nodes(grower.grow(), learners, grower, nodes)
        self.plan_ = self._plan(learners, tuple(node for node in nodes if node), targets, weight)
        return self

    def suggest_grid(self, y: Any, n_points: int = 8, sample_weight: Any = None) -> np.ndarray:
        """Budgets of a node from the cheapest price to that of everything, or to 64 of what all cost alike."""
        costs = self._given_costs()
        prices = [p for p in (*costs.price_list, costs.each or 0.0) if p > 0]
        if costs.each is None and prices:
            return np.geomspace(min(prices), total_price(prices), n_points)
        unit = prices[0] if prices else float(np.max(costs.evaluation)) or 1.0
        return np.geomspace(1.0, 64.0, n_points) * unit

    def _append_nodes(self, branch: _Branch, learners: Learners, grower: _Grower, nodes: list[Node | None]) -> int:
        """Append the plan's nodes of a branch, parents before children; tells the first one's number.

        A gate looks at the score itself where that says the same as the routing direction, to full precision.
        """
        number = len(nodes)
        nodes.append(None)
        matrix, offset = self._calibration(branch, grower)
        weights, bias = branch.weights @ matrix, branch.intercept @ matrix + offset
        ways: dict[str, Any] = {}
        if branch.routing is not None:
            ways["passed"], ways["failed"] = (self._append_nodes(c, learners, grower, nodes) for c in branch.children)
            ways["gate"] = Gate.above(branch.threshold)
        by_score = matrix.size == 1 and matrix[0, 0] > GATE_BY_SCORE * abs(offset[0])
        if branch.routing is not None and by_score:
            ways["gate"] = Gate.above(branch.threshold * matrix[0, 0] + offset[0])
        elif branch.routing is not None:
            weights = np.column_stack([weights, branch.weights @ branch.routing])
            bias = np.append(bias, branch.intercept @ branch.routing)
        chosen, table, bias = learners.for_node(weights, bias)
        if len(bias) > matrix.shape[1]:
            ways |= {"routing": table[:, -1], "routing_bias": float(bias[-1])}
            table, bias = table[:, :-1], bias[:-1]
        outputs = tuple(range(len(bias)))
        nodes[number] = Node(chosen, table, bias, outputs, combine="replace", gain=branch.gain, **ways)
        return number

    def _calibration(self, branch: _Branch, grower: _Grower) -> tuple[Floats, Floats]:
        """How a node's scores become the plan's: scores @ matrix + offset."""
        raise NotImplementedError

    def _plan(self, learners: Learners, nodes: tuple[Node, ...], targets: Floats, weight: Floats) -> Plan:
        raise NotImplementedError

    def _notes(self) -> dict[str, Any]:
        return {"estimator": type(self).__name__, **self._category_notes()}

    def _budget_of(self, level: int, number: int) -> float:
        """The budget of a node: one number for all, one by level, or by number (the children of k are 2k+1, 2k+2)."""
        given = self.node_budget
        if given is None:
            return math.inf
        if isinstance(given, Mapping):
            return _amount(given.get(number, 0.0))
        if np.ndim(given) == 0:
            return _amount(given)
        if len(given) != self.max_depth:
            raise ValueError(
                f"node_budget gives {len(given)} budgets for {self.max_depth} levels (max_depth). Give one per level."
            )
        return _amount(given[level])


class _Grower:
    """Grows the tree over one set of data. Targets are brought to unit variance, the unit of the temperature.

    Learners that tie are taken in the order of their means, which depends neither on columns' places nor on rows'.
    """

    def __init__(self, model: _ASTC, learners: Learners, targets: Floats, weight: Floats) -> None:
        self.model, self.learners, self.design = model, learners, learners.design
        self.targets, self.weight = targets, weight
        self.mean = weight @ targets / weight.sum()
        std = math.sqrt(float(weight @ ((targets - self.mean) ** 2).sum(axis=1)) / float(weight.sum()))
        self.std = std if std > NOTHING * float(np.abs(targets).max()) else 1.0
        self.y = (targets - self.mean) / self.std
        self.needs = learners.needs.T & (np.array(learners.costs.price_list) > 0)
        self.rank = np.argsort(np.lexsort((self.design.scale, self.design.centre)))
        self.fees = np.array(learners.evaluation)

    def grow(self) -> _Branch:
        """The whole tree."""
        n_columns, n_outputs = self.design.n_columns, self.y.shape[1]
        root = _Branch(self.weight, np.zeros((n_columns, n_outputs)), np.zeros(n_outputs), 0, frozenset())
        self._grow(root, np.zeros_like(self.y), 0, 0)
        return root

    def scores(self, branch: _Branch) -> Floats:
        """What a branch predicts for all rows, in the targets' own units."""
        return self.mean + self.std * (self.design.scores(branch.weights) + branch.intercept)

    def _grow(self, branch: _Branch, before: Floats, level: int, number: int) -> None:
        """Choose the branch's learners, then send its rows to two children. `before` is the parent's prediction."""
        self._choose(branch, before, self.model._budget_of(level, number), self._penalty_at(level))
        if level + 1 >= self.model.max_depth:
            return
        scores = self.design.scores(branch.weights) + branch.intercept
        direction = _main_direction(scores, branch.share)
        route = scores @ direction
        cut = threshold_between(route, branch.share, self.model.min_samples_leaf, self.model.threshold)
        if cut is None:
            return
        branch.routing, branch.threshold = direction, cut
        up = expit((route - cut) / self.model.temperature) if self.model.soft else (route > cut).astype(float)
        for side, part in enumerate((up, 1.0 - up)):
            child = _Branch(
                branch.share * part, branch.weights.copy(), branch.intercept.copy(), branch.owned, branch.evaluated
            )
            branch.children.append(child)
            self._grow(child, scores, level + 1, 2 * number + 1 + side)
        if not any(child.changed or child.children for child in branch.children):
            branch.routing, branch.children = None, []

    def _choose(self, branch: _Branch, before: Floats, budget: float, penalty: float) -> None:
        """Buy and weigh learners for what the parent's prediction leaves."""
        total = float(branch.share.sum())
        share = branch.share / total
        rest = self.y - before
        local_mean = share @ rest
        rest = rest - local_mean
        error = float(share @ (rest**2).sum(axis=1))
        sums = self.design.sums(np.column_stack([share, share[:, None] * rest]))
        means, moment = sums[:, 0], sums[:, 1:]
        gram: GramMatrix | GramRows
        if self.design.far:
            gram = GramMatrix(centred(self.design.gram(share), means))
        else:
            gram = GramRows(self.design, share, means)
        floor = SAME * (gram.diagonal + means**2)
        picked = Selection(gram, moment, floor, self.model.l2_regularization / total)
        bar = _Bar(error, penalty / total)
        self._buy(branch, picked, budget, bar)
        beta = picked.coefficients()
        branch.weights[picked.chosen] += beta
        branch.intercept = branch.intercept + local_mean - means[picked.chosen] @ beta
        lowered = float((local_mean**2).sum())
        branch.changed = bool(picked.chosen) or lowered > bar.after(0.0)
        branch.gain = (lowered + picked.explained()) * total / float(self.weight.sum()) * self.std**2

    def _penalty_at(self, level: int) -> float:
        """Of all learners at all nodes of a level, chance makes the best look this many times the error's variance."""
        if self.model.penalty != "auto":
            return float(self.model.penalty)
        return 2.0 * max(1.0, math.log(max(1, self.design.n_columns)) + level * math.log(2.0))

    def _buy(self, branch: _Branch, picked: Selection, budget: float, bar: _Bar) -> None:
        """Take what is free and helps, then buy what helps most per price, until the budget or the use is at an end."""
        purse = _Purse(self.learners, budget)
        while True:
            missing, fee = self._missing(branch.owned), self.fees.copy()
            fee[list(branch.evaluated)] = 0.0
            free = ~missing.any(axis=1) & (fee == 0.0)
            self._take(picked, np.flatnonzero(free), bar)
            leader = self._best(picked, missing, fee, purse, bar.after(picked.explained()))
            if leader is None:
                return
            branch.owned |= purse.pay(_bits(missing[leader]), fee[leader])
            if fee[leader] > 0:
                branch.evaluated |= {leader}
            picked.add(leader)

    def _take(self, picked: Selection, free: NDArray[np.intp], bar: _Bar) -> None:
        """Take free learners, the most useful first, while they earn their coefficients."""
        while len(free):
            gains = picked.gains()[free]
            if gains.max() <= bar.after(picked.explained()):
                return
            picked.add(int(free[first_of_best(gains, self.rank[free])]))

    def _best(
        self, picked: Selection, missing: NDArray[np.bool_], fee: Floats, purse: _Purse, bar: float
    ) -> int | None:
        """The learner whose affordable purchase explains most per price.

        What comes free with it, since it lacks nothing more and is evaluated for nothing, counts with it.
        """
        gains = picked.gains()
        gains[gains <= bar] = 0.0
        leaders: dict[tuple[bytes, int], int] = {}
        for j in np.argsort(-gains, kind="stable")[: np.count_nonzero(gains)]:
            leaders.setdefault((missing[j].tobytes(), j if fee[j] else -1), int(j))
        useful = np.flatnonzero((gains > 0.0) & (fee == 0.0))
        found, ratios, ranks = [], [], []
        for j in leaders.values():
            price = purse.price(_bits(missing[j]), fee[j])
            if price is None:
                continue
            together = np.array([j])
            if not fee[j]:
                together = useful[~(missing[useful] & ~missing[j]).any(axis=1)]
                together = together[np.argsort(-gains[together], kind="stable")][:MAX_BUNDLE]
            found.append(j)
            ratios.append(picked.joint_gain(together) / price)
            ranks.append(int(self.rank[together].min()))
        return found[first_of_best(np.array(ratios), np.array(ranks))] if found else None

    def _missing(self, owned: int) -> NDArray[np.bool_]:
        """Column × acquisition: what each column needs, has a price, and is not owned by the way down."""
        missing = self.needs.copy()
        missing[:, list(set_bits(owned))] = False
        return missing


@dataclass(frozen=True)
class _Bar:
    """What a coefficient must take off a node's mean squared error to be worth having."""

    error: float
    penalty: float

    def after(self, explained: float) -> float:
        """When this much is explained already."""
        return max(self.penalty * (self.error - explained), NOTHING)


class _Purse:
    """What a node has bought and what more it can: exactly rounded sums over sets, as in the plan's ledger."""

    def __init__(self, learners: Learners, budget: float) -> None:
        self.prices, self.budget = learners.costs.price_list, budget
        self.bought = 0
        self.fees: list[float] = []

    def price(self, mask: int, fee: float) -> float | None:
        """What acquisitions and an evaluation cost, or None if the budget does not allow them."""
        whole = total_price([*(self.prices[a] for a in set_bits(self.bought | mask)), *self.fees, fee])
        return total_price([*(self.prices[a] for a in set_bits(mask)), fee]) if whole <= self.budget else None

    def pay(self, mask: int, fee: float) -> int:
        """Buy; tells what."""
        self.bought |= mask
        self.fees.append(fee)
        return mask


class ASTCRegressor(PlanRegressor, _ASTC):
    """A tree of linear regressions, each within a budget.

    Every node chooses learners one by one, by the fall of its squared error per price.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    node_budget : float, sequence, dict or None, default=None
        What a node may spend beyond what its path owns, 0 or more: one number, one per level, or a dict by node
        (the root is 0, the children of k are 2k + 1, above the threshold, and 2k + 2; others get nothing). None is
        no limit.
    max_depth : int, default=3
        Levels of nodes, 1 or more; 3 is seven nodes.
    soft : bool, default=False
        Whether rows go both ways in training; predictions go one way.
    dictionary : None, "trees", Trees, Plan or estimator, default=None
        The learners that are weighed: the raw features (None), trees of mixed depth grown on the same rows
        ("trees", see `tree_dictionary`), what `import_trees` gives, a plan, or a model of boosted trees, which is
        fitted first unless it is fitted already.
    temperature : float, default=0.1
        Softness of `soft` gates in standard deviations of y, above 0.
    threshold : {"otsu", "half"}, default="otsu"
        Where a node splits its rows: where scores fall apart, or in halves as in the paper.
    penalty : float or "auto", default="auto"
        How many times the error's variance a coefficient must take off the summed squared error, 0 or more. "auto"
        is twice the logarithm of learners times nodes of the level; 0 spends all that the budget allows, as in the
        paper.
    l2_regularization : float, default=1.0
        Shrinks a node's change of each weight as this many more rows would that agree with its parent; 0 in the
        paper.
    min_samples_leaf : int, default=20
        Fewest rows of a node, 1 or more.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.

    References
    ----------
    M. Kusner, W. Chen, Q. Zhou, Z. Xu, K. Weinberger, Y. Chen. Feature-Cost Sensitive Learning with Submodular
    Trees of Classifiers. AAAI 2014, equations (5) to (11) and algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = X[:, 0] + X[:, 1] * X[:, 2]
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = ms.ASTCRegressor(costs, node_budget=3.0, max_depth=2).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 9)
    True
    """

    def _calibration(self, branch: _Branch, grower: _Grower) -> tuple[Floats, Floats]:
        return np.eye(1) * grower.std, grower.mean

    def _plan(self, learners: Learners, nodes: tuple[Node, ...], targets: Floats, weight: Floats) -> Plan:
        prior = weight @ targets / weight.sum()
        return self._with_background(Plan(learners.costs, learners.dictionary, nodes, prior, notes=self._notes()))


class ASTCClassifier(PlanClassifier, _ASTC):
    """A tree of linear classifiers, each within a budget.

    Squared loss on ±1, each class against the rest; all classes share what is bought. Every node is calibrated on
    the rows that come to it.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    node_budget : float, sequence, dict or None, default=None
        What a node may spend beyond what its path owns, 0 or more: one number, one per level, or a dict by node
        (the root is 0, the children of k are 2k + 1, above the threshold, and 2k + 2; others get nothing). None is
        no limit.
    max_depth : int, default=3
        Levels of nodes, 1 or more; 3 is seven nodes.
    soft : bool, default=False
        Whether rows go both ways in training; predictions go one way.
    dictionary : None, "trees", Trees, Plan or estimator, default=None
        The learners that are weighed: the raw features (None), trees of mixed depth grown on the same rows
        ("trees", see `tree_dictionary`), what `import_trees` gives, a plan, or a model of boosted trees, which is
        fitted first unless it is fitted already.
    temperature : float, default=0.1
        Softness of `soft` gates in standard deviations of y, above 0.
    threshold : {"otsu", "half"}, default="otsu"
        Where a node splits its rows: where scores fall apart, or in halves as in the paper.
    penalty : float or "auto", default="auto"
        How many times the error's variance a coefficient must take off the summed squared error, 0 or more. "auto"
        is twice the logarithm of learners times nodes of the level; 0 spends all that the budget allows, as in the
        paper.
    l2_regularization : float, default=1.0
        Shrinks a node's change of each weight as this many more rows would that agree with its parent; 0 in the
        paper.
    min_samples_leaf : int, default=20
        Fewest rows of a node, 1 or more.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    classes_ : ndarray
        The classes, in order.

    References
    ----------
    M. Kusner, W. Chen, Q. Zhou, Z. Xu, K. Weinberger, Y. Chen. Feature-Cost Sensitive Learning with Submodular
    Trees of Classifiers. AAAI 2014, equations (5) to (11) and algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = ms.ASTCClassifier(costs, node_budget=3.0, max_depth=2).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 9)
    True
    """

    def _calibration(self, branch: _Branch, grower: _Grower) -> tuple[Floats, Floats]:
        rows = np.flatnonzero(branch.share)
        scores, member, weight = grower.scores(branch)[rows], grower.targets[rows] > 0, branch.share[rows]
        if scores.shape[1] == 1:
            scale, offset = platt(scores[:, 0], member[:, 0], weight)
            matrix, offsets = np.array([[scale]]), np.array([offset])
        else:
            matrix, offsets = softmax_scaling(scores, member, weight)
        return grower.std * matrix, grower.mean @ matrix + offsets

    def _plan(self, learners: Learners, nodes: tuple[Node, ...], targets: Floats, weight: Floats) -> Plan:
        counts, total = weight @ (targets > 0), float(weight.sum())
        if len(self.classes_) == 2:
            prior, link = np.log((counts + 1.0) / (total - counts + 1.0)), "logistic"
        else:
            prior, link = np.log((counts + 1.0) / (total + len(counts))), "softmax"
        classes, notes = self.classes_, self._notes()
        plan = Plan(learners.costs, learners.dictionary, nodes, prior, link, classes, notes=notes)  # type: ignore[arg-type]
        return self._with_background(plan)


def threshold_between(values: Floats, weight: Floats, least: float, rule: str) -> float | None:
    """A threshold between two distinct values: with about half the weight on either side, or Otsu's, which leaves the
    least variance within the sides. Values that differ by rounding only are one value.

    None if a side would weigh less than `least`.
    """
    rows = np.flatnonzero(weight)
    order = rows[np.argsort(values[rows], kind="stable")]
    ordered, below = values[order], np.cumsum(weight[order])
    total, size = below[-1], float(np.abs(ordered[[0, -1]]).max())
    ends = np.flatnonzero(np.diff(ordered) > SAME * max(float(ordered[-1] - ordered[0]), SAME * size))
    ends = ends[(below[ends] >= least * (1 - SAME)) & (total - below[ends] >= least * (1 - SAME))]
    if not len(ends):
        return None
    under, over = below[ends], total - below[ends]
    if rule == "half":
        goodness = 1.0 - np.abs(under - over) / total
    else:
        moment = np.cumsum(weight[order] * (ordered - ordered[0]))
        goodness = under * over * (moment[ends] / under - (moment[-1] - moment[ends]) / over) ** 2
    at = ends[first_of_best(goodness, ends)]
    return float(ordered[at] + (ordered[at + 1] - ordered[at]) / 2)


def _bits(acquisitions: NDArray[np.bool_]) -> int:
    return sum(1 << int(a) for a in np.flatnonzero(acquisitions))


def first_of_best(values: Floats, rank: NDArray[np.intp]) -> int:
    """The largest value; of those that are as large but for rounding, the one that ranks first."""
    best = np.flatnonzero(values >= float(values.max()) * (1.0 - SAME))
    return int(best[np.argmin(rank[best])])


def _main_direction(scores: Floats, share: Floats) -> Floats:
    """The direction in which scores of several outputs vary most; its largest part is positive."""
    if scores.shape[1] == 1:
        return np.ones(1)
    away = scores - share @ scores / share.sum()
    _, vectors = np.linalg.eigh(away.T @ (away * share[:, None]))
    direction = vectors[:, -1]
    return direction * np.sign(direction[np.argmax(np.abs(direction))])


def _amount(budget: Any) -> float:
    amount = float(budget)
    if not amount >= 0:
        raise ValueError(f"A node's budget is 0 or more, got {budget!r}.")
    return amount
