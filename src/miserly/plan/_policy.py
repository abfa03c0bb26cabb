"""The policy kind of plan: a predictor for every state of knowledge, and trees that say what to buy next.

The one node of such a plan is the predictor, which takes whatever is known. Before it, the policy walks: at each step
it buys the candidate with the largest expected drop of loss per price, as long as that reaches the trade-off λ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from miserly._typing import Array, Bools, Floats
from miserly.costs import Caps, RowAccounts, set_bits
from miserly.kernels import policy as kernels
from miserly.kernels.threads import in_blocks
from miserly.plan._contributions import Contributions, policy_contributions
from miserly.plan._dictionary import Trees
from miserly.plan._measured import repriced
from miserly.plan._plan import Budget, Charge, Plan
from miserly.plan._policy_arrays import Policy
from miserly.plan._policy_walk import PolicyListWalk, PolicyWalk
from miserly.plan._run import Run
from miserly.plan._validation import NO_CONFIDENCE, as_matrix

LINKS = {"identity": kernels.IDENTITY, "logistic": kernels.LOGISTIC, "softmax": kernels.SOFTMAX}
ALL_STEPS = np.iinfo(np.int64).max


class Offers(NamedTuple):
    """What the kernels know of candidates: see `kernels.policy`."""

    acquisition_of: Array
    acquisition: Array
    feature_of: Array
    feature: Array
    needs_of: Array
    needs: Array
    prices: Floats


@dataclass(frozen=True, eq=False)
class PolicyPlan(Plan):
    """A plan that decides at every step what to buy next, from whatever is known by then. Scores are calibrated.

    Parameters
    ----------
    costs : CostTable
        The prices, bound to the features in the order of their columns.
    dictionary : Trees
        The trees of the predictor.
    nodes : sequence of Node
        The predictor: one node, or none for a constant.
    prior : array of shape (n_outputs,)
        The scores before the trees are added.
    link : {"identity", "logistic", "softmax"}, default="identity"
        How scores are read: as numbers, as log-odds (of one output), or as the scores of classes.
    classes : array, default=None
        The labels, exactly if the link is not the identity.
    roots : sequence of int, default=(0,)
        The number of the one node; empty if there is none.
    charge : {"learner", "path"}, default="learner"
        Rows pay for whole candidates, whatever it is.
    notes : mapping, default={}
        For people; saved, never compared.
    schema : Schema, default=None
        What the columns mean: with it, frames and rows may come in the user's own words.
    means : None
        Must be None: trees have a way for missing values.
    unavailable : sequence of str, default=()
        Features that no row ever knows, and for which nothing is bought.
    shares : array, default=None
        As in `Plan`. Not read by the predictor: unknown values go the way that each split has for missing ones.
    error_costs : array of shape (n_classes, n_classes), default=None
        What predictions cost: rows are true classes, columns predictions.
    certificate : Certificate, default=None
        What was shown about the plan; see `certified`.
    profile : TrainingProfile, optional
        What the training rows looked like.
    promise : Promise, optional
        What the plan did on validation rows.
    policy : Policy
        What decides on purchases. It is needed, and must fit the candidates, features and outputs of the plan.

    Examples
    --------
    >>> import numpy as np
    >>> from miserly.costs import CostTable
    >>> from miserly.plan import Node, Policy, PolicyPlan, Trees
    >>> costs = CostTable.per_feature({"age": 1.0, "crp": 10.0})
    >>> no = [False, False, False]
    >>> trees = Trees([0, 3], [1, 0, 0], [1.5, np.inf, np.inf], [1, 1, 2], no, [0.0, -1.0, 1.0])
    >>> none = Trees([0], [], [], [], [], [])
    >>> policy = Policy(none, [0] * 4, [2.0, 0.0, 0.0], [False], [0, 0], [[1.0]], [[0.0]], no[:2], tradeoff=0.1)
    >>> plan = PolicyPlan(costs, trees, (Node([0], [1.0]),), [0.0], policy=policy)
    >>> plan.start().needs
    ('crp',)
    >>> X = np.array([[50.0, 3.0]])
    >>> plan.predict_cost(X), plan.at(tradeoff=0.3).predict_cost(X)
    (array([10.]), array([0.]))
    """

    policy: Policy | None = None

    def _check(self) -> None:
        super()._check()
        refuse_row_prices(self)
        policy, n_used = self.policy, len(self.read_features)
        if policy is None or not isinstance(self.dictionary, Trees) or self.link not in LINKS or len(self.nodes) > 1:
            raise ValueError("A policy plan has a policy and one node of trees.")
        width = len(self.costs.features) + self.n_outputs + (self.link != "identity")
        ok = policy.ahead.size == len(self.candidates) and policy.level.size == n_used + 1
        ok = ok and policy.scale.shape[1] == self.n_outputs and policy.misses.size == len(self.costs.features)
        if not ok or policy.values.n_features > width or (self.link == "logistic" and self.n_outputs > 1):
            raise ValueError("The policy does not fit the plan: other candidates, features or outputs.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PolicyPlan) and super().__eq__(other) and self.policy == other.policy

    # ---- what is on offer -----------------------------------------------------------------------------------------

    @cached_property
    def read_features(self) -> tuple[int, ...]:
        """The columns that the predictor was trained to read: those in use, and unavailable ones."""
        learners = np.unique(np.concatenate([np.zeros(0, np.int64), *(node.learners for node in self.nodes)]))
        return tuple(sorted({int(f) for t in learners for f in self.dictionary.features_of(int(t))}))

    @cached_property
    def candidates(self) -> tuple[int, ...]:
        """The sets of acquisitions that features need, as bit sets: what can be bought in one step. One of which all
        features are unavailable is never on offer."""
        masks = self.costs.feature_masks
        return tuple(sorted({masks[f] for f in self.read_features} - {0}))

    @cached_property
    def slots(self) -> dict[int, int]:
        """Where each feature in use stands among those in use."""
        return {f: s for s, f in enumerate(self.used_features)}

    @cached_property
    def offers(self) -> Offers:
        """Candidates, features and prices for the kernels."""
        masks, used = self.costs.feature_masks, self.used_features
        own = [[s for s, f in enumerate(used) if masks[f] == mask] for mask in self.candidates]
        prices = np.array(self.costs.price_list, np.float64)
        return Offers(
            *_lists([list(set_bits(mask)) for mask in self.candidates]),
            *_lists(own),
            *_lists([list(set_bits(masks[f])) for f in used]),
            prices,
        )

    @cached_property
    def model(self) -> tuple[Any, ...]:
        """The plan as the kernels take it."""
        policy = self.policy
        assert policy is not None
        step = self.tables.program("all").steps[0] if self.nodes else None
        none = np.zeros(0, np.int32)
        edges = (none, np.zeros(1, np.int32), none, np.zeros(0))
        edges = edges if step is None else (step.learners, step.pointer, step.column, step.weight)
        keep = np.full(len(self.dictionary), -1, np.int32)
        start = self.prior + (self.nodes[0].bias if self.nodes else 0.0)
        trees = self.dictionary.table  # type: ignore[attr-defined]
        calibration = (policy.level, policy.scale, policy.offset, policy.radius)
        return (
            (trees, *edges, keep, start, *calibration, LINKS[self.link]),
            (policy.values.table, policy.first, policy.bias, policy.ahead),
            tuple(self.offers),
            (np.array(self.used_features, np.int32), policy.misses),
        )

    @cached_property
    def evaluated(self) -> int:
        """The predictor's learners, as a bit set."""
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
        **start: Any,
    ) -> Run:
        """Scores, costs and the reason to stop of every row. Candidates that do not fit the budget are skipped.

        Parameters
        ----------
        X : array or frame, rows × features
            The values; a row reads only those that it buys.
        qid, charge : ignored
            Rows of a policy are independent, and pay for whole candidates.
        budget : float, optional
            The most that a row may pay.
        confidence : float, optional
            Rows stop when their most probable class has this probability.
        strict : bool, default=False
            Whether the upper quantile of a measured price has to fit the budget, not only its estimate.
        **start
            `known`, array of bool, rows × features: what is known at the start and not paid. `unavailable`: names of
            acquisitions that are never bought. `steps`: the most purchases of a row, a number or one per row.
        """
        if confidence is not None:
            return self.stopping(confidence).run(X, qid, budget, charge, strict=strict, **start)
        if strict and budget is not None:
            return repriced(self, self.tables.cautious.run(X, qid, budget, **start), X)
        matrix = as_matrix(X, self.costs.features, self.costs.named, self.schema)
        return self.walk_all(matrix, math.inf if budget is None else number_only(budget), **start)[0]

    def contributions(
        self, X: Any, qid: Any = None, budget: float | None = None, confidence: float | None = None
    ) -> Contributions:
        if confidence is not None:
            return self.stopping(confidence).contributions(X, qid, budget)
        matrix = as_matrix(X, self.costs.features, self.costs.named, self.schema)
        return policy_contributions(self, matrix, math.inf if budget is None else number_only(budget))

    def walk_all(
        self,
        X: Array,
        budget: float = math.inf,
        known: Bools | None = None,
        unavailable: Sequence[str] = (),
        steps: Any = ALL_STEPS,
        owned: Bools | None = None,
    ) -> tuple[Run, Bools, Bools]:
        """The run of all rows, and what each owns (rows × acquisitions) and knows (rows × features) at its end."""
        n, policy, n_outputs = len(X), self.policy, self.n_outputs
        assert policy is not None
        used = np.array(self.used_features, np.intp)
        knows = np.zeros((n, len(used)), bool) if known is None else np.ascontiguousarray(known[:, used])
        before = np.zeros((n, len(self.costs.acquisitions)), bool) if owned is None else owned
        owns = before.copy()
        barred = np.zeros(owns.shape[1], bool)
        barred[[self.tables.acquisition_numbers[a] for a in unavailable]] = True
        most = np.full(n, steps, np.int64) if np.ndim(steps) == 0 else np.asarray(steps, np.int64)
        score, z, blocked = np.empty((n, n_outputs)), np.empty((n, n_outputs)), np.zeros(n, bool)
        paid = self.tables.ledger.price(0, self.evaluated)
        if paid > budget:
            nothing = np.tile(self.prior, (n, 1))
            run = Run(nothing, nothing.copy(), np.zeros(n), *_nowhere(n), np.ones(n, bool))
            run = run.with_accounts(RowAccounts(self.tables.ledger, n))
            return run, owns, _spread(knows, used, X.shape[1])
        limits = (policy.tradeoff, policy.confidence, budget, paid)
        results = (most, barred, before, knows, owns, score, z, blocked)
        in_blocks(n, lambda first, end: kernels.walk_rows(X, first, end, self.model, limits, *results))
        accounts = accounts_of(self, owns & ~before, self.evaluated)
        run = Run(z, z.copy(), accounts.totals(), *_nowhere(n, bool(self.nodes)), blocked).with_accounts(accounts)
        return run, owns, _spread(knows, used, X.shape[1])

    def start(
        self,
        budget: Budget = None,
        given: Mapping[str, float] | None = None,
        without: Sequence[str] = (),
        owned: Sequence[str] = (),
        tolerant: bool = False,
    ) -> PolicyWalk:
        """Begin one row from any state: values of any features may be `given`, nobody pays for acquisitions that are
        `owned`, and the walk never asks for those that it must do `without`."""
        return PolicyWalk(self, math.inf if budget is None else number_only(budget), given or {}, without, owned)

    def start_list(
        self,
        n_rows: int,
        budget: Budget = None,
        given: Sequence[Mapping[str, float]] | None = None,
        without: Sequence[str] = (),
        owned: Sequence[Sequence[str]] | None = None,
    ) -> PolicyListWalk:
        """Begin several rows, each on its own."""
        limit = math.inf if budget is None else number_only(budget)
        return PolicyListWalk(self, given or [{}] * n_rows, limit, without, owned)

    def stages(self, X: Any, qid: Any = None) -> Iterator[Run]:
        """The state of all rows after each number of purchases, until nobody buys any more."""
        matrix = as_matrix(X, self.costs.features, self.costs.named, self.schema)
        last = self.walk_all(matrix, steps=0)
        yield last[0]
        for step in range(1, len(self.candidates) + 1):
            this = self.walk_all(matrix, steps=step)
            if np.array_equal(this[1], last[1]):
                return
            yield this[0]
            last = this

    def sweep(self, X: Array, tradeoffs: Iterable[float]) -> Iterator[Run]:
        """The runs of all rows at falling trade-offs. The order of purchases does not depend on the trade-off, so each
        run goes on where the one before it has stopped: all of them cost little more than the last."""
        n, evaluated = len(X), self.evaluated
        owns, knows = np.zeros((n, len(self.costs.acquisitions)), bool), None
        for tradeoff in tradeoffs:
            run, owns, knows = self.at(tradeoff).walk_all(X, known=knows, owned=owns)
            accounts = accounts_of(self, owns, evaluated)
            yield replace(run, cost=accounts.totals()).with_accounts(accounts)

    # ---- other plans of the same training -------------------------------------------------------------------------

    def at(self, tradeoff: float) -> PolicyPlan:
        """The same plan for another trade-off between loss and cost."""
        assert self.policy is not None
        return replace(self, policy=replace(self.policy, tradeoff=float(tradeoff)), certificate=None)

    def stopping(self, confidence: float) -> PolicyPlan:
        """The plan in which rows stop when their most probable class has this probability or more."""
        if self.classes is None:
            raise ValueError(NO_CONFIDENCE)
        if not 0.0 < confidence <= 1.0:
            raise ValueError(f"confidence is a probability above 0, at most 1, got {confidence:g}.")
        assert self.policy is not None
        return replace(self, policy=replace(self.policy, confidence=float(confidence)), certificate=None)

    def truncate(self, budget: float) -> Plan:
        raise ValueError("A policy keeps a budget row by row. Use predict(X, budget=...).")


