"""Where calls are paid: the price is reserved, the call is made, and what it really cost is booked."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from miserly.costs import CostTable
from miserly.runtime._extractor import Extractor
from miserly.runtime._spending import Reservation, SpendCap

log = logging.getLogger("miserly.runtime")
Arguments = Sequence[tuple[Any, ...]]


class CallOutcome(NamedTuple):
    """How a call ended for one row: its result or the error, the seconds that it took, and what it really cost (None:
    nobody asked)."""

    result: Any
    error: BaseException | None
    seconds: float = 0.0
    is_cached: bool = False
    paid: float | None = None


def prices_under(
    cap: SpendCap, costs: CostTable, called: Sequence[Extractor], prices: Mapping[str, float]
) -> dict[str, float]:
    """The prices of extractors in the currency of a cap; an error for those that cannot be reserved."""
    unit = cap.check_unit(costs.unit, costs.exchange)
    for e in called:
        if e.acquisition in costs.row_prices and (e.usage is None or e.at_most is None):
            raise ValueError(
                f"The price of {e.acquisition!r} depends on the row: under a spending cap its extractor needs "
                "at_most=, which is reserved before a call, and usage=, which says what it really cost."
            )
    return {e.name: _amount(costs, e.acquisition, unit) for e in called} if costs.exchange else dict(prices)


def _amount(costs: CostTable, acquisition: str | None, currency: str) -> float:
    """The price of an acquisition in one currency; 0 if it has none in it."""
    if acquisition is None:
        return 0.0
    if acquisition in costs.amounts:
        amount = costs.amounts[acquisition].get(currency, 0.0)
        return amount if isinstance(amount, int | float) else 0.0
    return costs.prices[acquisition] if currency == costs.unit else 0.0


class Till:
    """Pays for the calls of one runner.

    Parameters
    ----------
    cap : SpendCap or None
        What may be spent; None: any amount, and what calls really cost is only reported.
    prices : mapping of str to float
        The price of each extractor, by its name.
    """

    def __init__(self, cap: SpendCap | None, prices: Mapping[str, float]) -> None:
        self.cap, self.prices = cap, prices
        self._complained: set[str] = set()

    def serves(self, e: Extractor) -> bool:
        """Whether the calls of an extractor are paid here."""
        if e.usage is not None:
            return True
        return self.cap is not None and (self.prices.get(e.name, 0.0) > 0 or e.at_most is not None)

    def exceeds(self, e: Extractor, left: float) -> bool:
        """Whether a call costs more than what is left."""
        return self.serves(e) and self._price(e) > left

    def _price(self, e: Extractor) -> float:
        """What is reserved for a call."""
        return max(self.prices.get(e.name, 0.0), e.at_most or 0.0)

    def perform(
        self, e: Extractor, arguments: Arguments, make: Callable[[Arguments], list[CallOutcome]]
    ) -> list[CallOutcome]:
        """Make a call for those rows that can be paid."""
        held = self._take(e, len(arguments))
        return self._book(e, held, make(arguments[: held.n]) if held.n else [], len(arguments))

    async def perform_async(
        self, e: Extractor, arguments: Arguments, make: Callable[[Arguments], Awaitable[list[CallOutcome]]]
    ) -> list[CallOutcome]:
        """The same without blocking the event loop. A call that is cancelled counts as paid: it was sent."""
        if self.cap is None or self.cap.is_instant:
            held = self._take(e, len(arguments))
            return self._book(e, held, await make(arguments[: held.n]) if held.n else [], len(arguments))
        taking = asyncio.ensure_future(asyncio.to_thread(self._take, e, len(arguments)))
        try:
            held = await asyncio.shield(taking)
        except asyncio.CancelledError:  # before the call: nothing is spent
            taking.add_done_callback(self._give_back)
            raise
        outcomes = await make(arguments[: held.n]) if held.n else []
        return await asyncio.shield(asyncio.to_thread(self._book, e, held, outcomes, len(arguments)))

    def _give_back(self, taking: asyncio.Future[Reservation]) -> None:
        if not taking.cancelled() and taking.exception() is None and self.cap is not None:
            asyncio.get_running_loop().run_in_executor(None, self.cap.correct, taking.result(), 0.0)

    def _take(self, e: Extractor, n: int) -> Reservation:
        price = self._price(e)
        return Reservation(n, price, ()) if self.cap is None else self.cap.take(price, n)

    def _book(self, e: Extractor, held: Reservation, outcomes: list[CallOutcome], n: int) -> list[CallOutcome]:
        """Note what each call really cost, and give back what was not spent; the rest of n calls was not made."""
        price = self.prices.get(e.name, 0.0)
        booked = [outcome._replace(paid=self._paid(e, outcome, price)) for outcome in outcomes]
        if self.cap is None:
            return booked
        if held.n:
            self.cap.correct(held, math.fsum(outcome.paid or 0.0 for outcome in booked))
        if held.n < n:
            booked += [CallOutcome(None, self.cap.refusal(e.name, n - held.n), paid=0.0)] * (n - held.n)
        return booked

    def _paid(self, e: Extractor, outcome: CallOutcome, price: float) -> float:
        """What a call cost. One that failed cost nothing, unless its time was up: the service may have worked."""
        if outcome.is_cached:
            return 0.0
        if outcome.error is not None:
            return self._price(e) if isinstance(outcome.error, TimeoutError) else 0.0
        if e.usage is None:
            return price
        try:
            paid = float(e.usage(outcome.result))
            if not 0 <= paid < math.inf:
                raise ValueError(f"it gave {paid!r}, not a price of 0 or more")
        except Exception as error:
            if e.name not in self._complained:
                self._complained.add(e.name)
                log.warning("The usage of extractor %r cannot be read, so its price counts: %s.", e.name, error)
            return self._price(e)
        return paid
