"""Anytime Feature Representations (Xu, Kusner, Huang, Weinberger, ICML 2013): an SVM that may be stopped at any cost.

A row is mapped to dimensions that are sums of cost-sensitive trees, φ^s = Σ_t h_t^s, and a linear SVM stands on them.
Each dimension starts with a tree of the Greedy Miser; each later tree minimises ½ mean (g + h)² + λ · (price of what
it is first to use), with g the gradient of the SVM's soft errors on rows that it was not fitted to, through its
optimality conditions (`_nested_svm`). After S dimensions λ is halved and S more are appended. Before anything
is bought, trees and SVM are stored as a stage: what is answered if the money ends here.

Where evaluating so many trees is expensive, the miser does not start again at each λ, it goes on: S/2 trees, together
one dimension, then λ falls by √2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight

from miserly._blas import blas_threads
from miserly._typing import Floats
from miserly.boosting import (
    BinnedData,
    Boosted,
    ModelPricing,
    Round,
    Settings,
    TreeLimits,
    bin_data,
    boost_from,
)
from miserly.costs import CostTable, set_bits, total_price
from miserly.estimators._base import Anytime, PlanClassifier, check_eval_set, constraints, falling_tradeoffs
from miserly.estimators.afr._nested_svm import NestedSVM, SVMState
from miserly.kernels.threads import threads
from miserly.plan import EXIT, Node, Plan, stack_trees
from miserly.solvers import Inside, minimise, platt

Table = dict[str, np.ndarray]
START_RATE = 0.1
LEAST_C, MOST_C, STEP_OF_C, MOST_STEP = 1e-3, 1e3, 10.0, 0.5
ENOUGH_TO_CALIBRATE = 50
RISE, MOST_RISE, MOST_HALVES = 1.25, 4.0, 5


@dataclass(frozen=True)
class AFRStage:
    """How one class against the rest is read at a stage: J = b + Σ_t w[dims[t]] h_t, log-odds = scale · J + offset."""

    output: int
    trees: NDArray[np.int32]
    dims: NDArray[np.intp]
    w: Floats
    b: float
    C: float
    scale: float
    offset: float


@dataclass(frozen=True)
class _Hinge:
    """The loss of each dimension's first tree: ½μ max(0, 1 − yf)²."""

    y: Floats
    weights: Floats
    n_outputs = 1

    def constant(self, y: np.ndarray, weight: Any = None) -> np.ndarray:
        return np.array([float(np.average(self.y, weights=self.weights))])

    def gradients(self, y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        slack = np.maximum(0.0, 1.0 - self.y * score)
        return self.weights * self.y * slack, self.weights * (slack > 0)

    def value(self, y: np.ndarray, score: np.ndarray, weight: Any = None) -> float:
        return 0.5 * float(np.mean(self.weights * np.maximum(0.0, 1.0 - self.y * score[0]) ** 2))


@dataclass(frozen=True)
class _SoftErrors:
    """AFR's loss as a function of one dimension, in units of the score.

    The gradient is divided by |w_s|, so that what a tree gains compares with λ whatever the size of w. The curvature
    given with it, the mean one of the validation rows' loss, makes a step a part of what a row's score must move.
    """

    svm: NestedSVM
    s: int
    n_outputs = 1

    def constant(self, y: np.ndarray, weight: Any = None) -> np.ndarray:
        return np.zeros(1)

    def gradients(self, y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        svm = self._svm_at(score)
        size = abs(float(svm.w[self.s]))
        soft = svm.soft_errors(svm.valid)
        curve = svm.a**2 * size * float(np.mean(soft * (1.0 - soft))) if len(soft) else 0.0
        slope = svm.slope(self.s)
        return -slope[None] / size if size else np.zeros_like(score), np.full_like(score, curve)

    def value(self, y: np.ndarray, score: np.ndarray, weight: Any = None) -> float:
        return self._svm_at(score).loss()

    def _svm_at(self, score: np.ndarray) -> NestedSVM:
        """The SVM's minimum where the dimension has these values."""
        self.svm.change(self.s, score[0])
        return self.svm


@dataclass(frozen=True)
class _MachineState:
    """The trees under one class's SVM, by number and by the dimension they belong to.

    `score` is what the miser's trees that go on have come to, for T and V; `changed` says whether anything has been
    added since the last stage.
    """

    trees: tuple[int, ...] = ()
    dims: tuple[int, ...] = ()
    score: Floats | None = None
    changed: bool = False


@dataclass
class _Machine:
    """One class against the rest: its SVM and what is under it. It is idle when its last level was taken back."""

    output: int
    svm: NestedSVM
    state: _MachineState = _MachineState()
    idle: bool = False

    @property
    def held_out(self) -> slice:
        """The rows O."""
        return slice(self.svm.n_seen, None)

    def errors(self) -> float:
        """Soft errors of the rows held out."""
        return float(self.svm.weights[self.held_out] @ self.svm.soft_errors(self.held_out))

    def learn_penalty(self) -> None:
        """A step along the gradient of the soft errors in log C, on the rows that no tree has seen."""
        svm, n = self.svm, len(self.svm.y) - self.svm.n_seen
        if n:
            step = STEP_OF_C * svm.penalty * svm.slope_of_penalty(self.held_out) / n
            C = svm.penalty * math.exp(-max(-MOST_STEP, min(MOST_STEP, step)))
            svm.penalty = max(LEAST_C / svm.n_train, min(MOST_C / svm.n_train, C))

    def stage(self) -> AFRStage:
        """The SVM fitted to all rows; its scores calibrated on the rows held out, or on all that it was not fitted to
        while it was learned, or, if there are none, on all."""
        svm = self.svm
        everyone = Inside(svm.phi, svm.y, svm.penalty * svm.n_train / len(svm.y), svm.weights)
        w, b, _ = minimise(everyone, svm.w, svm.b)
        enough = len(svm.y) - svm.n_seen >= ENOUGH_TO_CALIBRATE
        rest = self.held_out if enough else slice(svm.n_train % len(svm.y), None)
        scale, offset = platt(svm.phi[rest] @ w + b, svm.y[rest] > 0, svm.weights[rest])
        trees, dims = np.array(self.state.trees, np.int32), np.array(self.state.dims)
        return AFRStage(self.output, trees, dims, w, b, svm.penalty, scale, offset)


@dataclass(frozen=True)
class _Grown:
    """What all classes share: the trees, the stages, and how many trees there were at the last stage."""

    tables: tuple[Table, ...] = ()
    stages: tuple[AFRStage, ...] = ()
    n_stored: int = 0


@dataclass(frozen=True)
class _Snapshot:
    """All that a level of one class may change."""

    machine: _MachineState
    svm: SVMState
    grown: _Grown


class _AFRGrowth:
    """The fit: the outer loop is λ, the inner loop the classes, which share what is bought."""

    def __init__(
        self, model: AFRClassifier, machines: list[_Machine], binned: BinnedData, held_out: np.ndarray, costs: CostTable
    ) -> None:
        self.model, self.machines, self.binned, self.held_out, self.costs = model, machines, binned, held_out, costs
        self.limits = TreeLimits(model.max_depth, None, model.min_samples_leaf)
        self.grown = _Grown()
        self.trace: list[tuple[float, ...]] = []
        self.evaluation = float(np.max(costs.evaluation, initial=0.0))
        self.pricing = ModelPricing(costs, 0.0)
        self.cheapest = min((p for p in costs.price_list if p > 0), default=1.0)
        self.goes_on, self.n_rounds = False, model.n_dims

    def run(self) -> None:
        """λ falls until all levels are done or nothing is left to buy and to improve."""
        first = self._first_tradeoff() if self.model.tradeoff0 is None else float(self.model.tradeoff0)
        for lam, goes_on in falling_tradeoffs(first, self._evaluation_and_spent, self.model.n_levels):
            self.goes_on = goes_on
            self.n_rounds = math.ceil((0.5 if goes_on else 1.0) * self.model.n_dims)
            while self._leaps(lam) and self._fill(lam):
                pass
            self._levels(lam, self.binned)
            nothing_left = lam == 0.0 or self.pricing.owned.all()
            if all(machine.idle for machine in self.machines) and nothing_left:
                break
        self.store()

    def _evaluation_and_spent(self) -> tuple[float, float]:
        """What evaluating the trees of a level costs, and what is spent so far."""
        n_trees = len(self.machines) * self.model.n_dims * (1 + self.model.n_trees_per_dim)
        return self.evaluation * n_trees, self._spent(self.pricing) + self.evaluation * len(self.grown.tables)

    def _levels(self, lam: float, data: BinnedData) -> None:
        self.pricing = self._pricing_at(lam)
        for machine in self.machines:
            self._level(machine, data)
        if self.pricing.evaluation:
            self.store()

    def _pricing_at(self, lam: float) -> ModelPricing:
        """What is owned already is free."""
        pricing = ModelPricing(self.costs, lam)
        pricing.own(np.flatnonzero(self.pricing.owned))
        return pricing

    def _spent(self, pricing: ModelPricing) -> float:
        return total_price(p for p, owned in zip(self.costs.price_list, pricing.owned) if owned)

    def _leaps(self, lam: float) -> bool:
        """Whether the first trees of a level would multiply what is spent, so that budgets between get nothing."""
        spent = self._spent(self.pricing)
        return bool(spent) and self._bought_at(lam, self.binned) > MOST_RISE * spent

    def _bought_at(self, lam: float, data: BinnedData) -> float:
        """What all that is owned costs after the first trees of a level."""
        pricing = self._pricing_at(lam)
        for machine in self.machines:
            self._start(machine, data, self.n_rounds, pricing)
        return self._spent(pricing)

    def _fill(self, lam: float) -> bool:
        """A level with the features that leave no gap, at the first λ, down to a small part, at which one pays."""
        data, spent = self._within_reach(self.binned), self._spent(self.pricing)
        for halves in range(MOST_HALVES):
            if self._bought_at(lam / 2.0**halves, data) > spent:
                self._levels(lam / 2.0**halves, data)
                break
        return self._spent(self.pricing) > spent

    def _within_reach(self, data: BinnedData) -> BinnedData:
        """The data with those features that do not multiply what is spent; with all before the first purchase."""
        spent = self._spent(self.pricing)
        if not spent:
            return data
        missing = np.array(self.costs.price_list) * ~self.pricing.owned
        prices = [math.fsum(missing[a] for a in set_bits(mask)) for mask in self.costs.feature_masks]
        usable = np.array(prices) <= (MOST_RISE - 1.0) * spent
        return replace(data, n_bins=np.where(usable, data.n_bins, 0))

    def _first_tradeoff(self) -> float:
        """The largest λ, by halves from where nothing can pay, at which the first tree of some class pays."""
        lam, least = 1.0 / self.cheapest, 1e-12 / max(*self.costs.price_list, self.cheapest)
        while lam > least:
            if any(self._start(machine, self.binned, 1, self._pricing_at(lam)).rounds for machine in self.machines):
                break
            lam /= 2.0
        return lam if any(self.costs.price_list) else 0.0

    def _level(self, machine: _Machine, data: BinnedData) -> None:
        """More dimensions at the present λ; taken back if they bought nothing and did not help the rows held out."""
        before, errors, n_owned = self._snapshot(machine), machine.errors(), int(self.pricing.owned.sum())
        self._start(machine, data, self.n_rounds, self.pricing, keep=True)
        if not machine.idle or int(self.pricing.owned.sum()) > n_owned:
            machine.learn_penalty()
            for s in range(before.svm.n_dims, machine.svm.n_dims):
                self._improve(machine, data, s)
        machine.idle = int(self.pricing.owned.sum()) == n_owned and not machine.errors() < errors
        if machine.idle:
            self._restore(machine, before)

    def _snapshot(self, machine: _Machine) -> _Snapshot:
        return _Snapshot(machine.state, machine.svm.snapshot(), self.grown)

    def _restore(self, machine: _Machine, before: _Snapshot) -> None:
        """Undo a level; stages of other classes that were stored in it stay."""
        machine.state = before.machine
        machine.svm.restore(before.svm)
        stages = before.grown.stages
        others = tuple(stage for stage in self.grown.stages[len(stages) :] if stage.output != machine.output)
        self.grown = replace(before.grown, stages=stages + others)

    def _start(
        self, machine: _Machine, data: BinnedData, n_rounds: int, pricing: ModelPricing, keep: bool = False
    ) -> Boosted:
        """Rounds of the Greedy Miser: from nothing, each tree that is kept begins a dimension; or from where the last
        ones ended, and they are one dimension."""
        svm = machine.svm
        n_dims, unit = svm.n_dims, START_RATE**2 if self.goes_on else START_RATE
        loss = _Hinge(svm.y[: svm.n_seen], svm.weights[: svm.n_seen])
        begin = machine.state.score if self.goes_on else None
        score = np.full(svm.n_seen, loss.constant(loss.y)[0]) if begin is None else begin

        def after(this: Round, scores: Floats) -> bool:
            nonlocal score
            [table], [tree], [new] = this.tables, this.trees, scores
            if tree.bought or self._evaluation_has_risen():
                self.store()
            table["value"] /= unit
            column = np.concatenate([(new - score) / unit, self._of_held_out(table)])
            score = new
            if self.goes_on and svm.n_dims > n_dims:
                svm.change(n_dims, svm.phi[:, n_dims] + column)
            else:
                svm.add(column)
            if self.goes_on:
                machine.state = replace(machine.state, score=new)
                machine.learn_penalty()
            self._keep(machine, table, svm.n_dims - 1)
            return False

        settings = Settings(n_rounds, START_RATE, self.limits)
        return boost_from(score[None], data, loss.y, loss, pricing, settings, after if keep else None)[0]

    def _improve(self, machine: _Machine, data: BinnedData, s: int) -> None:
        """Trees along the gradient of the soft errors, until there are more errors on the rows held out."""
        svm = machine.svm
        old, errors = svm.phi[:, s].copy(), machine.errors()

        def after(this: Round, scores: Floats) -> bool:
            nonlocal old, errors
            [table], [tree] = this.tables, this.trees
            new = np.concatenate([scores[0], old[svm.n_seen :] + self._of_held_out(table)])
            svm.change(s, new)
            if machine.errors() > errors:
                svm.change(s, old)
                self.pricing.give_back()
                return True
            if tree.bought or self._evaluation_has_risen():
                svm.change(s, old)
                self.store()
                svm.change(s, new)
            self._keep(machine, table, s)
            machine.learn_penalty()
            old, errors = new, machine.errors()
            return False

        if svm.w[s]:
            settings = Settings(self.model.n_trees_per_dim, self.model.learning_rate, self.limits)
            rows, score = self._within_reach(data), old[None, : svm.n_seen]
            boost_from(score, rows, svm.y[: svm.n_seen], _SoftErrors(svm, s), self.pricing, settings, after)

    def _keep(self, machine: _Machine, table: Table, s: int) -> None:
        state, tables = machine.state, self.grown.tables
        machine.state = replace(state, trees=(*state.trees, len(tables)), dims=(*state.dims, s), changed=True)
        self.grown = replace(self.grown, tables=(*tables, table))
        if machine.output == 0:
            w = np.zeros(2)
            w[: machine.svm.n_dims] = machine.svm.w[:2]
            self.trace.append((*w, machine.svm.b, machine.svm.penalty))

    def _of_held_out(self, table: Table) -> Floats:
        return stack_trees([table]).evaluate(self.held_out, 0)

    def _evaluation_has_risen(self) -> bool:
        """Whether evaluating the trees since the last stage has raised the cost by so much that it is worth a stage."""
        now, before = (self.evaluation * n for n in (len(self.grown.tables), self.grown.n_stored))
        return now - before > (RISE - 1.0) * (self._spent(self.pricing) + now)

    def store(self) -> None:
        """How the classes that changed since they were stored last are read now."""
        changed = [machine for machine in self.machines if machine.state.changed]
        stages = (*self.grown.stages, *(machine.stage() for machine in changed))
        self.grown = replace(self.grown, stages=stages, n_stored=len(self.grown.tables))
        for machine in changed:
            machine.state = replace(machine.state, changed=False)


class AFRClassifier(Anytime, PlanClassifier):
    """One training, a prediction for every budget: an SVM over sums of cost-sensitive trees.

    Half of the rows fit the SVM, four tenths judge it, a tenth is held out to stop, to learn C and to calibrate,
    unless `eval_set` is given for that. The model is stored as a stage before each purchase.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    n_dims : int, default=20
        S, 1 or more: dimensions appended at each λ.
    n_trees_per_dim : int, default=10
        T, 0 or more: most trees along AFR's gradient for each dimension.
    tradeoff0 : float or None, default=None
        First λ, 0 or more; None is the largest at which the first tree pays.
    n_levels : int, default=16
        How often λ is halved, 1 or more.
    learning_rate : float in (0, 1], default=0.05
        Step of a tree in units of the score.
    max_depth : int or None, default=3
        Most levels of splits of a tree, 1 or more; None is no limit.
    min_samples_leaf : int, default=20
        Fewest rows of a leaf, 1 or more.
    C : float, default=1.0
        Weight of the mean squared hinge against ½‖w‖², above 0; learning starts there.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes in the loss, as in scikit-learn; never in the cost.
    budget : float or None, default=None
        Where the plan is cut, 0 or more; `within` does so later.
    max_bins : int, default=255
        Most bins of a feature, 2 to 255.
    random_state : int, RandomState or None, default=None
        Seed of everything that is drawn.
    n_jobs : int or None, default=None
        Threads of the kernels: a number, −1 for all cores, None for as many as numba uses now.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    classes_ : ndarray
        The classes, in order.
    stages_ : list of AFRStage
        The SVM at each stage.
    trace_ : ndarray
        First weights, intercept and C after each tree.

    References
    ----------
    Z. Xu, M. Kusner, G. Huang, K. Weinberger. Anytime Representation Learning. ICML 2013, equation (6); Xu's thesis
    (2014), equations (2.24) to (2.33) and algorithm 4.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = ms.AFRClassifier(costs, n_dims=3, n_trees_per_dim=2, n_levels=4, random_state=0).fit(X, y)
    >>> bool(model.within(3.0).predict_cost(X).max() <= 3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "costs": constraints.COSTS,
        "n_dims": [constraints.at_least(1)],
        "n_trees_per_dim": [constraints.at_least(0)],
        "tradeoff0": [constraints.not_negative(), None],
        "n_levels": [constraints.at_least(1)],
        "learning_rate": [constraints.share()],
        "max_depth": [constraints.at_least(1), None],
        "min_samples_leaf": [constraints.at_least(1)],
        "C": [constraints.positive()],
        "class_weight": [constraints.one_of("balanced"), dict, None],
        "budget": [constraints.not_negative(), None],
        "max_bins": [constraints.whole(2, 255)],
        "random_state": ["random_state"],
        "n_jobs": constraints.N_JOBS,
    }

    def __init__(
        self,
        costs: CostTable | None = None,
        n_dims: int = 20,
        n_trees_per_dim: int = 10,
        tradeoff0: float | None = None,
        n_levels: int = 16,
        learning_rate: float = 0.05,
        max_depth: int | None = 3,
        min_samples_leaf: int = 20,
        C: float = 1.0,
        class_weight: Any = None,
        budget: float | None = None,
        max_bins: int = 255,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.costs = costs
        self.n_dims = n_dims
        self.n_trees_per_dim = n_trees_per_dim
        self.tradeoff0 = tradeoff0
        self.n_levels = n_levels
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.C = C
        self.class_weight = class_weight
        self.budget = budget
        self.max_bins = max_bins
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, eval_set: Any = None) -> Self:
        """Learn all stages.

        Parameters
        ----------
        X : array-like, sparse matrix, frame of shape (n_rows, n_features)
            Training rows.
        y : array-like of shape (n_rows,)
            Labels.
        sample_weight : array-like or None, default=None
            Weights of the rows, 0 or more.
        eval_set : tuple or None, default=None
            Validation rows, (X, y), held out instead of a tenth of the rows.

        Returns
        -------
        self
        """
        X, y, weight = self._fit_data(X, y, sample_weight, y_numeric=False)
        self.classes_ = self._find_classes(y)
        costs = self._bound_costs()
        mu = self._emphasis(y, weight)
        order, n_train, n_seen = self._dealt(y, hold_out=eval_set is None)
        held_out = X[order[n_seen:]]
        y, mu, seen = y[order], mu[order], order[:n_seen]
        if eval_set is not None:
            held_out, y_held, _ = check_eval_set(self, eval_set)
            y, mu = np.concatenate([y, y_held]), np.concatenate([mu, np.ones(len(y_held))])
        held_out = np.ascontiguousarray(held_out.toarray() if issparse(held_out) else held_out)
        positive = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        with threads(self.n_jobs, X.shape[0] * X.shape[1]), blas_threads():
            data = bin_data(X, self.max_bins, n_jobs=self.n_jobs)
            data = BinnedData(data.words[:, seen], data.cuts, data.n_bins)
            machines = [
                _Machine(k, NestedSVM(np.where(y == label, 1.0, -1.0), mu, n_train, n_seen - n_train, self.C / n_train))
                for k, label in enumerate(positive)
            ]
            growth = _AFRGrowth(self, machines, data, held_out, costs)
            growth.run()
        self.stages_ = list(growth.grown.stages)
        self.trace_ = np.array(growth.trace)
        share = np.array([mu @ (y == label) for label in positive]) / mu.sum()
        self.plan_ = self._cut(self._plan(growth, costs, np.log(share / (1.0 - share))))
        return self

    def _emphasis(self, y: np.ndarray, weight: np.ndarray | None) -> Floats:
        """μ: weights of rows and classes, one in the mean."""
        mu = np.ones(len(y)) if weight is None else weight
        if self.class_weight is not None:
            of_class = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
            mu = mu * of_class[np.searchsorted(self.classes_, y)]
        return mu * (len(mu) / mu.sum())

    def _dealt(self, y: np.ndarray, hold_out: bool) -> tuple[NDArray[np.intp], int, int]:
        """The rows as T, V, O, dealt class by class: every second to T, of the others every fifth to O."""
        shuffled = check_random_state(self.random_state).permutation(len(y))
        part = np.empty(len(y), np.intp)
        for label in self.classes_:
            rows = shuffled[y[shuffled] == label]
            place = np.arange(len(rows)) % 10
            part[rows] = np.where(place % 2 == 0, 0, np.where((place == 9) & hold_out, 2, 1))
        return np.argsort(part, kind="stable"), int((part == 0).sum()), int((part < 2).sum())

    def _plan(self, growth: _AFRGrowth, costs: CostTable, prior: Floats) -> Plan:
        """A chain of open gates: each stage replaces the scores of the classes that changed."""
        n = len(growth.grown.stages)
        nodes = [
            Node(
                learners=stage.trees,
                weights=stage.scale * stage.w[stage.dims],
                bias=np.array([stage.scale * stage.b + stage.offset]),
                outputs=(stage.output,),
                combine="replace",
                passed=number if number < n else EXIT,
            )
            for number, stage in enumerate(growth.grown.stages, start=1)
        ]
        return self._with_background(
            Plan(
                costs=costs,
                dictionary=stack_trees(growth.grown.tables),
                nodes=tuple(nodes),
                prior=prior,
                link="logistic",
                classes=self.classes_,
                roots=(0,) if nodes else (),
                notes={"estimator": type(self).__name__, **self._category_notes()},
            )
        )