def accounts_of(plan: Plan, owned: Bools, evaluated: int) -> RowAccounts:
    """The accounts of rows that bought these acquisitions, and for which these learners were evaluated."""
    words = np.zeros((len(owned), max(1, -(-owned.shape[1] // 64)) * 8), np.uint8)
    packed = np.packbits(owned, axis=1, bitorder="little")
    words[:, : packed.shape[1]] = packed
    accounts = RowAccounts(plan.tables.ledger, len(owned))
    if len(owned):
        accounts.buy_each(np.arange(len(owned)), words.view(np.uint64), evaluated)
    return accounts


def refuse_row_prices(plan: Plan) -> None:
    """For plans that decide by one price of each acquisition for all rows."""
    if plan.costs.row_prices:
        raise ValueError(
            "Such a plan decides by one price of each acquisition for all rows, and the price of "
            f"{next(iter(plan.costs.row_prices))!r} depends on the row. Give a number, or use another estimator."
        )


def _lists(lists: list[list[int]]) -> tuple[Array, Array]:
    """Lists of numbers as where each begins, and all of them."""
    ends = np.cumsum([0, *(len(numbers) for numbers in lists)]).astype(np.int32)
    return ends, np.array([number for numbers in lists for number in numbers], np.int32)


def _nowhere(n: int, scored: bool = False) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The tier and the exit of rows that all leave at the predictor."""
    return np.zeros(n, np.int64), np.full((n, 1), 0 if scored else -1, np.int64)


def _spread(knows: Bools, used: Array, n_features: int) -> Bools:
    """What is known of the used features, for all features."""
    known = np.zeros((len(knows), n_features), bool)
    known[:, used] = knows
    return known


def number_only(budget: Any) -> float:
    if isinstance(budget, Caps | Mapping):
        raise ValueError("This plan keeps one cap, in the unit of its prices. Give the budget as a number.")
    if math.isnan(budget):
        raise ValueError("The budget is not a number. Give an amount in the unit of the prices.")
    return float(budget)
