"""One row on its way, without I/O: which extractors it wants called, and what comes of their results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from miserly.costs import total_price
from miserly.plan import Walk
from miserly.runtime._answer import Answer, Call
from miserly.runtime._breaker import Breaker
from miserly.runtime._calls import BLAMELESS, BadRow, CallOutcome, Now, perform_one
from miserly.runtime._extractor import Extractor
from miserly.runtime._extractor_set import CallBatch, ExtractorSet
from miserly.runtime._given import NOTHING_GIVEN, Given
from miserly.runtime._spending import SpendCapReached


class Session:
    """Stands between a walk and its driver: `wanted` are the calls to start now, `give` takes what they gave.

    Results are kept for the extractors that need them; values go to the walk when all that it asked for is there.

    Parameters
    ----------
    extractors : ExtractorSet
        Those of the plan.
    row : object
        What the extractors are called with.
    now : callable
        Gives the time in seconds.
    limit : str, default ""
        The spending limit that leaves less money than the row's budget, if one does.
    """

    def __init__(self, extractors: ExtractorSet, row: Any, now: Now, limit: str = "") -> None:
        self._now, self.limit = now, limit
        self.extractors, self.row, self.began = extractors, row, now()
        self.calls: list[Call] = []
        self.running: dict[str, float | None] = {}  # when each began; None: it waits for a worker
        self._results: dict[str, Any] = {}
        self._values: dict[str, float] = {}
        self._failed: set[str] = set()
        self._tries: dict[str, int] = {}
        self._reason: str | None = None
        self._stage = 0
        self._repeated: dict[str, float] = {}  # what second calls cost
        self._unpaid: dict[str, str] = {}  # acquisitions for which a spending limit left no money
        self._walk: Walk | None = None

    def begin(self, walk: Walk) -> None:
        """Go along with a walk that has begun."""
        self._walk = walk

    @property
    def values(self) -> Mapping[str, float]:
        """The values that came so far, by feature."""
        return self._values

    @property
    def lacks_free(self) -> bool:
        """Whether something failed that was to be free."""
        return self._reason is not None

    @property
    def walk(self) -> Walk:
        """The row's way through the plan."""
        assert self._walk is not None
        return self._walk

    @property
    def done(self) -> bool:
        """Whether the answer is final."""
        return self.walk.stopped is not None

    # ---- what a driver uses ---------------------------------------------------------------------------------------

    def wanted(self) -> list[Extractor]:
        """The calls that can start now."""
        if not self.walk.needs:
            return []
        have, running, failed = self._results, self.running, self._failed
        return [
            e
            for e in self._batch.extractors
            if not (e.name in have or e.name in running or e.name in failed)
            and (not e.needs or all(name in have for name in e.needs))
        ]

    def arguments(self, e: Extractor) -> tuple[Any, ...]:
        """What an extractor is called with."""
        return (self.row, *[self._results[n] for n in e.needs]) if e.needs else (self.row,)

    def start(self, e: Extractor) -> None:
        """Note that a call begins."""
        self.running[e.name] = self._now()

    def call_plain(self, breakers: Mapping[str, Breaker]) -> None:
        """The short way while all goes well: call what is wanted, one after the other, and put the values straight into
        their columns. Ends at the first trouble."""
        walk, extractors, have, row, now = self.walk, self.extractors, self._results, self.row, self._now
        while walk.needs:
            batch = extractors.batch(walk.owned, walk.asked)
            if batch.columns is None:
                return
            numbers = []
            for e in batch.extractors:
                name = e.name
                if name in have or breakers[name].has_failures:
                    self._remember(batch)
                    return
                began = now()
                try:
                    result = e.function(*self.arguments(e)) if e.needs else e.function(row)
                    seconds = now() - began
                    numbers.append(e.read(result, extractors.places[name]))
                except (Exception, SystemExit) as error:
                    if not isinstance(error, BadRow):
                        breakers[name].count(False)
                    self.running[name] = began
                    self._remember(batch)
                    self.give(e, CallOutcome(None, error, now() - began))
                    return
                have[name] = result
                self.calls.append(Call(name, extractors.price[name], began - self.began, seconds, "ok", self._stage))
            try:
                walk.supply_columns(zip(batch.columns, numbers))
                self._stage += 1
            except (TypeError, ValueError, OverflowError):  # not all of them are numbers
                self._remember(batch)
                return

    def _remember(self, batch: CallBatch) -> None:
        """Read the results of a batch that has not arrived: what is no number is a failure after all."""
        for e in batch.extractors:
            if e.name in self._results:
                try:
                    self._values.update(self.extractors.values(e, self._results[e.name]))
                except Exception as wrong:
                    del self._results[e.name]
                    place = next(i for i, call in enumerate(self.calls) if call.name == e.name)
                    self.calls[place] = self.calls[place]._replace(outcome=describe(wrong))
                    self._fail(e)

    def give(self, e: Extractor, outcome: CallOutcome, is_final: bool = False) -> None:
        """Take the outcome of a call. A failed one is wanted again if the extractor has retries left."""
        is_good = self._keep(e, outcome, self.running.pop(e.name) or self.began)
        if not is_good:
            self._tries[e.name] = self._tries.get(e.name, 0) + 1
            if is_final or self._tries[e.name] > e.retries or isinstance(outcome.error, BLAMELESS):
                if isinstance(outcome.error, SpendCapReached) and e.acquisition:
                    self._unpaid[e.acquisition] = outcome.error.limit
                self._fail(e)
        if self.walk.needs:
            self.go_on()

    def pay_again(self, e: Extractor) -> bool:
        """Pay a second call of an extractor, unless the budget does not hold it."""
        price = self.extractors.price[e.name]
        if not self.walk.reserve(price):
            return False
        self._repeated[e.name] = price
        return True

    def refund(self, e: Extractor) -> None:
        """Nobody pays for the one of two calls that failed."""
        if e.name in self._repeated:
            self.walk.reserve(-self._repeated.pop(e.name))

    def note_loser(self, e: Extractor, began: float) -> None:
        """Note the one of two calls that was not needed."""
        self._note(e.name, began, self._now() - began, "hedged")

    def give_up(self, reason: str) -> None:
        """Answer now with what there is; calls still running are noted as such."""
        now = self._now()
        for name, began in self.running.items():
            if began is None:
                self._note(name, now, 0.0, "waiting")
            else:
                self._note(name, began, now - began, "running")
        self.walk.stop(reason)

    def first_values(self, given: Given = NOTHING_GIVEN) -> dict[str, float]:
        """The values with which the walk begins: what costs nothing is called, what is given is taken."""
        batch = self.extractors.batch(0, 0)
        for e in batch.extractors:
            if given is NOTHING_GIVEN or e.name in given.running:
                began = self._now()
                if not self._keep(e, perform_one(e, self.arguments(e), self._now), began):
                    self._fail(e)
        self._values.update(given.values)
        return {**self._values_of(batch), **given.values}

    def answer(self) -> Answer:
        """What the caller gets."""
        walk = self.walk
        best = walk.best
        stopped = self._stopped()
        elapsed = self._now() - self.began
        return Answer(
            best.value,
            best.probabilities,
            best.score,
            best.tier,
            total_price([walk.cost, *self._repeated.values()]) if self._repeated else walk.cost,
            stopped,
            tuple(walk.bought),
            elapsed,
            tuple(self.calls),
            walk.plan.costs.unit,
            walk,
        )

    def _stopped(self) -> str:
        """Why the row stopped."""
        stopped = str(self.walk.stopped)
        if self._reason and stopped in ("answered", "budget"):
            return self._reason
        kind, _, acquisition = stopped.partition(":")
        limit = self.limit if kind == "budget" else self._unpaid.get(acquisition, "") if kind == "failed" else ""
        return f"spend-cap:{limit}" if limit else stopped

    def leave_out(self, acquisitions: Iterable[str]) -> None:
        """Note what the row's spending limit leaves no money for."""
        self._unpaid |= dict.fromkeys(acquisitions, self.limit)

    # ---- inside ---------------------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Give the walk what it asked for, as long as all of that is there."""
        walk = self.walk
        while walk.needs:
            self._batch = batch = self.extractors.batch(walk.owned, walk.asked)
            missing = [e for e in batch.extractors if e.name not in self._results]
            lost = self._lost(missing) if self._failed else []
            if len(missing) > len(lost):
                return
            if not any(e.acquisition for e in lost):
                walk.supply(self._values_of(batch))
                self._stage += 1

    def _lost(self, missing: list[Extractor]) -> list[Extractor]:
        """Those that cannot give anything because they, or what they need, failed; the walk goes on without them."""
        failed = self._failed
        lost = [e for e in missing if e.name in failed or any(name in failed for name in e.needs)]
        for e in lost:
            self._fail(e)
        return lost

    def _keep(self, e: Extractor, outcome: CallOutcome, began: float) -> bool:
        """Keep the result of a call and note how it went; tells whether it went well."""
        error = outcome.error
        if error is None:
            try:
                self._values.update(self.extractors.values(e, outcome.result))
                self._results[e.name] = outcome.result
            except Exception as wrong:
                error = wrong
        text = describe(error) if error is not None else "cached" if outcome.is_cached else "ok"
        self._note(e.name, began, outcome.seconds, text, outcome.paid)
        return error is None

    def _fail(self, e: Extractor) -> None:
        """An extractor will not give anything for this row: the walk goes on without it, as far as it can."""
        self._failed.add(e.name)
        self.refund(e)
        if self._walk is not None and e.acquisition:
            self._walk.fail(e.acquisition)
            return
        self._reason = self._reason or f"failed:{e.name}"
        if self._walk is not None and not self._walk.plan.can_miss:
            self._walk.stop(self._reason)

    def _values_of(self, batch: CallBatch) -> dict[str, float]:
        """The values of the features that a batch gives; those whose extractor failed are missing."""
        values, failed = self._values, self._failed
        return {f: math.nan if failed and by in failed else values[f] for f, by in batch.features}

    def _note(self, name: str, began: float, seconds: float, outcome: str, paid: float | None = None) -> None:
        price = self.extractors.price[name]
        self.calls.append(Call(name, price, began - self.began, seconds, outcome, self._stage, paid))


def describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
