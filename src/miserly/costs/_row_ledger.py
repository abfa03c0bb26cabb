"""Ledgers beyond one price for all: caps on several currencies, and the prices of one row."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from miserly.costs._currencies import ROUNDS, TIMES, Caps
from miserly.costs._ledger import REMEMBERED, Account, Ledger, RowAccounts, set_bits
from miserly.costs._row_prices import RowPrice
from miserly.costs._table import CostTable

MOST = sys.float_info.max  # a limit that is there, and that no total exceeds


@dataclass(frozen=True, slots=True)
class SpentAccount(Account):
    """An account that also knows how much of each currency was spent.

    Parameters
    ----------
    owned, evaluated, total
        As in `Account`.
    spent : tuple of float
        The amount of each currency of the ledger, in its order.
    """

    spent: tuple[float, ...] = ()


class CurrencyLedger(Ledger):
    """A ledger that counts currencies: money adds up, of what is ordered together the longest time counts, and every
    order counts one round. An account beyond a cap has an infinite total, so that it fits no limit.

    Parameters
    ----------
    costs : CostTable
        The prices and their amounts.
    evaluation : sequence of float
        The price of evaluating each learner.
    caps : Caps
        What may be spent of each currency.
    """

    def __init__(self, costs: CostTable, evaluation: Sequence[float], caps: Caps) -> None:
        super().__init__(costs.price_list, evaluation)
        self.currencies = (*costs.exchange, ROUNDS)
        limits = dict(caps.each)
        self._caps = tuple(limits.get(c, math.inf) for c in self.currencies)
        self._limit = caps.total
        parts = [costs.amounts.get(a, {}) for a in costs.acquisitions]
        self._amounts: dict[str, list[float]] = {
            c: [_expected(part.get(c, 0.0)) for part in parts] for c in costs.exchange
        }
        self.empty: Account = SpentAccount(0, 0, 0.0, (0.0,) * len(self.currencies))
        self._orders: dict[tuple[Account, int, int], Account] = {}

    def after(self, account: Account, acquisitions: int, learners: int = 0) -> Account:
        """The account after one order of these acquisitions; one beyond a cap has an infinite total."""
        key = (account, acquisitions, learners)
        known = self._orders.get(key)
        if known is None:
            if len(self._orders) >= REMEMBERED:
                self._orders.clear()
            known = self._orders[key] = self._ordered(account, acquisitions, learners)
        return known

    def _ordered(self, account: Account, acquisitions: int, learners: int) -> Account:
        assert isinstance(account, SpentAccount)
        new, owned = acquisitions & ~account.owned, account.owned | acquisitions
        evaluated = account.evaluated | (learners & self._priced)
        if not new and evaluated == account.evaluated:
            return account
        spent = account.spent
        if new:
            found = [
                before + max(amounts[a] for a in set_bits(new))
                if currency in TIMES
                else math.fsum(amounts[a] for a in set_bits(owned))
                for (currency, amounts), before in zip(self._amounts.items(), account.spent)
            ]
            spent = (*found, account.spent[-1] + 1.0)
        total = self.price(owned, evaluated)
        fits = total <= self._limit and all(s <= cap for s, cap in zip(spent, self._caps))
        return SpentAccount(owned, evaluated, total if fits else math.inf, spent)

    def within(self, account: Account, sets: Iterable[int], budget: float) -> Account:
        """The account after one order of those sets that fit together."""
        wanted = 0
        for acquisitions in sets:
            if self.after(account, wanted | acquisitions).total <= budget:
                wanted |= acquisitions
        return self.after(account, wanted)


class RowLedger(CurrencyLedger):
    """The ledger of one row: prices that depend on it count their expectation until they are known.

    Parameters
    ----------
    prices : RowPrices
        The rules.
    evaluation : sequence of float
        The price of evaluating each learner.
    caps : Caps or float
        What the row may spend.
    """

    def __init__(self, prices: RowPrices, evaluation: Sequence[float], caps: Caps | float) -> None:
        super().__init__(prices.costs, evaluation, caps if isinstance(caps, Caps) else Caps(caps, ()))
        self._rules, self._row_prices = prices, list(self._prices)
        self.unknown = prices.mask
        self._wrong: dict[int, str] = {}

    def price(self, acquisitions: int, learners: int = 0) -> float:
        """What a set costs this row."""
        prices = self._row_prices
        paid = [prices[a] for a in set_bits(acquisitions)]
        paid += [self._evaluation[t] for t in set_bits(learners & self._priced)]
        return math.fsum(paid)

    def learn(self, row: NDArray[Any], knows: Any) -> None:
        """Find the prices whose features are known by now: `knows(columns)` tells if they are."""
        for a in set_bits(self.unknown):
            rule = self._rules.rules[a]
            if knows(rule.columns):
                self.unknown &= ~(1 << a)
                self._orders.clear()
                self._row_prices[a] = float(rule.price(row[None])[0])
                for currency, part in rule.parts.items():
                    self._amounts[currency][a] = float(part.price(row[None])[0])
                wrong = rule.problem(row[None], "The row")
                if wrong:  # refused when it is to be paid; until then it must fit
                    self._wrong[a], self._row_prices[a] = wrong, 0.0
                    for currency in rule.parts:
                        self._amounts[currency][a] = 0.0

    @property
    def wrong(self) -> int:
        """The acquisitions that have no price for this row, as a bit set."""
        return sum(1 << a for a in self._wrong)

    def check(self, acquisitions: int) -> None:
        """Refuse to buy at a price that is none."""
        for a in self._wrong:
            if acquisitions >> a & 1:
                raise ValueError(self._wrong[a])


class _Rule:
    """The price of one acquisition, with the columns that it depends on, and those of its parts in each currency."""

    def __init__(self, costs: CostTable, name: str, price: RowPrice, parts: Mapping[str, RowPrice], unit: str) -> None:
        at = {feature: f for f, feature in enumerate(costs.features)}
        self.name, self.rule, self.unit = name, price, unit
        self.columns = [at[f] for f in price.features]
        self.parts = {c: _Rule(costs, name, part, {}, c) for c, part in parts.items()}

    def price(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """The price for each row, unchecked."""
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(self.rule.of([np.asarray(X[:, f], np.float64) for f in self.columns]))

    def problem(self, X: NDArray[Any], who: str = "", rows: NDArray[np.intp] | None = None) -> str | None:
        """What is wrong with the price for some row: a negative one, or one of an unknown value; None if nothing is."""
        for one in (self, *self.parts.values()):
            prices = one.price(X)
            wrong = np.flatnonzero(~(np.isfinite(prices) & (prices >= 0)))
            if len(wrong):
                i = int(wrong[0])
                values = [f"{f} = {float(X[i, c]):g}" for f, c in zip(one.rule.features, one.columns)]
                why = "a value that it depends on is missing" if np.isnan(prices[i]) else "a price is finite, 0 or more"
                row = i if rows is None else int(rows[i])
                return (
                    f"{who or f'Row {row} (from 0)'} would pay {prices[i]:g} {one.unit} for {one.name!r} "
                    f"({one.rule}; {', '.join(values)}): {why}. Correct the price or the value."
                )
        return None


class RowPrices:
    """The prices of a bound table that depend on the row.

    Parameters
    ----------
    costs : CostTable
        Prices in the order of the columns.
    """

    def __init__(self, costs: CostTable) -> None:
        self.costs = costs
        number = {a: i for i, a in enumerate(costs.acquisitions)}
        self.rules: dict[int, _Rule] = {}
        for a, price in costs.row_prices.items():
            parts = {c: p for c, p in costs.amounts.get(a, {}).items() if not isinstance(p, float)}
            self.rules[number[a]] = _Rule(costs, a, price, parts, costs.unit)

    @cached_property
    def mask(self) -> int:
        """The acquisitions whose price depends on the row, as a bit set."""
        return sum(1 << a for a in self.rules)

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """The columns that some price depends on."""
        return tuple(sorted({f for rule in self.rules.values() for f in rule.columns}))

    def columns_for(self, masks: Iterable[int]) -> set[int]:
        """The columns on which the prices of these acquisitions depend."""
        wanted = 0
        for mask in masks:
            wanted |= mask
        return {f for a in set_bits(wanted & self.mask) for f in self.rules[a].columns}

    def matrix(self, X: NDArray[Any], checked: bool = True) -> NDArray[np.float64]:
        """The price of every acquisition for every row (rows × acquisitions); rows without a price are refused if
        `checked`."""
        prices = np.tile(np.array(self.costs.price_list, np.float64), (len(X), 1))
        for a, rule in self.rules.items():
            _refuse(rule.problem(X) if checked else None)
            prices[:, a] = rule.price(X)
        return prices

    def totals(
        self,
        accounts: RowAccounts,
        X: NDArray[Any],
        rows: NDArray[np.intp] | None = None,
        at_least_expected: bool = False,
    ) -> NDArray[np.float64]:
        """What each row paid, which depends on the row. Given the numbers of the `rows`, a price that is none is
        refused; else the total is NaN. `at_least_expected` counts no price below its expectation."""
        totals, ledger = accounts.totals(), accounts.ledger
        for number, account in enumerate(accounts.accounts):
            priced = account.owned & self.mask
            at = np.flatnonzero(accounts.of_row == number) if priced else np.zeros(0, np.intp)
            if not len(at):
                continue
            constant, part = ledger.parts(account.owned & ~priced, account.evaluated), X[at]
            lines = []
            for a in set_bits(priced):
                rule = self.rules[a]
                if rows is not None:
                    _refuse(rule.problem(part, rows=rows[at]))
                line = rule.price(part)
                line = np.where(line >= 0, line, np.nan)
                lines.append(np.maximum(line, rule.rule.expected) if at_least_expected else line)
            totals[at] = [math.fsum((*constant, *line)) for line in zip(*lines)]
        return totals


def paid_by_row(accounts: RowAccounts, ledger: Ledger, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """What rows paid for what they own at prices of their own (rows × acquisitions).

    Parameters
    ----------
    accounts : RowAccounts
        What each row owns and what was evaluated for it.
    ledger : Ledger
        The prices of evaluations.
    matrix : ndarray of shape (n_rows, n_acquisitions)
        The prices.
    """
    totals = np.zeros(len(matrix))
    for number, account in enumerate(accounts.accounts):
        at = np.flatnonzero(accounts.of_row == number)
        bought, constant = list(set_bits(account.owned)), ledger.parts(0, account.evaluated)
        totals[at] = [math.fsum((*constant, *line)) for line in matrix[at][:, bought].tolist()]
    return totals


def paid_for(acquisitions: int, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """What each row pays for a set of acquisitions at prices of its own (rows × acquisitions)."""
    return np.asarray(matrix[:, list(set_bits(acquisitions))].sum(axis=1))


def expecting(costs: CostTable, X: NDArray[Any]) -> CostTable:
    """A bound table whose row prices know their mean over training rows, if they knew none; a row without a price is
    refused."""
    prices = RowPrices(costs)
    prices.matrix(X)
    at = {feature: f for f, feature in enumerate(costs.features)}

    def with_mean(price: Any) -> Any:
        if price.mean is not None:  # the table comes from a fit on more rows, or the user knows it
            return price
        columns = [np.asarray(X[:, at[f]], np.float64) for f in price.features]
        return price.expecting(np.asarray(price.of(columns)))

    return costs.changed(with_mean)


def _refuse(problem: str | None) -> None:
    if problem:
        raise ValueError(problem)


def _expected(price: float | RowPrice) -> float:
    return price if isinstance(price, float) else price.expected
