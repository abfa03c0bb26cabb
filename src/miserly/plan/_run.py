"""Running a plan on a full matrix: node by node, only the rows still in, all cores.

The ledger's accounts decide who can afford a node; the scores are added in the same order as for a single row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from miserly._typing import Rows
from miserly.costs import Caps, Ledger, RowAccounts
from miserly.kernels import gaps as with_gaps
from miserly.kernels import machines
from miserly.kernels import trees as kernels
from miserly.kernels.threads import threads
from miserly.plan._budget import LEAVE, PART, SKIP, WHOLE, buy_sets
from miserly.plan._dictionary import Trees
from miserly.plan._node import EXIT
from miserly.plan._program import Program, Step
from miserly.plan._state import State

if TYPE_CHECKING:
    from miserly.plan._plan import Plan

BLOCK_CELLS = 1 << 22
FIELDS = ("score", "z", "cost", "tier", "exit", "out_of_budget")


@dataclass(frozen=True)
class Run:
    """What happened to each row: its scores, what it paid, where and why it stopped.

    Parameters
    ----------
    score : array of float of shape (n_rows, n_outputs)
        Raw scores. (Of a policy plan: calibrated, as `z`.)
    z : array of float of shape (n_rows, n_outputs)
        The scores as calibrated where the row left; predictions and probabilities are read from them.
    cost : array of float of shape (n_rows,)
        What each row paid, 0 or more.
    tier : array of int of shape (n_rows,)
        The tier of the last node that scored the row; 0 before the first.
    exit : array of int of shape (n_rows, n_roots)
        For each root the number of the last node that scored the row; -1 if none did.
    out_of_budget : array of bool of shape (n_rows,)
        Whether something that the row would have bought did not fit its budget.

    Examples
    --------
    >>> import numpy as np
    >>> from miserly.costs import CostTable
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> costs = CostTable.per_feature({"age": 1.0, "crp": 12.5})
    >>> plan = Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [0.1, 1.0]),), [0.0], means=[40.0, 2.0])
    >>> run = plan.run(np.array([[50.0, 3.0]]), budget=5)
    >>> run.score, run.cost, run.out_of_budget
    (array([[7.]]), array([1.]), array([ True]))
    """

    score: NDArray[np.float64]
    z: NDArray[np.float64]
    cost: NDArray[np.float64]
    tier: NDArray[np.int64]
    exit: NDArray[np.int64]
    out_of_budget: NDArray[np.bool_]

    @property
    def accounts(self) -> RowAccounts | None:
        """What each row owns and what was evaluated for it, if the run knows; no part of comparisons."""
        return self.__dict__.get("_accounts")

    def with_accounts(self, accounts: RowAccounts | None) -> Run:
        """The same, which knows what each row owns and what was evaluated for it."""
        object.__setattr__(self, "_accounts", accounts)
        return self


def run(plan: Plan, X: NDArray[Any], query: Rows, limit: float | Caps, charge: str, checked: bool = True) -> Run:
    """Run a plan on all rows, in blocks (of whole queries where a gate compares documents) that bound the memory.

    Prices by row that are none are refused if `checked`; else the row's cost is NaN.
    """
    budget, ledger = plan.tables.ledger_under(limit) if isinstance(limit, Caps) else (limit, plan.tables.ledger)
    if budget < math.inf and ledger is plan.tables.ledger and plan.tables.most_expensive <= budget:
        budget = math.inf
    program = plan.tables.program("all" if budget == math.inf else "none" if charge == "path" else "free")
    blocks = list(_blocks(program, query, X.shape[1] if budget < math.inf else program.n_kept))
    with threads(None, len(X) * len(plan.dictionary)):
        parts = [
            _Batch(
                program,
                X[rows] if len(blocks) > 1 else X,
                query[rows],
                budget,
                charge,
                ledger,
                rows if checked else None,
            ).run()
            for rows in blocks
        ]
    if len(parts) == 1:
        return parts[0]
    back = np.argsort(np.concatenate(blocks))
    whole = Run(*(np.concatenate([getattr(p, name) for p in parts])[back] for name in FIELDS))
    return whole.with_accounts(RowAccounts.joined([p.accounts for p in parts if p.accounts is not None], back))


def stages(plan: Plan, X: NDArray[Any], query: Rows) -> Iterator[Run]:
    """Run a plan and tell the state of all rows after each level of its nodes."""
    program = plan.tables.program("none")
    batch = _Batch(program, X, query, math.inf, plan.charge, plan.tables.ledger, np.arange(len(X)))
    for number, root in enumerate(plan.roots):
        waiting: dict[int, list[Rows]] = {root: [np.arange(len(X))]}
        for nodes in _levels(plan, root):
            with threads(None, len(X)):
                for k in nodes:
                    if k in waiting:
                        batch.visit(program.steps[k], _sorted(waiting.pop(k)), number, waiting)
            yield batch.result()


def _levels(plan: Plan, root: int) -> list[list[int]]:
    """The nodes below a root by the length of the longest way there: whoever comes to one has come by its turn."""
    level = {root: 0}
    for k in range(root, len(plan.nodes)):
        for way in plan.nodes[k].ways if k in level else ():
            if way != EXIT:
                level[way] = max(level.get(way, 0), level[k] + 1)
    return [[k for k in sorted(level) if level[k] == depth] for depth in range(max(level.values()) + 1)]


def _blocks(program: Program, query: Rows, width: int) -> Iterator[Rows]:
    """Row numbers of each block; rows of one query stay together and in order where the plan compares them."""
    rows = np.arange(len(query))
    size = len(rows) if not width else max(64, BLOCK_CELLS // width)
    if len(rows) <= size:
        yield rows
        return
    if not program.plan.by_query:
        yield from np.split(rows, range(size, len(rows), size))
        return
    rows = np.argsort(query, kind="stable")
    ends = np.flatnonzero(np.r_[np.diff(query[rows]) != 0, True]) + 1
    first = 0
    for end, following in zip(ends.tolist(), [*ends[1:].tolist(), len(rows) + size + 1]):
        if following - first > size:
            yield rows[first:end]
            first = end


def _sorted(parts: list[Rows]) -> Rows:
    """Rows that came to a node from one or more others, each in order."""
    return parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))


class _Batch:
    """The state of a block of rows on its way through the graph.

    Under a budget, `X` holds only what rows own: what they do not buy is missing, or the mean of the training rows.
    """

    def __init__(
        self,
        program: Program,
        X: NDArray[Any],
        query: Rows,
        budget: float,
        charge: str,
        ledger: Ledger | None = None,
        numbers: Rows | None = None,
    ) -> None:
        plan = program.plan
        n = len(X)
        self.program, self.plan, self.query, self.budget = program, plan, query, budget
        self.by_path = charge == "path" and isinstance(plan.dictionary, Trees)
        self.is_limited = budget < math.inf
        self.raw, self.numbers = X, numbers
        self.X = self.source = filled(plan, X)
        self.state = State(program, n)
        self.accounts = RowAccounts(ledger or program.ledger, n)
        self.values = np.zeros((n if program.n_kept else 1, max(1, program.n_kept)))
        self.known = np.zeros(self.values.shape, bool)
        self.tier = np.zeros(n, np.int64)
        self.exit = np.full((n, len(plan.roots)), EXIT, np.int64)
        self.out_of_budget = np.zeros(n, bool)
        if self.is_limited:
            self.X = np.tile(program.no_values, (n, 1))
            self.answered = np.zeros((n, plan.n_outputs), bool)
            self.skipping = np.zeros(n, bool)
            self.seen = np.zeros(X.shape, bool)
            self._reveal(np.arange(n), np.full(n, -1, np.int32))
            if self.by_path:
                self.owned = np.zeros((n, program.words.shape[1]), np.uint64)
                self.ready = np.zeros(X.shape, bool)

    def run(self) -> Run:
        for number, root in enumerate(self.plan.roots):
            waiting: dict[int, list[Rows]] = {root: [np.arange(len(self.X))]}
            if self.is_limited:
                self.skipping[:] = False
            while waiting:
                first = min(waiting)
                self.visit(self.program.steps[first], _sorted(waiting.pop(first)), number, waiting)
        return self.result()

    def result(self) -> Run:
        """What happened so far."""
        score = self.state.score()
        return Run(
            score,
            self.state.read(score),
            self._costs(),
            self.tier.copy(),
            self.exit.copy(),
            self.out_of_budget.copy(),
        ).with_accounts(self.accounts)

    def _costs(self) -> NDArray[np.float64]:
        """What each row paid so far."""
        prices = self.plan.tables.row_prices
        return self.accounts.totals() if prices is None else prices.totals(self.accounts, self.raw, self.numbers)

    def visit(self, step: Step, rows: Rows, root: int, waiting: dict[int, list[Rows]]) -> None:
        """Let rows that came to a step buy what it needs, score them, and send them on."""
        if self.is_limited:
            outcome = self._buy_within(step, rows)
            self.out_of_budget[rows[outcome != WHOLE]] = True
            if step.node.gate.reads_answer:
                self._send(step, rows[outcome == SKIP], waiting)
            rows = rows[outcome <= PART]
        else:
            self._buy(step, rows)
        if not len(rows):
            return
        self._score(step, rows)
        self.exit[rows, root] = step.last
        self.tier[rows] = step.node.tier
        self._send(step, rows, waiting)

    def _send(self, step: Step, rows: Rows, waiting: dict[int, list[Rows]]) -> None:
        """Ask the step's gate where each row goes."""
        passed = self.state.passed(step.node, rows, self.query[rows], self.X)
        for who, way in ((passed, step.node.passed), (~passed, step.node.failed)):
            if way != EXIT and who.any():
                waiting.setdefault(way, []).append(rows[who])

    def _buy(self, step: Step, rows: Rows) -> None:
        """Buy all that the rows want."""
        if not self.by_path:
            self.accounts.buy(rows, step.acquisitions, step.evaluated)
            return
        words = self.program.words
        bought = np.zeros((len(rows), words.shape[1]), np.uint64)
        if self.plan.unavailable:
            trees, gaps, seen = self.program.trees, self.program.gaps, self.program.seen
            with_gaps.buy_paths(self.X, seen, rows, trees, gaps, step.learners, words, bought)
        else:
            kernels.buy_paths(self.X, rows, self.program.trees, step.learners, words, bought)
        self.accounts.buy_each(rows, bought, step.evaluated)

    def _buy_within(self, step: Step, rows: Rows) -> NDArray[np.int8]:
        """Buy what fits the budget; tells of each row what came of it."""
        node, outcome = step.head, np.full(len(rows), SKIP, np.int8)
        replaces = node.combine == "replace"
        whole_only = self.answered[rows][:, list(node.outputs)].all(axis=1) & replaces
        buy = self._buy_paths if self.by_path else self._buy_sets
        for is_whole, who in ((True, whole_only), (False, ~whole_only)):
            if not replaces:
                who = who & ~self.skipping[rows]
            at = np.flatnonzero(who)
            if len(at):
                before = self.accounts.of_row[rows[at]]
                outcome[at] = buy(step, rows[at], is_whole)
                self._reveal(rows[at], before)
        entered = rows[outcome <= PART]
        self.skipping[rows[outcome == SKIP]] = True
        self.skipping[entered] &= not replaces
        for k in range(step.first, step.last + 1):
            if len(self.plan.nodes[k].learners):
                self.answered[np.ix_(entered, np.array(self.plan.nodes[k].outputs))] = True
        return outcome

    def _buy_sets(self, step: Step, rows: Rows, is_whole: bool) -> NDArray[np.int8]:
        """Rows that pay by learner: those with the same account buy the same."""
        program, ledger, end, budget = self.program, self.accounts.ledger, step.last + 1, self.budget
        return self.accounts.change(rows, lambda a: buy_sets(program, ledger, step.first, end, a, budget, is_whole))

    def _buy_paths(self, step: Step, rows: Rows, is_whole: bool) -> NDArray[np.int8]:
        """Rows that pay by path: split by split."""
        words, trees, gaps = self.program.words, self.program.trees, self.program.gaps
        paid = self.accounts.buy(rows, 0, step.evaluated, self.budget)
        outcome = np.where(paid, WHOLE, SKIP if is_whole else LEAVE).astype(np.int8)
        owned, ready = self.owned[rows], self.ready[rows] & (not is_whole)
        entry, place = np.zeros(len(rows), np.int64), np.full(len(rows), -1, np.int64)
        wants = np.where(paid, 0, -1).astype(np.int64)
        while True:
            with_gaps.walk_until_purchase(
                self.X, self.seen, rows, trees, gaps, step.learners, words, owned, ready, entry, place, wants
            )
            asking = np.flatnonzero(wants >= 0)
            if not len(asking):
                break
            before = self.accounts.of_row[rows[asking]]
            needed = words[wants[asking]]
            paid = self.accounts.buy_each(rows[asking], needed, 0, self.budget)
            owned[asking[paid]] |= needed[paid]
            self._reveal(rows[asking], before)
            refused = asking[~paid]
            outcome[refused] = SKIP if is_whole else PART
            ready[refused, wants[refused]] = True
            wants[refused] = -1 if is_whole else 0
        self.owned[rows], self.ready[rows] = owned, self.ready[rows] | ready
        return outcome

    def _reveal(self, rows: Rows, before: NDArray[np.int32]) -> None:
        """Show the values of the features that rows know since their accounts changed."""
        after = self.accounts.of_row[rows]
        changed = np.flatnonzero(before != after)
        if not len(changed):
            return
        pairs, kind = np.unique(np.column_stack([before, after])[changed], axis=0, return_inverse=True)
        for number, (old, new) in enumerate(pairs):
            columns = self.program.known(self.accounts.accounts[new].owned)
            if old >= 0:
                columns = np.setdiff1d(columns, self.program.known(self.accounts.accounts[old].owned))
            if len(columns):
                at = np.ix_(rows[changed[kind.ravel() == number]], columns)
                self.X[at] = self.source[at]
                self.seen[at] = True

    def _score(self, step: Step, rows: Rows) -> None:
        self.state.begin(step.head, rows)
        columns = self.state.columns
        edges = (step.learners, step.pointer, step.column, step.weight)
        kept = (self.program.keep, self.values, self.known)
        if isinstance(self.plan.dictionary, Trees):
            self._add_trees(self.plan.dictionary, rows, edges, kept)
        elif self.program.machine is not None:
            machines.add_machines(self.X, rows, self.program.machine, *edges, *kept, columns)
        else:
            features = self.plan.dictionary.columns[step.learners]  # type: ignore[attr-defined]
            kernels.add_columns(self.X, rows, features, *edges[1:], columns)
        self.state.finish(step.node, rows)

    def _add_trees(self, trees: Trees, rows: Rows, edges: tuple[Any, ...], kept: tuple[Any, ...]) -> None:
        """Add trees to the scores; rows that lack something take the kernel for rows with gaps."""
        gappy = np.full(len(rows), bool(self.plan.unavailable))
        if self.is_limited:
            gappy |= self.out_of_budget[rows]
        whole, lacking = rows[~gappy], rows[gappy]
        others = (*edges, *kept, self.state.columns)
        if len(whole):
            kernels.add_trees(*(self.X, whole, trees.table, trees.used), *others)
        if len(lacking):
            seen = self.seen if self.is_limited else self.program.seen[None]
            with_gaps.add_trees(*(self.X, seen, lacking, trees.table, self.program.gaps), *others)


def filled(plan: Plan, X: NDArray[Any]) -> NDArray[Any]:
    """Rows in which unavailable features are missing, and missing values are the training means where the plan has
    them."""
    if plan.unavailable:
        X = X.copy()
        X[:, [plan.tables.feature_numbers[name] for name in plan.unavailable]] = np.nan
    if plan.means is None:
        return X
    read: NDArray[np.intp] = np.unique(plan.dictionary.columns)  # type: ignore[attr-defined]
    if not np.isnan(X[:, read]).any():
        return X
    return np.where(np.isnan(X), plan.means, X)
