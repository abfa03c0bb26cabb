"""Early exits (Cambazoglu et al., WSDM 2010): an additive model that stops scoring rows that look decided.

Trees, their order and their weights stay as they are; after some rounds a gate sends rows out with the score they have.
Nothing is learned but where the bars lie, and that only for the rules that compare with training scores.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from miserly.costs import CostTable
from miserly.estimators import PlanClassifier, PlanEstimator, PlanRegressor, constraints, row_weights
from miserly.plan import EXIT, Gate, Plan

ROUNDS_BETWEEN_EXITS = 10
MOST_PLACES = 1 << 30
SAMPLE = 1000  # rows whose cost says whether the exits come in time
LEAST_SAVING = 0.01  # of the cost
ROUNDING = 1e-12


class _EarlyExit(PlanEstimator):
    """An inner model, fitted or to be fitted, and gates put between its rounds."""

    cost_axis = "threshold"
    _required_parameters: ClassVar[list[str]] = ["estimator"]
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [constraints.has_methods("fit"), Plan],
        "costs": constraints.COSTS,
        "exits": [constraints.at_least(1), "array-like", None],
    }
    estimator: Any
    costs: CostTable | None
    rule: str
    exits: int | Sequence[int] | None

    @available_if(lambda self: hasattr(self.estimator, "prepare") and not isinstance(self.estimator, FrozenEstimator))
    def prepare(self, X: Any) -> Any:
        """Put the data in bins once, for several fits, as the inner model does."""
        return self.estimator.prepare(X)

    def _inner_plan(self, X: Any, y: Any, given: dict[str, Any]) -> Plan:
        """The plan that exits go into: fitted here, unless it is a `Plan` or frozen."""
        plan = self.estimator
        if isinstance(plan, Plan):
            if given.keys() - {"sample_weight"}:
                raise TypeError(f"A plan is fitted already: {', '.join(given)} would not be heard. Leave it out.")
            self.estimator_ = plan
            self.categories_ = {} if plan.schema is None else dict(plan.schema.categories)
        else:
            inner = clone(self.estimator)
            if self.costs is not None and "costs" in inner.get_params(deep=False):
                inner.set_params(costs=self.costs)
            self.estimator_ = inner.fit(X, y, **given)
            plan = getattr(self.estimator_, "plan_", None)
            if plan is None:
                raise ValueError(
                    f"{type(inner).__name__} has no plan_ after its fit. Early exits go into a Plan or into an "
                    "estimator that ends as one, such as GreedyMiserRanker."
                )
            self.categories_ = getattr(self.estimator_, "categories_", self.categories_)
        _check_additive(plan)
        return self._priced(plan)

    def _priced(self, plan: Plan) -> Plan:
        """The plan at the prices given here, if any; its columns must be those of X."""
        columns = [str(name) for name in getattr(self, "feature_names_in_", [])] or self.n_features_in_
        costs = (self.costs or plan.costs).bind(columns)
        if costs.named and plan.costs.named and costs.features != plan.costs.features:
            raise ValueError("The model reads its features in another order. Use X[list(plan.costs.features)].")
        if costs == plan.costs:
            return plan
        return replace(plan, costs=costs, notes={key: v for key, v in plan.notes.items() if key != "path"})

    def _exit_rounds(self, plan: Plan) -> list[int]:
        """The rounds after which rows may leave; one after the last would decide nothing."""
        n_rounds = len(plan.nodes)
        if self.exits is None:
            every = 1 if plan.tables.replaces else ROUNDS_BETWEEN_EXITS
            return list(range(every, n_rounds, every))
        if np.ndim(self.exits) == 0:
            parts = int(self.exits) + 1  # type: ignore[arg-type]
            rounds = {round(i * n_rounds / parts) for i in range(1, parts)}
            return sorted(rounds - {0, n_rounds})
        rounds = set(np.ravel(self.exits).tolist())
        wrong = [t for t in rounds if t < 1 or t != int(t)]
        if wrong:
            raise ValueError(f"exits lists rounds after which rows may leave, counted from 1, got {wrong[0]}.")
        return sorted(int(t) for t in rounds if t < n_rounds)

    def _warn_if_late(self, plan: Plan, rounds: list[int], X: Any) -> None:
        """Warn if rows have paid nearly everything before the first exit."""
        if not isinstance(X, list) and not hasattr(X, "__array__"):
            return  # rows in files, in bins or sparse ones
        costs = [float(run.cost.mean()) for run in plan.stages(self._checked(X)[:SAMPLE])]
        total = costs[-1] if costs else 0.0
        left = total - costs[rounds[0] - 1] if rounds else 0.0
        if total > 0.0 and left < LEAST_SAVING * total:
            first = f"the first one is after round {rounds[0]} of {len(plan.nodes)}" if rounds else "there is none"
            warnings.warn(
                f"Exits save at most {left / total:.1%} of the cost: {first}, and nearly everything is bought before. "
                "Give earlier ones, such as exits=[1, 2, 3], or put a cheap model in front.",
                stacklevel=3,
            )

    def _exit_scores(self, plan: Plan, rounds: list[int], X: Any) -> np.ndarray:
        """Rows × exits: the scores that rows would have there if none had left before."""
        without_exits = copy(self)
        without_exits.plan_ = plan

        def at_exits(plan: Plan, block: np.ndarray) -> np.ndarray:
            found = [s.score[:, 0] for t, s in enumerate(plan.stages(block), start=1) if t in rounds]
            return np.column_stack(found) if found else np.empty((len(block), 0))

        return without_exits._by_blocks(X, at_exits)

    def _with_exits(self, plan: Plan, rounds: list[int], gates: Sequence[Gate], tiers: bool) -> Plan:
        """The same rounds with gates; with tiers, who leaves later ranks higher."""
        gate_after = dict(zip(rounds, gates))
        nodes, passed_exits = [], 0
        for number, node in enumerate(plan.nodes, start=1):
            tier = passed_exits if tiers else node.tier
            if number in gate_after:
                node = replace(node, gate=gate_after[number], failed=EXIT)
                passed_exits += 1
            nodes.append(replace(node, tier=tier))
        self.exits_ = rounds
        notes = {
            **plan.notes,
            "estimator": type(self).__name__,
            "inner": plan.notes.get("estimator", "Plan"),
            "rule": self.rule,
            "exits": rounds,
        }
        return replace(plan, nodes=tuple(nodes), notes=notes)


class EarlyExitRanker(PlanRegressor, _EarlyExit):
    """Puts exits for unpromising documents into any model that adds up scores.

    `predict` gives each document the score with which it left; `rank_score`, the order to show, puts those who left
    early below the others. Both take `qid`; without it all rows are one query.

    Parameters
    ----------
    estimator : estimator or Plan
        Model that adds up scores: unfitted (it is cloned and fitted), fitted inside scikit-learn's
        `FrozenEstimator`, or a `Plan`.
    costs : CostTable or None, default=None
        Prices for the inner model; None keeps its own.
    rule : {"proximity", "rank", "capacity", "score"}, default="proximity"
        Who goes on: documents at most s below the k-th best of their query; the first k + s of the query; the best
        k + s of the rows so far; or those above a bar that leaves a share s of the training documents at the end.
    threshold : float, default=1.0
        s, 0 or more; the larger, the more documents go on and the more they cost.
    k : int, default=5
        k of the rules, 1 or more.
    exits : int, sequence of int or None, default=None
        A number of exits at even distances, the rounds after which rows may leave, or None: after every tenth
        round, and between the models of a `cascade`.
    schedule : {"tapered", "constant"}, default="tapered"
        Whether s shrinks with the rounds, or is the same at every exit.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    estimator_ : estimator or Plan
        The inner model.
    exits_ : list of int
        Rounds after which rows may leave.

    References
    ----------
    B. Cambazoglu et al. Early Exit Optimizations for Additive Machine Learned Ranking Systems. WSDM 2010.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> from miserly.baselines import EarlyExitRanker
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> qid = np.repeat(np.arange(10), 30)
    >>> inner = ms.GreedyMiserRanker(ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0]), n_estimators=20)
    >>> model = EarlyExitRanker(inner, threshold=0.1).fit(X, np.digitize(X[:, 0], [0.0, 1.0]), qid=qid)
    >>> bool(model.predict_cost(X, qid=qid).max() <= 9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_EarlyExit._parameter_constraints,
        "rule": [constraints.one_of("proximity", "rank", "capacity", "score")],
        "threshold": [constraints.limits(0)],
        "k": [constraints.at_least(1)],
        "schedule": [constraints.one_of("tapered", "constant")],
    }

    def __init__(
        self,
        estimator: Any,
        costs: CostTable | None = None,
        rule: str = "proximity",
        threshold: float = 1.0,
        k: int = 5,
        exits: int | Sequence[int] | None = None,
        schedule: str = "tapered",
    ) -> None:
        self.estimator = estimator
        self.costs = costs
        self.rule = rule
        self.threshold = threshold
        self.k = k
        self.exits = exits
        self.schedule = schedule

    def fit(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None, **fit_params: Any) -> EarlyExitRanker:
        """Fit the inner model, handing it what is given and, if it takes them, the queries; then put the exits in."""
        _, _, weight = self._fit_data(X, y, sample_weight, y_numeric=True, keep_rows=True)
        given = _given(fit_params, sample_weight)
        if not isinstance(self.estimator, Plan) and has_fit_parameter(self.estimator, "qid"):
            given["qid"] = qid
        plan = self._inner_plan(X, y, given)
        if plan.n_outputs > 1 or plan.classes is not None:
            raise ValueError("Documents are ranked by one number. Put exits into a ranker or a regressor.")
        rounds = self._exit_rounds(plan)
        self._warn_if_late(plan, rounds, X)
        if self.rule == "score":
            shares = _shares(min(self.threshold, 1.0), len(rounds), self.schedule == "tapered")
            bars = _bars(self._exit_scores(plan, rounds, X), weight, shares, [np.inf] * len(rounds))
            gates = [Gate.above(bar) if share < 1 else Gate() for bar, share in zip(bars, shares)]
        else:
            gates = [self._list_gate(t, len(plan.nodes)) for t in rounds]
        self.plan_ = self._with_exits(plan, rounds, gates, tiers=True)
        return self

    def predict(  # type: ignore[override]  # documents have queries
        self, X: Any, budget: float | None = None, confidence: float | None = None, *, qid: Any = None
    ) -> np.ndarray:
        """The score with which each document left; to rank them, use `rank_score`."""
        return self._by_blocks(X, lambda plan, block: plan.predict(block, _compared(plan, qid), budget), confidence)

    def rank_score(self, X: Any, budget: float | None = None, *, qid: Any = None) -> np.ndarray:
        """Scores to rank by: documents that left at an exit stand below all that went on from it."""
        return self._by_blocks(X, lambda plan, block: plan.rank_score(block, _compared(plan, qid), budget))

    def predict_cost(  # type: ignore[override]
        self,
        X: Any,
        budget: float | None = None,
        charge: str | None = None,
        confidence: float | None = None,
        *,
        qid: Any = None,
    ) -> np.ndarray:
        """What each document pays."""

        def ask(plan: Plan, block: np.ndarray) -> np.ndarray:
            return plan.predict_cost(block, _compared(plan, qid), budget, charge)  # type: ignore[arg-type]

        return self._by_blocks(X, ask, confidence)

    def suggest_grid(self, y: Any, n_points: int = 8, sample_weight: Any = None) -> np.ndarray:
        """Thresholds from nearly everyone stays to nearly everyone leaves; distances are in units of the grades."""
        if self.rule == "score":
            return np.geomspace(1.0, 0.01, n_points)
        if self.rule == "proximity":
            return np.geomspace(3.0, 0.03, n_points) * (_deviation(np.asarray(y, float), sample_weight) or 1.0)
        return np.geomspace(100.0, 1.0, n_points)

    def _list_gate(self, t: int, n_rounds: int) -> Gate:
        slack = self.threshold * ((n_rounds - t) / (n_rounds - 1) if self.schedule == "tapered" else 1.0)
        if self.rule == "proximity":
            return Gate.near_top(self.k, slack)
        places = self.k + round(min(slack, MOST_PLACES))
        return Gate.top(places) if self.rule == "rank" else Gate.among_seen(places)


