"""One row, or the list of one query, through a plan without any I/O: the walk says what it needs, a driver supplies it.

walk = plan.start(budget=50)
while not walk.done:
    walk.supply(get(walk.needs))
walk.best
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from miserly.costs import Account, Caps, RowLedger
from miserly.kernels import gaps as with_gaps
from miserly.kernels import machines
from miserly.kernels import trees as kernels
from miserly.plan._contributions import Contributions, walk_contributions
from miserly.plan._gates import passes
from miserly.plan._node import EXIT
from miserly.plan._program import Step, Stop
from miserly.plan._state import State

if TYPE_CHECKING:
    from miserly.plan._plan import Plan

ONE_ROW = np.zeros(1, np.intp)
WORD = (1 << 64) - 1
NOTHING: Mapping[str, float] = {}
LEAVES, SKIPS = -1, -2  # instead of a set of acquisitions: the row leaves the graph, or skips the step


class Best(NamedTuple):
    """The best answer so far: the value, the class probabilities if there are classes, the raw scores."""

    value: Any
    probabilities: NDArray[np.float64] | None
    score: NDArray[np.float64]
    tier: int


class Walk:
    """The way of one row. `Plan.start` begins it.

    Parameters
    ----------
    plan : Plan
        The plan to walk through.
    budget : float or Caps, default=inf
        The most that the row may pay, in all or of each currency. What does not fit is skipped, and the row goes on
        with what fits; in a plan that cannot miss values it leaves there.
    given : mapping of str to float, default={}
        The values that are known at the start, for which nobody pays. Those that the plan uses and that need no
        purchase, or only what is `owned`, must be among them.
    without : iterable of str, default=()
        Acquisitions that are out of reach: the walk does not ask for them. A plan that cannot miss values (see
        `Plan.can_miss`) answers without what it would do after them.
    owned : iterable of str, default=()
        Acquisitions that the row has already, for which nobody pays.
    in_list : bool, default=False
        Whether gates that compare documents wait for those of a `ListWalk`. By default the row is its whole query.
    tolerant : bool, default=False
        Whether an acquisition whose price for the row is none (negative, or of a missing value) is unavailable; else it
        is an error.

    Attributes
    ----------
    needs : tuple of str
        The acquisitions that must be supplied next; empty when nothing is wanted.
    bought : list of str
        What was bought so far, in order.
    stopped : str or None
        Why the walk ended: "answered", "budget" if something did not fit, "failed:" and the name of an acquisition that
        was wanted and not available, or the reason that a driver gave to `stop`. None as long as it goes on.
    account : Account
        What the row owns and what it paid.
    tier : int
        The tier of the last node that scored the row.
    exit : list of int
        For each root the number of the last node that scored the row; -1 if none did.

    Examples
    --------
    >>> from miserly.costs import CostTable
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> costs = CostTable.per_feature({"age": 1.0, "crp": 12.5})
    >>> plan = Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [0.1, 1.0]),), [0.0], means=[40.0, 2.0])
    >>> walk = plan.start(budget=5)
    >>> walk.needs
    ('age',)
    >>> walk.supply({"age": 50.0})
    >>> print(walk.best.value, walk.cost, walk.stopped)
    7.0 1.0 budget
    """

    _prices: RowLedger | None = None
    tolerant = False

    def __init__(
        self,
        plan: Plan,
        budget: float | Caps = math.inf,
        given: Mapping[str, float] = NOTHING,
        without: Iterable[str] = (),
        owned: Iterable[str] = (),
        in_list: bool = False,
        tolerant: bool = False,
    ) -> None:
        self.tolerant = tolerant
        self.plan = plan
        self.budget, self._ledger = plan.tables.ledger_under(budget)
        self._prices = self._ledger if isinstance(self._ledger, RowLedger) else None
        self.program = program = plan.tables.program("all")
        self.by_path = plan.charge == "path" and program.trees is not None
        self.account: Account = self._ledger.empty
        self._paid = self.account  # what it will be when what is asked for is paid
        self.tier = 0
        self.stopped: str | None = None
        self.needs: tuple[str, ...] = ()
        self.bought: list[str] = []
        self.exit = [EXIT] * len(plan.roots)
        self.waiting: Step | None = None
        self._in_list = in_list
        self.asked = 0
        self._dead = 0  # unavailable acquisitions
        self._had = plan.tables.acquisition_set(owned) if owned else 0  # those that nobody need buy
        self._reason = "answered"
        self._x = program.no_values.copy()
        self._ready = program.none_ready  # features that are not to be bought: known apart, or unavailable
        self._apart: list[int] = []  # features that are known without their acquisitions
        self._has_gaps = bool(plan.unavailable)  # whether some feature that it wants will not be known
        self._skipped: list[int] = []  # features that did not fit the budget (by path)
        self._answered = 0  # the outputs that have an answer, as bits
        self._is_skipping = False  # the last answer that fits stands; what adds to a later one is skipped
        self._state = State(program, 1)
        self._values, self._known = program.kept()
        self._root = self._complete = self._scored = 0
        self._scored_nodes: list[range] = []  # for contributions
        self._begin_with(given, plan.tables.known_at_first(self._had))
        if plan.roots:
            self._begin(plan.roots[0])
            for acquisition in without:
                self.fail(acquisition)
            self._advance()
        else:
            self.stop("answered")

    # ---- what a driver uses -----------------------------------------------------------------------------------

    def reserve(self, amount: float) -> bool:
        """Keep a part of the budget for something else, or give it back (below zero); False if it does not fit."""
        if amount > 0 and self._paid.total + amount > self.budget:
            return False
        self.budget -= amount
        return True

    @property
    def done(self) -> bool:
        """Whether the answer is final."""
        return self.stopped is not None

    @property
    def owned(self) -> int:
        """The acquisitions that the row has, bought or not, as a bit set."""
        return self.account.owned | self._had

    @property
    def cost(self) -> float:
        """What was paid so far."""
        return self.account.total

    @property
    def scores(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Raw and calibrated scores of the last complete node."""
        self._score()
        score = self._state.score()
        return score[0], self._state.read(score)[0]

    @property
    def best(self) -> Best:
        """The answer of the last complete node (the free constant before the first)."""
        self._score()
        plan = self.plan
        score = self._state.score()
        z = self._state.read(score)
        proba = plan.probabilities(z)[0] if plan.classes is not None else None
        return Best(plan.read_row(z), proba, score[0], self.tier)

    def contributions(self) -> Contributions:
        """What each purchase so far moved the score, and what it cost; see `Plan.contributions`."""
        return walk_contributions(self)

    def supply(self, values: Mapping[str, float]) -> None:
        """Take the values that the wanted acquisitions gave, pay for them, and go on as far as possible."""
        if not self.needs:
            raise RuntimeError("This walk wants nothing: look at `needs` before supplying.")
        self._take(values, self.plan.tables.arriving(self.owned, self.asked))
        self._learn_prices()
        self._fill()
        self._pay()

    def supply_columns(self, values: Iterable[tuple[NDArray[np.intp], Sequence[float]]]) -> None:
        """The same by the numbers of the columns, unchecked: for a driver that knows what arrives."""
        x = self._x
        for columns, numbers in values:
            x[columns] = numbers
        self._learn_prices()
        self._fill()
        self._pay()

    def _pay(self) -> None:
        self.account = self._paid
        self.bought += self.needs
        self._advance()

    def fail(self, acquisition: str) -> None:
        """An acquisition is unavailable. Nobody pays for it, and the row goes on with its features missing. A plan that
        cannot (see `can_miss`) answers from the last complete node. `stopped` names it if the row wanted it."""
        plan = self.plan
        if self.stopped is not None:
            return
        if self._had and plan.tables.acquisition_set([acquisition]) & self._had:
            return
        if acquisition in self.needs:
            self._blame(f"failed:{acquisition}")
        self._dead |= 1 << plan.tables.acquisition_numbers[acquisition]
        if plan.can_miss:
            self._has_gaps = True
            masks = plan.tables.masks
            self._close(f for f in plan.used_features if masks[f] & self._dead and masks[f] & ~self.owned)
        elif acquisition in self.needs:
            self._leave(self._reason)
        if self.needs:
            self._advance()

    def _blame(self, reason: str) -> None:
        """The first trouble is the reason that is reported."""
        if self._reason == "answered":
            self._reason = reason

    def stop(self, reason: str) -> None:
        """End the walk with the best answer so far, for the driver's own reason (a deadline, say)."""
        if self.stopped is None:
            self._score()
            self.needs = ()
            self.waiting = None
            self.stopped = reason

    def _begin_with(self, given: Mapping[str, float], expected: Mapping[str, int]) -> None:
        """Keep what is known at the start. Features that are expected must be among it; others need not be bought."""
        if len(given) > len(expected) or any(name not in expected for name in given):
            number = self.plan.tables.feature_numbers
            apart = [name for name in given if name not in expected and name in number]
            if apart:
                columns = [number[name] for name in apart]
                self._x[columns] = [given[name] for name in apart]
                self._apart = columns
                self._close(columns)
                given = {name: value for name, value in given.items() if name not in apart}
        self._take(given, expected)
        self._learn_prices()
        self._fill()

    def _close(self, columns: Iterable[int]) -> None:
        """Buy nothing for these features any more."""
        if self._ready is self.program.none_ready:
            self._ready = self._ready.copy()
        self._ready[list(columns)] = True

    def _known_features(self) -> NDArray[np.bool_]:
        """Which features the row knows."""
        seen = np.zeros(len(self._x), bool)
        seen[self.program.known(self.owned)] = True
        seen[self._apart] = True
        return seen

    def _learn_prices(self) -> None:
        """Find the prices whose features are known now."""
        if self._prices is not None and self._prices.unknown:
            have, masks = self.owned | self.asked, self.plan.tables.masks
            self._prices.learn(self._x, lambda columns: all(not masks[f] & ~have or f in self._apart for f in columns))
            if self.tolerant and self.plan.can_miss and self._prices.wrong & ~(have | self._dead):
                self._has_gaps = True
                self._dead |= self._prices.wrong
                self._close(f for f in self.plan.used_features if masks[f] & self._dead & ~have)

    def _order(self, wanted: int) -> int:
        """What of a set the row orders now: first that whose price is known, which tells the price of the rest."""
        asked = wanted & ~self.account.owned
        if asked & self._dead:
            self._blame(f"failed:{self.plan.tables.acquisition_names(asked & self._dead)[0]}")
            return LEAVES
        if self._prices is not None:
            asked = asked & ~self._prices.unknown or asked
            wrong = asked & self._prices.wrong
            if wrong and self.tolerant:
                self._blame(f"failed:{self.plan.tables.acquisition_names(wrong)[0]}")
                return LEAVES
            self._prices.check(asked)
        self._paid = self._ledger.after(self.account, asked)
        return asked

    def _fill(self) -> None:
        """Learners that cannot miss a value take the training mean."""
        if self.plan.means is not None:
            np.copyto(self._x, self.plan.means, where=np.isnan(self._x))

    def _take(self, values: Mapping[str, float], arriving: Mapping[str, int]) -> None:
        """Keep values; everything that the plan may look at and that is or gets owned must be among them."""
        x = self._x
        try:
            for name, f in arriving.items():
                x[f] = values[name]
        except KeyError:
            self._check(values, arriving)
            raise
        if len(values) != len(arriving):
            self._check(values, arriving)

    def _check(self, values: Mapping[str, float], arriving: Mapping[str, int]) -> None:
        """Values that the plan never looks at are let pass; unknown, unpaid and missing ones are errors."""
        costs, number = self.plan.costs, self.plan.tables.feature_numbers
        for name in values:
            if name not in number:
                raise KeyError(f"The plan knows no feature {name!r}.")
            if self.plan.tables.masks[number[name]] & ~(self.owned | self.asked):
                raise KeyError(f"Feature {name!r} was supplied before it was bought: it needs {costs.needs[name]}.")
        missing = [name for name in arriving if name not in values]
        if missing:
            what = f"The acquisitions {list(self.needs)} give" if self.needs else "Without any purchase there are"
            raise KeyError(f"{what} the features {missing}, which were not supplied.")

    # ---- the way through the graph ----------------------------------------------------------------------------

    def _begin(self, first: int) -> None:
        self._step = self.program.steps[first]
        self._stops = 0  # how many of its stops are passed (by learner)
        self._entry, self._place = 0, -1  # in which of its trees, at which split (by path)
        self._complete = self._scored = 0  # how many of its nodes

    def _advance(self) -> None:
        """Go on until something must be bought, a gate waits for other documents, or the answer is final."""
        self.needs = ()
        while self.stopped is None and self.waiting is None:
            asked = self._next_on_path() if self.by_path else self._next_stop()
            if asked == LEAVES:
                self._leave("budget")
            elif asked == SKIPS:
                self._pass_over()
            elif asked:
                self.asked = asked
                self.needs = self.plan.tables.acquisition_names(asked)
                return
            else:
                self._score()
                step = self._step
                if step.node.gate.by_query and self._in_list:
                    self.waiting = step
                else:
                    self._go(step.is_open or self._gate_passes())

    def _pass_over(self) -> None:
        """Skip a step that does not fit the budget: the answer so far stands, and decides where the row goes on."""
        self._blame("budget")
        self._is_skipping = True
        node = self._step.node
        if node.gate.reads_answer:
            self._go(self._gate_passes())
        else:
            self._leave("budget")

    def _is_skipped(self) -> bool:
        """Whether the step adds to an answer that was skipped."""
        return self._is_skipping and self._step.head.combine != "replace"

    def _is_whole(self) -> bool:
        """Whether the step is bought whole or not at all: it would replace an answer."""
        head = self._step.head
        return head.combine == "replace" and not head.output_bits & ~self._answered

    def _next_stop(self) -> int:
        """What the step's next nodes lack, paid by learner; 0 at its end."""
        step, ledger, stops = self._step, self._ledger, self._step.stops
        if self._is_skipped():
            return SKIPS
        if not step.acquisitions & ~self.owned:
            at_end = ledger.after(self.account, 0, step.evaluated)
            if at_end.total <= self.budget:
                self.account, self._complete, self._stops = at_end, len(step.ends), len(stops)
        while self._stops < len(stops):
            stop = stops[self._stops]
            wanted = self._wanted(stop)
            after = ledger.after(self.account, wanted, stop.evaluated)
            if after.total > self.budget:
                if self._is_whole():
                    return SKIPS
                after = ledger.after(self.account, 0, stop.evaluated)
                if after.total > self.budget or not self.plan.can_miss:
                    return LEAVES
                self._blame("budget")
                self._has_gaps = True
                after = ledger.within(after, self._masks(stop), self.budget)
                wanted = after.owned
            if wanted & ~self.account.owned:
                return self._order(wanted)
            self.account = after
            self._complete = stop.n_nodes
            self._stops += 1
        return 0

    def _masks(self, stop: Stop) -> list[int]:
        """What the features of a stop's nodes need that can be bought, feature by feature."""
        first = self._step.first + (self._step.stops[self._stops - 1].n_nodes if self._stops else 0)
        wants = self.program.wants(first, self._step.first + stop.n_nodes)
        return [mask & ~self._had for f, mask in wants if not self._ready[f]]

    def _wanted(self, stop: Stop) -> int:
        """What a stop's nodes need in all."""
        if self._ready is self.program.none_ready:
            return stop.acquisitions & ~self._had
        wanted = 0
        for mask in self._masks(stop):
            wanted |= mask
        return wanted

    def _ready_on_path(self) -> NDArray[np.bool_]:
        """The features for which a path does not stop."""
        if not self._skipped or self._is_whole():
            return self._ready
        ready = self._ready.copy()
        ready[self._skipped] = True
        return ready

    def _next_on_path(self) -> int:
        """What the next split on the row's own path lacks; 0 at the step's end."""
        step, ledger, program = self._step, self._ledger, self.program
        if self._is_skipped():
            return SKIPS
        have = self.owned
        if not (step.is_priced or step.acquisitions & ~have) and self.account.total <= self.budget:
            self._complete = len(step.ends)
            return 0
        owned = np.empty(program.words.shape[1], np.uint64)
        for w in range(len(owned)):
            owned[w] = have >> 64 * w & WORD
        n_nodes, learners, ready = len(step.ends), step.learners, self._ready_on_path()
        seen = self._known_features() if ready is not program.none_ready else program.seen
        while self._complete < n_nodes:
            end, after = n_nodes, self.account
            if step.is_priced:  # then each node is paid for when it is entered
                end = self._complete + 1
                after = ledger.after(after, 0, self.plan.tables.purchase(step.first + self._complete)[1])
                learners = step.learners[: step.ends[end - 1]]
            if after.total > self.budget:
                return SKIPS if self._is_whole() else LEAVES
            self.account = after
            self._entry, self._place, wants = with_gaps.walk_row_until_purchase(
                self._x,
                seen,
                program.trees,
                program.gaps,
                learners,
                program.words,
                owned,
                ready,
                self._entry,
                self._place,
            )
            if wants >= 0:
                self._complete = max(self._complete, bisect_right(step.ends, self._entry, hi=end - 1))
                asked: int = self.plan.tables.masks[wants] & ~have
                if ledger.after(after, asked).total <= self.budget:
                    return self._order(asked)
                if self._is_whole():
                    return SKIPS
                self._blame("budget")
                self._skipped.append(wants)
                self._has_gaps = True
                ready, seen = self._ready_on_path(), self._known_features()
                continue
            self._complete = end
        return 0

    def _score(self) -> None:
        """Add the step's nodes that became complete to the score: in the order of the batch, so the same bits."""
        if self._complete == self._scored:
            return
        step, n_nodes = self._step, self._complete
        if not self._scored:
            self._state.begin(step.head, ONE_ROW)
        plan, row, learners, pointer = self.plan, self._state.columns[0], step.learners, step.pointer
        first, end = step.ends[self._scored - 1] if self._scored else 0, step.ends[n_nodes - 1]
        if end - first < len(learners):
            learners, pointer = learners[first:end], pointer[first : end + 1]
        edges = (pointer, step.column, step.weight)
        kept = (self.program.keep, self._values, self._known)
        trees = self.program.trees
        if trees is not None and self._has_gaps:
            seen, gaps = self._known_features(), self.program.gaps
            with_gaps.add_trees_to_row(self._x, seen, trees, gaps, learners, *edges, *kept, row)
        elif trees is not None:
            kernels.add_trees_to_row(self._x, trees, learners, *edges, *kept, row)
        elif self.program.machine is not None:
            machines.add_machines_to_row(self._x, self.program.machine, learners, *edges, *kept, row)
        else:
            kernels.add_columns_to_row(self._x, plan.dictionary.columns[learners], *edges, row)  # type: ignore[attr-defined]
        if self._dead and plan.can_miss:
            self._blame_dead(learners, range(step.first + self._scored, step.first + n_nodes))
        if self.budget < math.inf:
            self._note_answers(range(step.first + self._scored, step.first + n_nodes))
        self._scored_nodes.append(range(step.first + self._scored, step.first + n_nodes))
        self._scored = n_nodes
        last = step.first + n_nodes - 1
        self._state.finish(plan.nodes[last], ONE_ROW)
        self.exit[self._root] = last
        self.tier = plan.nodes[last].tier

    def _note_answers(self, nodes: range) -> None:
        """These nodes have answered; one that replaces ends the skipping."""
        for k in nodes:
            node = self.plan.nodes[k]
            self._answered |= node.output_bits if len(node.learners) else 0
            self._is_skipping &= node.combine != "replace"

    def _blame_dead(self, learners: NDArray[np.int32], nodes: range) -> None:
        """Tell if these nodes looked at something that is unavailable."""
        wanted = 0
        if self.by_path:
            program, met = self.program, np.zeros((1, self.program.words.shape[1]), np.uint64)
            row, seen = self._x[None], self._known_features()
            with_gaps.buy_paths(row, seen, ONE_ROW, program.trees, program.gaps, learners, program.words, met)
            wanted = int.from_bytes(met.tobytes(), "little")
        else:
            for k in nodes:
                wanted |= self.plan.tables.purchase(k)[0]
        missed = self.plan.tables.acquisition_names(wanted & self._dead)
        if missed:
            self._blame(f"failed:{missed[0]}")

    def _gate_passes(self) -> bool:
        return bool(self._state.passed(self._step.node, ONE_ROW, ONE_ROW, self._x[None])[0])

    @property
    def gate_score(self) -> float:
        """What the current step's gate looks at."""
        return float(self._state.gate_score(self._step.node, ONE_ROW)[0])

    def follow(self, passed: bool) -> None:
        """Open the gate at which the row waits, or do not, and go on."""
        self.waiting = None
        self._go(passed)
        self._advance()

    def _go(self, passed: bool) -> None:
        node = self._step.node
        way = node.passed if passed else node.failed
        if way == EXIT:
            self._leave("answered")
        else:
            self._begin(way)

    def _leave(self, reason: str) -> None:
        """This root is through: take the next one, or stop. A root that could not be paid leaves its mark."""
        self._score()
        self._blame(reason)
        self.asked = 0
        self._root += 1
        self._is_skipping = False
        if self._root < len(self.plan.roots):
            self._begin(self.plan.roots[self._root])
        else:
            self.stop(self._reason)


