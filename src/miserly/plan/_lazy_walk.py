"""One row, or the rows of one query, through a lazy plan without any I/O, from any state of knowledge."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from miserly.costs import set_bits
from miserly.kernels import lazy as kernels
from miserly.plan._walk import NOTHING, Best, ListWalk, Walk

if TYPE_CHECKING:
    from miserly.plan._lazy import LazyPlan


class LazyWalk(Walk):
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
        self.plan, self.budget, self.by_path = plan, budget, False
        self.account = self._paid = plan.tables.ledger.empty
        self.tier = self.asked = self._dead = self._root = 0
        self.stopped: str | None = None
        self.needs: tuple[str, ...] = ()
        self.bought: list[str] = []
        self.exit = [-1]
        self.waiting = None
        self._reason = "answered"
        self._in_list = in_list
        self._had = plan.tables.acquisition_set(owned)
        known, self._away = plan.at_first
        self._known, self._closed = known.copy(), self._away.copy()
        n_trees, n_acquisitions = len(plan.dictionary), len(plan.costs.acquisitions)
        self._low, self._high = np.full(n_trees, -np.inf), np.full(n_trees, np.inf)
        self._mean, self.sums = np.empty(n_trees), np.zeros((4, plan.n_outputs))
        self.sums[:3] = plan.prior
        self._contending = np.ones(plan.n_outputs, bool)
        self._has, self._owns = np.zeros((2, n_acquisitions), bool)
        self._x = np.full(len(plan.costs.features), np.nan)
        self._begin_row(given, without)

    def _begin_row(self, given: Mapping[str, float], without: Iterable[str]) -> None:
        plan = self.plan
        number = plan.tables.feature_numbers
        for name in given:
            if name not in number:
                raise KeyError(f"The plan knows no feature {name!r}.")
            if not self._away[number[name]]:
                self._x[number[name]] = given[name]
                self._known[number[name]] = True
        for name in plan.tables.known_at_first(self._had):
            if name not in given:
                raise KeyError(f"Without any purchase there are the features [{name!r}], which were not supplied.")
        self._has[list(set_bits(self._had))] = True
        self._owns |= self._has
        for name in without:
            self._bar(name)
        first = plan.tables.ledger.after(self.account, 0, plan.evaluated)
        if first.total > self.budget:
            self.stop("budget")
            return
        self._evaluation, self.account = first.total, first
        self.exit = [0 if plan.nodes else -1]
        self._advance()

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

    def supply_columns(self, values: Iterable[tuple[NDArray[np.intp], Sequence[float]]]) -> None:
        """The values by the numbers of their columns, unchecked: for a driver that knows what arrives."""
        for columns, numbers in values:
            self._x[columns] = numbers
        self._pay()

    def _fill(self) -> None:
        """Trees have a way for missing values."""

    def _pay(self) -> None:
        self.account = self._paid
        self.bought += self.needs
        self._owns[list(set_bits(self.asked))] = True
        kernels.reveal(self._known, self._closed, self._owns, self.plan.model[2], self._away)
        self._advance()

    def fail(self, acquisition: str) -> None:
        """An acquisition is unavailable: nobody pays for it, and it is not asked for again."""
        if self.stopped is not None or self.plan.tables.acquisition_set([acquisition]) & self.owned:
            return
        if acquisition in self.needs:
            self._blame(f"failed:{acquisition}")
        self._bar(acquisition)
        if self.needs:
            self._advance()

    def _bar(self, acquisition: str) -> None:
        """Buy no feature any more that needs this."""
        self._dead |= 1 << self.plan.tables.acquisition_numbers[acquisition]
        for f in self.plan.used_features:
            mask = self.plan.tables.masks[f]
            if mask & self._dead and mask & ~self.owned:
                self._closed[f] = True

    def stop(self, reason: str) -> None:
        """End the walk with the best prediction so far, for the driver's own reason (a deadline, say)."""
        if self.stopped is None:
            self.needs, self.asked, self.stopped = (), 0, reason

    # ---- inside ---------------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Look at the trees with what is known by now; then go on, unless other rows of the query have a say."""
        self.needs = ()
        plan = self.plan
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
        self.asked = self.plan.groups[group] & ~self.owned
        self.needs = self.plan.tables.acquisition_names(self.asked)
        self._paid = self.plan.tables.ledger.after(self.account, self.asked)


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
