"""Prices in several currencies, what they are worth in one, and caps on each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from miserly.costs._row_prices import RowPrice, checked_price, is_row_price, read_price, summed

ROUNDS = "rounds"  # the currency that every order costs one of, whatever it holds
TIMES = frozenset(
    ("ms", "milliseconds", "s", "sec", "seconds", "min", "minutes", "h", "hours", "days", "weeks")
)  # of what is ordered together, only the longest counts
Amounts = dict[str, float | RowPrice]
Parsed = tuple[dict[str, float], dict[str, float], dict[str, RowPrice], dict[str, Amounts]]


@dataclass(frozen=True)
class Caps:
    """The most that a row may pay of each currency, and in all.

    Parameters
    ----------
    total : float
        The cap on the total in the table's unit, infinite without one.
    each : tuple of (str, float)
        The caps by currency.
    """

    total: float
    each: tuple[tuple[str, float], ...]


def read_prices(given: Mapping[Any, Any], rates: Any) -> Parsed:
    """The exchange rates, the expected price of each acquisition in one unit, those that depend on the row, and the
    amounts by currency of those that have them."""
    exchange = {str(c): checked_price(f"the exchange rate of {c!r}", rate) for c, rate in dict(rates).items()}
    prices: dict[str, float] = {}
    rules: dict[str, RowPrice] = {}
    amounts: dict[str, Amounts] = {}
    for a, spec in given.items():
        what = f"the price of {a!r}"
        if isinstance(spec, Mapping) and not is_row_price(spec):
            amounts[str(a)] = _amounts(a, spec, exchange)
            price = summed((exchange[c], part) for c, part in amounts[str(a)].items())
            price = checked_price(what, price) if isinstance(price, float) else price
        else:
            price = read_price(what, spec)
            if exchange and price != 0.0:
                first = next(iter(exchange))
                raise ValueError(
                    f"The table has an exchange between currencies, and {what} has no currency. Write "
                    f"{{{first!r}: {spec}}}."
                )
        if isinstance(price, RowPrice):
            rules[str(a)] = price
        prices[str(a)] = price if isinstance(price, float) else price.expected
    return exchange, prices, rules, amounts


def _amounts(a: Any, spec: Mapping[Any, Any], exchange: Mapping[str, float]) -> Amounts:
    found: Amounts = {}
    for currency, amount in spec.items():
        if currency == ROUNDS:
            raise ValueError(f"The price of {a!r} counts {ROUNDS}: every order counts one by itself. Leave it out.")
        if currency not in exchange:
            known = ", ".join(map(repr, exchange)) or "none"
            raise ValueError(
                f"The price of {a!r} is in {currency!r}, which has no exchange rate; there are rates of: {known}. Give "
                f"exchange={{{str(currency)!r}: …}}, what a unit of it is worth."
            )
        found[str(currency)] = read_price(f"the price of {a!r} in {currency!r}", amount)
    return found


def as_plain(
    exchange: Mapping[str, float], rules: Mapping[str, RowPrice], amounts: Mapping[str, Any]
) -> dict[str, Any]:
    """What of these a table has, as plain data: nothing for a table of constant prices."""

    def plain(price: Any) -> Any:
        return price.to_dict() if isinstance(price, RowPrice) else price

    fields: dict[str, Any] = {} if not exchange else {"exchange": dict(exchange)}
    own = {a: plain(rule) for a, rule in rules.items() if a not in amounts}
    fields |= {"row_prices": own} if own else {}
    spelled = {a: {c: plain(part) for c, part in parts.items()} for a, parts in amounts.items()}
    return fields | ({"amounts": spelled} if spelled else {})


def scaled(specs: Mapping[str, Any], exchange: Mapping[str, float], factor: float) -> dict[str, Any]:
    """The fields of a table whose prices are worth so many times as much: amounts stay, rates change."""
    rates = {c: rate * factor for c, rate in exchange.items()}
    prices = {
        a: spec if isinstance(spec, Mapping) else spec.scaled(factor) if isinstance(spec, RowPrice) else spec * factor
        for a, spec in specs.items()
    }
    return {"prices": prices, "exchange": rates, "row_prices": {}, "amounts": {}}


def mapped(specs: Mapping[str, Any], change: Callable[[RowPrice], float | RowPrice]) -> dict[str, Any]:
    """Prices of which those that depend on the row are changed."""

    def changed(price: Any) -> Any:
        if isinstance(price, Mapping):
            return {c: changed(part) for c, part in price.items()}
        return change(price) if isinstance(price, RowPrice) else price

    return {a: changed(spec) for a, spec in specs.items()}


def renamed(specs: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Prices that depend on features which have other names now."""
    return mapped(specs, lambda price: price.renamed(names))


def tighter(first: float | Caps | None, second: float | Caps | None) -> float | Caps | None:
    """Both limits in one."""
    if first is None or second is None:
        return second if first is None else first
    if not isinstance(first, Caps) and not isinstance(second, Caps):
        return min(first, second)
    one, other = (limit if isinstance(limit, Caps) else Caps(limit, ()) for limit in (first, second))
    each = dict(one.each)
    for currency, cap in other.each:
        each[currency] = min(cap, each.get(currency, cap))
    return Caps(min(one.total, other.total), tuple(each.items()))


def worth(caps: Caps, exchange: Mapping[str, float]) -> float:
    """The most that a row which keeps the caps can pay in all, as far as they tell."""
    limits = dict(caps.each)
    money = [(rate, c) for c, rate in exchange.items() if rate]
    if not money or any(c not in limits or c in TIMES for _, c in money):
        return caps.total
    return min(caps.total, math.fsum(rate * limits[c] for rate, c in money))


def read_budget(budget: Any, exchange: Mapping[str, float], unit: str) -> float | Caps:
    """A cap as a number, or caps by currency, checked.

    Parameters
    ----------
    budget : float, mapping of str to float, Caps or None
        The cap in the table's unit; or caps by currency, `rounds` and `unit`.
    exchange : mapping of str to float
        The currencies that there are.
    unit : str
        The table's unit, which as a currency of a budget is a cap on the total if it is no currency itself.
    """
    if budget is None:
        return math.inf
    if isinstance(budget, Caps):
        return budget
    if not isinstance(budget, Mapping):
        if math.isnan(budget):
            raise ValueError("The budget is not a number. Give an amount in the unit of the prices.")
        return float(budget)
    total, each = math.inf, []
    for currency, cap in budget.items():
        try:
            limit = float(cap)
        except (TypeError, ValueError):
            limit = math.nan
        if math.isnan(limit):
            raise ValueError(f"The budget of {currency!r} is {cap!r}, not a number.")
        if currency in exchange or currency == ROUNDS:
            each.append((str(currency), limit))
        elif currency in ("total", unit):
            total = limit
        else:
            known = ", ".join(repr(c) for c in (*exchange, ROUNDS, "total"))
            raise ValueError(f"The budget has the unknown currency {currency!r}. The table knows {known}.")
    return Caps(total, tuple(each))