class ListWalk:
    """The documents of one query, each on its way; gates that compare documents wait until all have arrived.

    `Plan.start_list` begins it.

    Parameters
    ----------
    plan : Plan
        The plan to walk through.
    given : sequence of mapping of str to float
        One mapping for each document: the values that are known at the start, as in `Walk`.
    budget : float or Caps, default=inf
        The most that each document may pay.
    without : sequence of str, default=()
        Acquisitions that are out of reach for all documents, as in `Walk`.
    owned : sequence of iterable of str, default=None
        For each document the acquisitions that it has already. By default none.

    Attributes
    ----------
    walks : list of Walk
        The walk of each document.

    Examples
    --------
    >>> from miserly.costs import CostTable
    >>> from miserly.plan import Gate, Node, Plan, RawFeatures
    >>> costs = CostTable.per_feature({"clicks": 1.0, "text": 8.0})
    >>> nodes = (Node([0], [1.0], gate=Gate.top(1), passed=1), Node([1], [1.0]))
    >>> both = Plan(costs, RawFeatures([0, 1]), nodes, [0.0]).start_list(2)
    >>> both.needs
    {0: ('clicks',), 1: ('clicks',)}
    >>> both.supply(0, {"clicks": 3.0})
    >>> both.supply(1, {"clicks": 5.0})
    >>> both.needs
    {1: ('text',)}
    """

    def __init__(
        self,
        plan: Plan,
        given: Sequence[Mapping[str, float]],
        budget: float | Caps = math.inf,
        without: Sequence[str] = (),
        owned: Sequence[Iterable[str]] | None = None,
    ) -> None:
        had = owned if owned is not None else [()] * len(given)
        self.walks = [Walk(plan, budget, known, without, mine, in_list=True) for known, mine in zip(given, had)]
        self.open_gates()

    def add(
        self, plan: Plan, budget: Any, given: Mapping[str, float], without: Iterable[str], owned: Iterable[str]
    ) -> Walk:
        """Begin one more document; the gates open when all have begun."""
        self.walks.append(Walk(plan, budget, given, without, owned, in_list=True, tolerant=True))
        return self.walks[-1]

    @property
    def done(self) -> bool:
        """Whether every document has its answer."""
        return all(walk.done for walk in self.walks)

    @property
    def needs(self) -> dict[int, tuple[str, ...]]:
        """What each document wants next, by its number."""
        return {i: walk.needs for i, walk in enumerate(self.walks) if walk.needs}

    def supply(self, row: int, values: Mapping[str, float]) -> None:
        """Give one document what it wanted."""
        self.walks[row].supply(values)
        self.open_gates()

    def fail(self, row: int, acquisition: str) -> None:
        """One document cannot have an acquisition; the others go on without it."""
        self.walks[row].fail(acquisition)
        self.open_gates()

    def open_gates(self) -> bool:
        """Open the earliest gate at which documents wait, once no document can arrive there; tells if any opened."""
        opened = False
        while not any(walk.needs for walk in self.walks):
            waiting = [walk for walk in self.walks if walk.waiting is not None]
            if not waiting:
                break
            opened = True
            first = min((walk._root, walk.waiting.first) for walk in waiting if walk.waiting is not None)
            here = [w for w in waiting if w.waiting is not None and (w._root, w.waiting.first) == first]
            assert here[0].waiting is not None
            gate = here[0].waiting.node.gate
            scores = np.array([walk.gate_score for walk in here])
            passed = passes(gate, scores, None, np.zeros(len(here), np.intp))
            for walk, on in zip(here, passed):
                walk.follow(bool(on))
        return opened
