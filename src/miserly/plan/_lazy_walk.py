"""One row, or the rows of one query, through a lazy plan without any I/O, from any state of knowledge."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from miserly.kernels import lazy as kernels
from miserly.plan._state_walk import StateWalk
from miserly.plan._walk import NOTHING, Best, ListWalk, Walk

if TYPE_CHECKING:
    from miserly.plan._lazy import LazyPlan


class LazyWalk(StateWalk):
    """The way of one row. `needs` names what is bought next; `best` is always there."""

    plan: LazyPlan

    def __init__(
        self,
        plan: LazyPlan,
        budget: float = math.inf,
        given: Mapping[str, float] = NOTHING,
        without: Iterable[str] = (),
        owned: Iterable[str] = (),
        in_list: bool = False,
    ) -> None:
        self._set_out(plan, budget, owned)
        self._in_list = in_list
        known, self._away = plan.at_first
        self._known, self._closed = known.copy(), self._away.copy()
        n_trees = len(plan.dictionary)
        self._low, self._high = np.full(n_trees, -np.inf), np.full(n_trees, np.inf)
        self._mean, self.sums = np.empty(n_trees), np.zeros((4, plan.n_outputs))
        self.sums[:3] = plan.prior
        self._contending = np.ones(plan.n_outputs, bool)
        self._begin_row(given, without, plan.evaluated)

    def _know(self, f: int, value: float) -> None:
        if not self._away[f]:
            self._x[f] = value
            self._known[f] = True

    # ---- what a driver uses ---------------------------------------------------------------------------------------

    @property
    def best(self) -> Best:
        """The prediction from what is known now."""
        plan, score = self.plan, self.sums[2].copy()
        z = (score * plan._scale + plan._offset)[None] if self.exit[0] >= 0 else score[None].copy()
        proba = plan.probabilities(z)[0] if plan.classes is not None else None
        return Best(plan.read_row(z), proba, score, 0)

    def contributions(self) -> Any:
        """Refused, as for the plan."""
        return self.plan.contributions(None)

    def _fill(self) -> None:
        """Trees have a way for missing values."""

    def _bar(self, acquisition: str) -> None:
        super()._bar(acquisition)
        for f in self.plan.used_features:
            mask = self.plan.tables.masks[f]
            if mask & self._dead and mask & ~self.owned:
                self._closed[f] = True

    # ---- inside ---------------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Look at the trees with what is known by now; then go on, unless other rows of the query have a say."""
        self.needs = ()
        plan = self.plan
        kernels.reveal(self._known, self._closed, self._owns, plan.model[2], self._away)
        trees, edges, _, reading = plan.model
        rule = plan.laziness
        assert rule is not None
        self._n_open = kernels.look(self._x, self._known, trees, edges, self._low, self._high, self._mean, self.sums)
        if self._in_list:
            return
        certain = kernels.contends(self.sums, reading, self._contending)
        if plan.by_query:  # a row alone is the first of its query
            certain = True
        link = self.plan.link_number
        if certain or not self._n_open or kernels.is_sure(self.sums, reading, link, rule.confidence):
            self.stop(self._reason)
        else:
            self.ask()

    def ask(self) -> None:
        """Ask for what the row buys next, or stop."""
        if not self._n_open:
            self.stop(self._reason)
            return
        limits = (self.budget, self._evaluation)
        bounds = (self._low, self._high, self._contending)
        state = (self._x, self._known, self._closed, self._owns, self._has)
        group, blocked = kernels.choose(*state, *bounds, self.plan.model, *limits)
        if blocked:
            self._blame("budget")
        if group < 0:
            self.stop(self._reason)
            return
        self._ask_for(self.plan.groups[group])


class LazyListWalk(ListWalk):
    """The documents of one query. In each turn those whose place is undecided buy once."""

    def __init__(
        self,
        plan: LazyPlan,
        given: Sequence[Mapping[str, float]],
        budget: float = math.inf,
        without: Sequence[str] = (),
        owned: Sequence[Iterable[str]] | None = None,
    ) -> None:
        self.plan = plan
        had = owned if owned is not None else [()] * len(given)
        self.walks = []
        for known, mine in zip(given, had):
            self.add(plan, budget, known, without, mine)
        self.open_gates()

    def add(
        self,
        plan: LazyPlan,  # type: ignore[override]
        budget: Any,
        given: Mapping[str, float],
        without: Iterable[str],
        owned: Iterable[str],
    ) -> Walk:
        """Begin one more document."""
        self.walks.append(LazyWalk(plan, budget, given, without, owned, in_list=plan.by_query))
        return self.walks[-1]

    def open_gates(self) -> bool:
        """Once nobody waits for a value, let those ask whose place is undecided; the others stop."""
        rule, opened = self.plan.laziness, False
        assert rule is not None
        if not self.plan.by_query:
            return False
        while not any(walk.needs for walk in self.walks) and not self.done:
            sums = np.array([walk.sums for walk in self.walks if isinstance(walk, LazyWalk)])
            is_open = np.zeros(len(sums), bool)
            least, most, slack = (np.ascontiguousarray(sums[:, line, 0]) for line in (0, 1, 3))
            kernels.undecided(least, most, slack, rule.k, is_open)
            for walk, is_mine in zip(self.walks, is_open):
                if walk.stopped is None and isinstance(walk, LazyWalk):
                    opened = True
                    if is_mine:
                        walk.ask()
                    else:
                        walk.stop(walk._reason)
        return opened
