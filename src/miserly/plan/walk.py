"""One row, or the list of one query, through a plan without any I/O: the walk says what it needs, a driver supplies it.

walk = plan.start(budget=50)
while not walk.done:
    walk.supply(get(walk.needs))
walk.best
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from miserly.costs import Account, set_bits
from miserly.kernels import trees as kernels
from miserly.plan.dictionary import Trees
from miserly.plan.gates import passes
from miserly.plan.node import EXIT
from miserly.plan.program import Step
from miserly.plan.state import State

if TYPE_CHECKING:
    from miserly.plan.plan import Plan

ONE_ROW = np.zeros(1, np.intp)
NOTHING: Mapping[str, float] = {}


@dataclass(frozen=True)
class Best:
    """The best answer so far: the value, the class probabilities if there are classes, the raw scores."""

    value: Any
    probabilities: NDArray[np.float64] | None
    score: NDArray[np.float64]
    tier: int


class Walk:
    """The way of one row. `needs` names what must be bought next; `stopped` says why it ended."""

    def __init__(
        self, plan: Plan, budget: float = math.inf, given: Mapping[str, float] = NOTHING, in_list: bool = False
    ) -> None:
        self.plan = plan
        self.budget = budget
        self.by_path = plan.charge == "path" and isinstance(plan.dictionary, Trees)
        self.program = plan.program("none" if self.by_path else "free")
        self.account: Account = self.program.ledger.empty
        self.tier = 0
        self.stopped: str | None = None
        self.needs: tuple[str, ...] = ()
        self.bought: list[str] = []
        self.exit = [EXIT] * len(plan.roots)
        self.waiting: Step | None = None
        self._in_list = in_list
        self._asked = 0
        self._x = np.full((1, len(plan.costs.features)), np.nan)
        self._has = np.zeros(len(plan.costs.features), bool)
        self._state = State(self.program, 1)
        self._values = np.zeros(max(1, self.program.n_kept))
        self._known = np.zeros(max(1, self.program.n_kept), bool)
        self._root = 0
        self._out_of_budget = False
        self._take(given)
        if plan.roots:
            self._begin(plan.roots[0])
            self._advance()
        else:
            self.stop("answered")

    # ---- what a driver uses -----------------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether the answer is final."""
        return self.stopped is not None

    @property
    def cost(self) -> float:
        """What was paid so far."""
        return self.account.total

    @property
    def best(self) -> Best:
        """The answer of the last complete node (the free constant before the first)."""
        plan = self.plan
        score = self._state.score()
        z = self._state.read(score)
        value = plan.read(z)[0]
        proba = plan.probabilities(z)[0] if plan.classes is not None else None
        return Best(value, proba, score[0], self.tier)

    def supply(self, values: Mapping[str, float]) -> None:
        """Take the values that the wanted acquisitions gave, pay for them, and go on as far as possible."""
        if self.done or self.waiting is not None:
            raise RuntimeError("This walk wants nothing: look at `needs` before supplying.")
        self._take(values)
        self.account = self.program.ledger.after(self.account, self._asked)
        self.bought += self.needs
        self._advance()

    def fail(self, acquisition: str) -> None:
        """An acquisition cannot be had: the answer of the last complete node stands."""
        self.stop(f"failed:{acquisition}")

    def stop(self, reason: str) -> None:
        """End the walk with the best answer so far, for the driver's own reason (a deadline, say)."""
        if self.stopped is None:
            self.needs = ()
            self.waiting = None
            self.stopped = reason

    def _take(self, values: Mapping[str, float]) -> None:
        """Keep values; everything that the plan may look at and that is or gets owned must be among them."""
        plan, number = self.plan, self.plan.feature_numbers
        unknown = [name for name in values if name not in number]
        if unknown:
            raise KeyError(f"The plan knows no feature {unknown[0]!r}.")
        owned = self.account.owned | self._asked
        for name, value in values.items():
            f = number[name]
            if plan.costs.feature_masks[f] & ~owned:
                raise KeyError(
                    f"Feature {name!r} was supplied before it was bought: it needs {plan.costs.needs[name]}."
                )
            self._x[0, f] = value
            self._has[f] = True
        masks = plan.costs.feature_masks
        new = [f for f in plan.features_touched_by(self._asked) if not masks[f] & ~owned]
        missing = [plan.costs.features[f] for f in new if not self._has[f]]
        if missing:
            what = f"The acquisitions {list(self.needs)} give" if self.needs else "Without any purchase there are"
            raise KeyError(f"{what} the features {missing}, which were not supplied.")

    # ---- the way through the graph ----------------------------------------------------------------------------

    def _begin(self, first: int) -> None:
        self._step = self.program.steps[first]
        self._entry, self._place = np.zeros(1, np.int64), np.full(1, -1, np.int64)

    def _advance(self) -> None:
        """Go on until something must be bought, a gate waits for other documents, or the answer is final."""
        ledger = self.program.ledger
        self.needs = ()
        while self.stopped is None and self.waiting is None:
            step = self._step
            after = ledger.after(self.account, 0, step.evaluated)
            if self.by_path and after.total <= self.budget:
                self.account = after
            self._asked = self._lacking(step)
            after = ledger.after(after, self._asked)
            if after.total > self.budget:
                self._leave("budget")
            elif self._asked:
                names = self.plan.costs.acquisitions
                self.needs = tuple(names[a] for a in set_bits(self._asked))
                return
            else:
                self.account = after
                self._score(step)
                if step.node.gate.by_query and self._in_list:
                    self.waiting = step
                else:
                    self._go(step.is_open or bool(self._state.passed(step.node, ONE_ROW, ONE_ROW)[0]))

    def _lacking(self, step: Step) -> int:
        """The acquisitions to buy next: all that the step still lacks, or what the next split of its paths does."""
        if not self.by_path:
            return step.acquisitions & ~self.account.owned
        words = self.program.words
        owned = np.frombuffer(self.account.owned.to_bytes(words.shape[1] * 8, "little"), np.uint64)[None]
        wants = np.zeros(1, np.int64)
        trees = self.plan.dictionary.table  # type: ignore[attr-defined]
        kernels.walk_until_purchase(
            self._x, ONE_ROW, trees, step.learners, words, owned, self._entry, self._place, wants
        )
        return self.plan.costs.feature_masks[wants[0]] & ~self.account.owned if wants[0] >= 0 else 0

    def _score(self, step: Step) -> None:
        plan, row = self.plan, self._state.columns[0]
        self._state.begin(step.head, ONE_ROW)
        edges = (step.pointer, step.column, step.weight)
        if isinstance(plan.dictionary, Trees):
            kept = (self.program.keep, self._values, self._known)
            kernels.add_trees_to_row(self._x[0], plan.dictionary.table, step.learners, *edges, *kept, row)
        else:
            columns = plan.dictionary.columns[step.learners]  # type: ignore[attr-defined]
            kernels.add_columns_to_row(self._x[0], columns, *edges, row)
        self._state.finish(step.node, ONE_ROW)
        self.exit[self._root] = step.last
        self.tier = step.node.tier

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
        self._out_of_budget |= reason == "budget"
        self._asked = 0
        self._root += 1
        if self._root < len(self.plan.roots):
            self._begin(self.plan.roots[self._root])
        else:
            self.stop("budget" if self._out_of_budget else "answered")


class ListWalk:
    """The documents of one query, each on its way; gates that compare documents wait until all have arrived."""

    def __init__(self, plan: Plan, given: Sequence[Mapping[str, float]], budget: float = math.inf) -> None:
        self.walks = [Walk(plan, budget, known, in_list=True) for known in given]
        self._settle()

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
        self._settle()

    def fail(self, row: int, acquisition: str) -> None:
        """One document cannot have an acquisition; the others go on without it."""
        self.walks[row].fail(acquisition)
        self._settle()

    def _settle(self) -> None:
        """Open the earliest gate at which documents wait, once no document can arrive there any more."""
        while not self.needs:
            waiting = [walk for walk in self.walks if walk.waiting is not None]
            if not waiting:
                return
            first = min((walk._root, walk.waiting.first) for walk in waiting if walk.waiting is not None)
            here = [w for w in waiting if w.waiting is not None and (w._root, w.waiting.first) == first]
            assert here[0].waiting is not None
            gate = here[0].waiting.node.gate
            scores = np.array([walk.gate_score for walk in here])
            passed = passes(gate, scores, None, np.zeros(len(here), np.intp))
            for walk, on in zip(here, passed):
                walk.follow(bool(on))
