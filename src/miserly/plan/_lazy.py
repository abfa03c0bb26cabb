"""The lazy kind of plan: a sum of trees that stops buying once no value that is left could change the answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from miserly._typing import Array, Floats
from miserly.costs import RowAccounts, set_bits
from miserly.kernels import lazy as kernels
from miserly.kernels.threads import in_blocks
from miserly.plan._dictionary import Trees
from miserly.plan._lazy_rule import Lazy
from miserly.plan._lazy_walk import LazyListWalk, LazyWalk
from miserly.plan._measured import repriced
from miserly.plan._node import EXIT, Node
from miserly.plan._plan import Budget, Charge, Plan
from miserly.plan._policy import accounts_of, number_only, refuse_row_prices
from miserly.plan._run import Run
from miserly.plan._validation import NO_CONFIDENCE, as_matrix, compared_queries

LINKS = {"logistic": kernels.LOGISTIC, "softmax": kernels.SOFTMAX, "shares": kernels.SHARES}
ALL_STEPS = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class LazyPlan(Plan):
    """A sum of trees that predicts the same classes, or orders the first rows of a query the same, for less.

    Before each purchase a row knows between which values its score must fall, whatever it has not bought. Once no value
    in between would change the class, or the first k places of its query, it stops. `Plan.lazy` makes one.

    Where a row stops early, its score and probabilities are estimates: unknown splits count both sides, by their share
    of training rows. The prediction is exact.

    Parameters
    ----------
    costs : CostTable
        The prices, bound to the features in the order of their columns.
    dictionary : Trees
        The trees.
    nodes : sequence of Node
        One node that replaces the prior, or none for a constant.
    prior : array of shape (n_outputs,)
        The scores of a row for which not even the evaluation of the trees fits the budget.
    link : str, default="identity"
        How scores are read, as in `Plan`.
    classes : array, default=None
        The labels. Plans that keep the class need them.
    roots : sequence of int, default=(0,)
        The number of the one node; empty if there is none.
    charge : {"learner", "path"}, default="learner"
        Rows pay for what they buy, whatever it is.
    notes : mapping, default={}
        For people; saved, never compared.
    schema : Schema, default=None
        What the columns mean: with it, frames and rows may come in the user's own words.
    means : None
        Must be None: trees have a way for missing values.
    unavailable : sequence of str, default=()
        Features that are never bought; their values are unknown.
    shares : array, default=None
        As in `Plan`. By default both sides of an unknown split count the same.
    error_costs : array of shape (n_classes, n_classes), default=None
        What predictions cost. Only for two classes.
    certificate : Certificate, default=None
        What was shown about the plan; see `certified`.
    profile : TrainingProfile, default=None
        What the training rows looked like, for monitoring.
    promise : Promise, default=None
        What the plan did on validation rows; see `with_promise`.
    laziness : Lazy
        What is kept, and how purchases are chosen. It is needed.

    Examples
    --------
    >>> import numpy as np
    >>> from miserly.costs import CostTable
    >>> from miserly.plan import Node, Plan, Trees
    >>> costs = CostTable.per_feature({"age": 1.0, "crp": 10.0})
    >>> no, leaf = [False] * 6, np.inf
    >>> left, value = [1, 1, 2, 4, 4, 5], [0.0, -2.0, 2.0, 0.0, -1.0, 1.0]
    >>> trees = Trees([0, 3, 6], [0, 0, 0, 1, 0, 0], [50.0, leaf, leaf, 3.0, leaf, leaf], left, no, value)
    >>> whole = Plan(costs, trees, (Node([0, 1], [1.0, 1.0]),), [0.0], link="logistic", classes=["well", "ill"])
    >>> plan = whole.lazy()
    >>> X = np.array([[61.0, 1.0], [40.0, 7.0]])
    >>> plan.predict(X), whole.predict_cost(X), plan.predict_cost(X)
    (array(['ill', 'well'], dtype='<U4'), array([11., 11.]), array([1., 1.]))
    """

    laziness: Lazy | None = None

    def _check(self) -> None:
        super()._check()
        refuse_row_prices(self)
        if self.laziness is None or not isinstance(self.dictionary, Trees) or len(self.nodes) > 1:
            raise ValueError("A lazy plan has a rule (laziness) and one node of trees.")
        if any(n.combine != "replace" or not n.is_direct or n.gate.kind != "open" for n in self.nodes):
            raise ValueError("The node of a lazy plan only adds up its trees.")
        if self.laziness.keep == "order" and self.n_outputs > 1:
            raise ValueError("Rows are ordered by one number. Keep the class instead.")
        if self.laziness.keep == "class":
            self._check_classes()

    def _check_classes(self) -> None:
        if self.classes is None:
            raise ValueError("A plan that predicts numbers has no class to keep. For a ranker, lazy(keep='order').")
        if self.link in ("vote", "coupled", "platt"):
            raise ValueError(f"The {self.link} link is not decided by the largest score; such plans cannot be lazy.")
        if (self._scale <= 0).any():
            raise ValueError("A lazy plan reads scores with a scale above 0.")
        if self.error_costs is not None and not (len(self.classes) == 2 and self.n_outputs == 1):
            raise ValueError("A lazy plan has error_costs only for two classes with one score.")
        if self.laziness is not None and self.laziness.confidence <= 1.0 and self.link not in LINKS:
            raise ValueError(f"The {self.link} link has no confidence that a lazy plan could stop at.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LazyPlan) and super().__eq__(other) and self.laziness == other.laziness

    @property
    def by_query(self) -> bool:
        """Whether the rows of a query are compared."""
        return self.laziness is not None and self.laziness.keep == "order"

    # ---- what the kernels take ------------------------------------------------------------------------------------

    @property
    def _scale(self) -> Floats:
        node = self.nodes[0] if self.nodes else None
        return np.ones(self.n_outputs) if node is None or node.scale is None else node.scale

    @property
    def _offset(self) -> Floats:
        node = self.nodes[0] if self.nodes else None
        return np.zeros(self.n_outputs) if node is None or node.offset is None else node.offset

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """The sets of acquisitions that features need, as bit sets: what can be bought in one step."""
        return tuple(sorted({self.tables.masks[f] for f in self.used_features} - {0}))

    @cached_property
    def model(self) -> tuple[Any, ...]:
        """The plan as the kernels take it."""
        trees, rule = self.dictionary, self.laziness
        assert isinstance(trees, Trees)
        assert rule is not None
        masks, number = self.tables.masks, {mask: g for g, mask in enumerate(self.groups)}
        step = self.tables.program("all").steps[0] if self.nodes else None
        none = np.zeros(0, np.int32)
        edges = (none, np.zeros(1, np.int32), none, np.zeros(0)) if step is None else _edges(step)
        constant = np.array(self.nodes[0].bias if self.nodes else self.prior, np.float64)
        shares = np.full(len(trees.left), 0.5) if self.shares is None else np.asarray(self.shares)
        table = (trees.start, trees.feature, trees.threshold, trees.left, trees.missing_right, trees.value, shares)
        sets = [list(set_bits(mask)) for mask in self.groups]
        offers = (
            np.array([number.get(mask, -1) for mask in masks], np.int64),
            np.cumsum([0, *map(len, sets)]).astype(np.int64),
            np.array([a for numbers in sets for a in numbers], np.int64),
            np.array(self.costs.price_list, np.float64),
        )
        kind = kernels.ORDER if rule.keep == "order" else kernels.SIGN if self.n_outputs == 1 else kernels.LARGEST
        reading = (kind, np.array(self._scale), np.array(self._offset) - self._border, rule.adaptive)
        return table, (*edges, constant), offers, reading

    @property
    def _border(self) -> float:
        """The calibrated score above which the second of two classes is predicted."""
        if self.error_costs is None or self.n_outputs > 1:
            return 0.0
        (right_0, wrong_0), (wrong_1, right_1) = self.error_costs
        for_second, for_first = wrong_1 - right_1, wrong_0 - right_0
        if not (for_second > 0.0 and for_first > 0.0):
            raise ValueError("A lazy plan's mistakes cost more than its correct predictions.")
        return math.log(for_first / for_second)

    @property
    def link_number(self) -> int:
        """How the kernels read confidence."""
        return LINKS.get(self.link, kernels.SOFTMAX)

    @cached_property
    def at_first(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which features every row knows, and which it can never know."""
        away = np.zeros(len(self.costs.features), bool)
        away[[self.tables.feature_numbers[name] for name in self.unavailable]] = True
        known = np.array([not mask for mask in self.tables.masks], bool) & ~away
        return known, away

    @cached_property
    def evaluated(self) -> int:
        """All learners, as a bit set."""
        return self.tables.purchase(0)[1] if self.nodes else 0

    # ---- running --------------------------------------------------------------------------------------------------

    def run(
        self,
        X: Any,
        qid: Any = None,
        budget: Budget = None,
        charge: Charge | None = None,
        confidence: float | None = None,
        strict: bool = False,
    ) -> Run:
        """Scores, costs and the reason to stop of every row. What does not fit the budget is skipped.

        Parameters
        ----------
        X : array or frame, rows × features
            The values; a row reads only those that it buys.
        qid : array, optional
            The query of each row, for plans that keep the order.
        budget : float, optional
            The most that a row may pay.
        charge : ignored
            Rows pay for what they buy.
        confidence : float, optional
            Rows stop when their most probable class has this probability.
        strict : bool, default=False
            Whether the upper quantile of a measured price has to fit the budget, not only its estimate.
        """
        if confidence is not None:
            return self.stopping(confidence).run(X, qid, budget, strict=strict)
        if strict and budget is not None:
            return repriced(self, self.tables.cautious.run(X, qid, budget), X)
        matrix = as_matrix(X, self.costs.features, self.costs.named, self.schema)
        return self.run_all(matrix, compared_queries(self, qid, len(matrix)), _one_cap(budget))[0]

    def run_all(
        self, X: Array, query: Array, budget: float = math.inf, steps: int = ALL_STEPS
    ) -> tuple[Run, NDArray[np.int64]]:
        """The run of all rows, and how many of each row's trees are not known to the end."""
        rule, n = self.laziness, len(X)
        assert rule is not None
        paid = self.tables.ledger.price(0, self.evaluated)
        score, n_open = np.tile(self.prior, (n, 1)), np.full(n, len(self.dictionary), np.int64)
        blocked, nowhere = np.zeros(n, bool), np.zeros(n, np.int64)
        owned = np.zeros((n, len(self.costs.acquisitions)), bool)
        if paid > budget:
            run = Run(score, score.copy(), np.zeros(n), nowhere, np.full((n, 1), EXIT), ~blocked)
            return run.with_accounts(RowAccounts(self.tables.ledger, n)), n_open
        limits = (budget, paid, rule.confidence, self.link_number)
        first, results = self.at_first, (steps, owned, score, blocked, n_open)
        if rule.keep == "order":
            order = np.argsort(query, kind="stable")
            ends = np.flatnonzero(np.diff(query[order])) + 1
            lists = np.split(order, ends) if n else []
            in_blocks(len(lists), lambda a, b: self._run_lists(X, lists[a:b], limits, rule.k, results))
        else:
            in_blocks(n, lambda a, b: kernels.run_rows(X, a, b, self.model, limits, *first, *results))
        accounts, z = accounts_of(self, owned, self.evaluated), score * self._scale + self._offset
        exits = np.full((n, 1), 0 if self.nodes else EXIT, np.int64)
        return Run(score, z, accounts.totals(), nowhere, exits, blocked).with_accounts(accounts), n_open

    def _run_lists(self, X: Array, lists: Sequence[Array], limits: Any, k: int, results: Any) -> None:
        for rows in lists:
            kernels.run_list(X, rows, self.model, limits, k, *self.at_first, *results)

    def contributions(
        self, X: Any, qid: Any = None, budget: float | None = None, confidence: float | None = None
    ) -> Any:
        """Refused: scores of rows that stopped early are bounds, which purchases narrow and do not move."""
        raise ValueError("A lazy plan has no contributions. Ask the plan that it was made of.")

    def start(
        self,
        budget: Budget = None,
        given: Mapping[str, float] | None = None,
        without: Sequence[str] = (),
        owned: Sequence[str] = (),
        tolerant: bool = False,
    ) -> LazyWalk:
        """Begin one row, from any state: values of any features may be `given`, nobody pays for acquisitions that are
        `owned`, and the walk never asks for those that it must do `without`."""
        return LazyWalk(self, _one_cap(budget), given or {}, without, owned)

    def start_list(
        self,
        n_rows: int,
        budget: Budget = None,
        given: Sequence[Mapping[str, float]] | None = None,
        without: Sequence[str] = (),
        owned: Sequence[Sequence[str]] | None = None,
    ) -> LazyListWalk:
        """Begin the documents of one query; the budget is for each document."""
        return LazyListWalk(self, given or [{}] * n_rows, _one_cap(budget), without, owned)

    def stages(self, X: Any, qid: Any = None) -> Iterator[Run]:
        """The state of all rows after each number of purchases, until nobody buys any more."""
        matrix = as_matrix(X, self.costs.features, self.costs.named, self.schema)
        query, last = compared_queries(self, qid, len(matrix)), None
        for step in range(len(self.groups) + 1):
            this = self.run_all(matrix, query, steps=step)[0]
            if last is not None and np.array_equal(this.cost, last.cost):
                return
            yield this
            last = this

    # ---- other plans ----------------------------------------------------------------------------------------------

    def stopping(self, confidence: float) -> LazyPlan:
        """The plan in which rows also stop when their most probable class has this probability or more."""
        if self.classes is None:
            raise ValueError(NO_CONFIDENCE)
        if not 0.0 < confidence <= 1.0:
            raise ValueError(f"confidence is a probability above 0, at most 1, got {confidence:g}.")
        assert self.laziness is not None
        return replace(
            self, laziness=replace(self.laziness, confidence=float(confidence)), certificate=None, promise=None
        )

    def truncate(self, budget: float) -> Plan:
        raise ValueError("A lazy plan keeps a budget row by row. Use predict(X, budget=...).")


