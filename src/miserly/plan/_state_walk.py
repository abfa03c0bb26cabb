"""What walks share that begin from any state of knowledge: of rows that decide by what they know, not by a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from miserly.costs import set_bits
from miserly.plan._walk import Walk

if TYPE_CHECKING:
    from miserly.plan._plan import Plan


class StateWalk(Walk):
    """The way of one row of a plan with one node, that asks for what `_advance` chooses."""

    def _set_out(self, plan: Plan, budget: float, owned: Iterable[str]) -> None:
        """A row that knows and has paid nothing."""
        self.plan, self.budget, self.by_path = plan, budget, False
        self.account = self._paid = plan.tables.ledger.empty
        self.tier = self.asked = self._dead = self._root = 0
        self.stopped: str | None = None
        self.needs: tuple[str, ...] = ()
        self.bought: list[str] = []
        self.exit = [-1]
        self.waiting = None
        self._reason = "answered"
        self._had = plan.tables.acquisition_set(owned)
        self._has, self._owns = np.zeros((2, len(plan.costs.acquisitions)), bool)
        self._x = np.full(len(plan.costs.features), np.nan)  # values as they came

    def _begin_row(self, given: Mapping[str, float], without: Iterable[str], evaluated: int) -> None:
        """Take what is known at the start, and pay for the evaluation of these learners."""
        plan = self.plan
        for name in given:
            if name not in plan.tables.feature_numbers:
                raise KeyError(f"The plan knows no feature {name!r}.")
            self._know(plan.tables.feature_numbers[name], given[name])
        for name in plan.tables.known_at_first(self._had):
            if name not in given:
                raise KeyError(f"Without any purchase there are the features [{name!r}], which were not supplied.")
        self._has[list(set_bits(self._had))] = True
        self._owns |= self._has
        for name in without:
            self._bar(name)
        first = plan.tables.ledger.after(self.account, 0, evaluated)
        if first.total > self.budget:
            self.stop("budget")
            return
        self._evaluation, self.account = first.total, first
        self.exit = [0 if plan.nodes else -1]
        self._advance()

    def _know(self, f: int, value: float) -> None:
        """Take a value that is given."""
        raise NotImplementedError

    def _bar(self, acquisition: str) -> None:
        """Buy no feature any more that needs this."""
        self._dead |= 1 << self.plan.tables.acquisition_numbers[acquisition]

    def supply_columns(self, values: Iterable[tuple[NDArray[np.intp], Sequence[float]]]) -> None:
        """The values by the numbers of their columns, unchecked: for a driver that knows what arrives."""
        for columns, numbers in values:
            self._x[columns] = numbers
        self._pay()

    def _pay(self) -> None:
        self.account = self._paid
        self.bought += self.needs
        self._owns[list(set_bits(self.asked))] = True
        self._advance()

    def _ask_for(self, acquisitions: int) -> None:
        """Ask for what the row lacks of a set."""
        self.asked = acquisitions & ~self.owned
        self.needs = self.plan.tables.acquisition_names(self.asked)
        self._paid = self.plan.tables.ledger.after(self.account, self.asked)

    def fail(self, acquisition: str) -> None:
        """An acquisition is unavailable: nobody pays for it, and it is not asked for again."""
        if self.stopped is not None or self.plan.tables.acquisition_set([acquisition]) & self.owned:
            return
        if acquisition in self.needs:
            self._blame(f"failed:{acquisition}")
        self._bar(acquisition)
        if self.needs:
            self._advance()

    def stop(self, reason: str) -> None:
        """End the walk with the best prediction so far, for the driver's own reason (a deadline, say)."""
        if self.stopped is None:
            self.needs, self.asked, self.stopped = (), 0, reason