class EarlyExitClassifier(PlanClassifier, _EarlyExit):
    """Puts exits for rows that look decided into any classifier that adds up scores, or between the models of a
    cascade.

    Parameters
    ----------
    estimator : estimator or Plan
        Model that adds up scores: unfitted (it is cloned and fitted), fitted inside scikit-learn's
        `FrozenEstimator`, or a `Plan`.
    costs : CostTable or None, default=None
        Prices for the inner model; None keeps its own.
    rule : {"confidence", "score"}, default="confidence"
        A row goes on while its most probable class has less than `threshold`; or, for a rare second class, while
        its score is above a bar that lets a share `threshold` of that class come to the end.
    threshold : float in [0, 1], default=0.9
        The larger, the more rows go on and the more they cost.
    exits : int, sequence of int or None, default=None
        A number of exits at even distances, the rounds after which rows may leave, or None: after every tenth
        round, and between the models of a `cascade`.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    classes_ : ndarray
        The classes, in order.
    estimator_ : estimator or Plan
        The inner model.
    exits_ : list of int
        Rounds after which rows may leave.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> from miserly.baselines import EarlyExitClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> inner = ms.GreedyMiserClassifier(ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0]), n_estimators=20)
    >>> model = EarlyExitClassifier(inner, threshold=0.9).fit(X, (X[:, 0] > 0).astype(int))
    >>> bool(model.predict_cost(X).max() <= 9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_EarlyExit._parameter_constraints,
        "rule": [constraints.one_of("confidence", "score")],
        "threshold": [constraints.limits(0, 1)],
    }

    def __init__(
        self,
        estimator: Any,
        costs: CostTable | None = None,
        rule: str = "confidence",
        threshold: float = 0.9,
        exits: int | Sequence[int] | None = None,
    ) -> None:
        self.estimator = estimator
        self.costs = costs
        self.rule = rule
        self.threshold = threshold
        self.exits = exits

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> EarlyExitClassifier:
        """Fit the inner model, handing it what is given; then put the exits in."""
        _, labels, weight = self._fit_data(X, y, sample_weight, y_numeric=False, keep_rows=True)
        plan = self._inner_plan(X, y, _given(fit_params, sample_weight))
        if plan.classes is None:
            raise ValueError("This model answers with numbers. Put exits into a classifier, or use EarlyExitRanker.")
        self.classes_ = getattr(self.estimator_, "classes_", plan.classes)
        rounds = self._exit_rounds(plan)
        self._warn_if_late(plan, rounds, X)
        if self.rule == "score":
            gates = self._negative_exits(plan, rounds, X, labels, weight)
        else:
            gates = [Gate.unless_confident(self.threshold) if self.threshold < 1 else Gate()] * len(rounds)
        self.plan_ = self._with_exits(plan, rounds, gates, tiers=self.rule == "score")
        return self

    def suggest_grid(self, y: Any, n_points: int = 8, sample_weight: Any = None) -> np.ndarray:
        """Thresholds from nearly everyone stays to nearly everyone leaves."""
        if self.rule == "score":
            return 1.0 - np.geomspace(1e-3, 0.5, n_points)
        chance = 1.0 / max(2, len(np.unique(y)))
        return 1.0 - (1.0 - chance) * np.geomspace(1e-3, 1.0, n_points)

    def _negative_exits(
        self, plan: Plan, rounds: list[int], X: Any, labels: np.ndarray, weight: np.ndarray | None
    ) -> list[Gate]:
        """Gates that most rows of the second class pass, and every row that would be given it."""
        if plan.classes is None or len(plan.classes) > 2 or plan.n_outputs > 1:
            raise ValueError("rule='score' rejects one of two classes. For more classes use rule='confidence'.")
        positive = (labels == plan.classes[1]) * (1.0 if weight is None else weight)
        if not positive.any():
            raise ValueError(f"y has no row of {plan.classes[1]!r}, from whose scores the bars are taken.")
        shares = _shares(self.threshold, len(rounds), tapered=True)
        highest = [_boundary(plan, t) for t in rounds]
        return [Gate.above(bar) for bar in _bars(self._exit_scores(plan, rounds, X), positive, shares, highest)]


def _check_additive(plan: Plan) -> None:
    last = len(plan.nodes) - 1
    for k, node in enumerate(plan.nodes):
        only_adds = node.is_direct and node.routing is None  # or puts its own sum in place of the score
        if not (only_adds and node.gate.kind == "open" and node.passed == (k + 1 if k < last else EXIT)):
            raise ValueError(
                f"Early exits go into a chain of nodes that only add to the score; node {k} does more than that. "
                "Give a boosted model without gates of its own."
            )
    if len(plan.roots) > 1 or plan.roots[:1] not in ((), (0,)):
        raise ValueError("Early exits go into one chain of nodes; this plan has several, or starts in its middle.")


def _given(fit_params: dict[str, Any], sample_weight: Any) -> dict[str, Any]:
    """What the inner fit is handed; weights only if there are any, since not every model takes them."""
    return fit_params if sample_weight is None else {**fit_params, "sample_weight": sample_weight}


def _compared(plan: Plan, qid: Any) -> Any:
    """The queries, for plans that compare their documents; the others may be run in blocks."""
    return qid if plan.by_query else None


def _shares(final: float, n_exits: int, tapered: bool) -> list[float]:
    """What share of all rows is to be left after each exit."""
    return [final ** (i / n_exits) if tapered else final for i in range(1, n_exits + 1)]


def _bars(
    scores: np.ndarray, weight: np.ndarray | None, shares: Sequence[float], highest: Sequence[float]
) -> Iterator[float]:
    """For each exit, a bar that at least that share of all rows, by weight, is above, and that is not too high.

    A row that was rejected before is not above; rows of one score stay together.
    """
    weight = np.ones(len(scores)) if weight is None else weight
    still_in = weight > 0
    for score, share, most in zip(scores.T, shares, highest):
        falling = np.flatnonzero(still_in)[np.argsort(-score[still_in], kind="stable")]
        enough = np.searchsorted(np.cumsum(weight[falling]), (share - ROUNDING) * weight.sum())
        lowest = score[falling[min(int(enough), len(falling) - 1)]]
        bar = min(float(np.nextafter(lowest, -np.inf)), most)
        still_in &= score > bar
        yield bar


def _boundary(plan: Plan, t: int) -> float:
    """The score above which a row that leaves after round t is given the second class."""
    node = plan.nodes[t - 1]
    scale = 1.0 if node.scale is None else float(node.scale[0])
    offset = 0.0 if node.offset is None else float(node.offset[0])
    return -offset / scale


def _deviation(y: np.ndarray, sample_weight: Any) -> float:
    """The standard deviation of y under row weights."""
    weight = row_weights(sample_weight, len(y))
    return float(np.sqrt(np.average((y - np.average(y, weights=weight)) ** 2, weights=weight)))