def lazy_plan(plan: Plan, rule: Lazy) -> LazyPlan:
    """The lazy form of a plan that only adds up trees; the trees stay in the order in which the plan adds them."""
    if not isinstance(plan.dictionary, Trees) or (plan.nodes and not plan.tables.chain):
        raise ValueError(
            "Only a chain of nodes without gates over trees can be made lazy. Where documents leave already "
            "(put_in_front, early exits), take the cheaper of the two on validation rows."
        )
    nodes: list[Node] = []
    for k in plan.tables.chain:
        node = plan.nodes[k]
        if not node.is_direct or node.routing is not None:
            raise ValueError(f"Node {k} is more than a sum ({node.combine}, {node.activation}); it cannot be lazy.")
        if node.combine == "replace":
            if len(node.outputs) < plan.n_outputs:
                raise ValueError(f"Node {k} replaces some of the scores only; it cannot be lazy.")
            nodes = []
        elif nodes and node.has_bias:
            raise ValueError(f"Node {k} adds a constant after trees; it cannot be lazy.")
        nodes.append(node)
    bias, learners, weights = plan.prior.copy(), [], []
    for node in nodes:
        columns = np.array(node.outputs)
        if node.combine == "replace":
            bias = np.zeros(plan.n_outputs)
        bias[columns] += node.bias
        wide = np.zeros((len(node.learners), plan.n_outputs))
        wide[:, columns] = node.weights
        learners.append(node.learners)
        weights.append(wide)
    if len(np.unique(np.concatenate([*learners, np.zeros(0, np.int32)]))) < sum(map(len, learners)):
        raise ValueError("Some tree is added twice; such a plan cannot be lazy.")
    merged = []
    if nodes:
        last, outputs = nodes[-1], tuple(range(plan.n_outputs))
        scale, offset = (
            _wide(given, last, plan.n_outputs, to) for given, to in ((last.scale, 1.0), (last.offset, 0.0))
        )
        joined = np.concatenate(learners), np.concatenate(weights)
        merged.append(Node(*joined, bias=bias, outputs=outputs, combine="replace", scale=scale, offset=offset))
    fields = {name: getattr(plan, name) for name in Plan.__dataclass_fields__}
    fields |= {
        "nodes": tuple(merged),
        "roots": (0,) if merged else (),
        "certificate": None,
        "promise": None,
        "laziness": rule,
    }
    return LazyPlan(**fields)


def _wide(given: Floats | None, node: Node, n_outputs: int, default: float) -> Floats | None:
    """A node's calibration for all outputs."""
    if given is None:
        return None
    wide = np.full(n_outputs, default)
    wide[np.array(node.outputs)] = given
    return wide


def _edges(step: Any) -> tuple[Array, Array, Array, Array]:
    return step.learners, step.pointer, step.column, step.weight


def _one_cap(budget: Budget) -> float:
    return math.inf if budget is None else number_only(budget)
