"""The ledger: the only code that adds prices, so that every figure shown anywhere is the same number.

A total is the exactly rounded sum (`fsum`) over a set, so it does not depend on the order of buying. Sets are the bits
of Python integers. Rows that bought the same things share one account; totals are computed once per account.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

REMEMBERED = 1 << 18


@dataclass(frozen=True, slots=True)
class Account:
    """What a row owns, what was evaluated for it, and what that cost in all.

    Parameters
    ----------
    owned : int
        The acquisitions that were bought, as a bit set: bit a is set if acquisition a is owned.
    evaluated : int
        The learners with a price that were evaluated, as a bit set.
    total : float
        What all of that cost, 0 or more.

    Examples
    --------
    >>> ledger = Ledger([1.0, 5.0], evaluation=[])
    >>> ledger.after(ledger.empty, 0b10)
    Account(owned=2, evaluated=0, total=5.0)
    """

    owned: int
    evaluated: int
    total: float


class Ledger:
    """Prices of acquisitions and of evaluations; gives the account that follows from a purchase.

    Parameters
    ----------
    prices : sequence of float
        The price of each acquisition, 0 or more.
    evaluation : sequence of float
        The price of evaluating each learner, 0 or more.

    Examples
    --------
    >>> ledger = Ledger([1.0, 5.0], evaluation=[])
    >>> ledger.price(0b11)
    6.0
    """

    def __init__(self, prices: Sequence[float], evaluation: Sequence[float]) -> None:
        self._prices = tuple(prices)
        self._evaluation = tuple(evaluation)
        self._priced = sum(1 << t for t, price in enumerate(self._evaluation) if price)
        self._accounts: dict[tuple[int, int], Account] = {}
        self.empty = Account(0, 0, 0.0)

    def after(self, account: Account, acquisitions: int, learners: int = 0) -> Account:
        """The account after buying these acquisitions and evaluating these learners; owned ones are free."""
        owned = account.owned | acquisitions
        evaluated = account.evaluated | (learners & self._priced)
        if owned == account.owned and evaluated == account.evaluated:
            return account
        known = self._accounts.get((owned, evaluated))
        if known is None:
            if len(self._accounts) >= REMEMBERED:
                self._accounts.clear()
            known = Account(owned, evaluated, self.price(owned, evaluated))
            self._accounts[owned, evaluated] = known
        return known

    def within(self, account: Account, sets: Iterable[int], budget: float) -> Account:
        """The account after buying, one after the other, each set of acquisitions that still fits the budget.

        A set that does not fit is skipped. It would not fit later either: what is bought meanwhile can only raise the
        total that would come of it.
        """
        for acquisitions in sets:
            after = self.after(account, acquisitions)
            if after.total <= budget:
                account = after
        return account

    def price(self, acquisitions: int, learners: int = 0) -> float:
        """What a set costs a row that owns nothing."""
        return math.fsum(self.parts(acquisitions, learners))

    def parts(self, acquisitions: int, learners: int = 0) -> list[float]:
        """The prices of a set."""
        paid = [self._prices[a] for a in set_bits(acquisitions)]
        paid += [self._evaluation[t] for t in set_bits(learners & self._priced)]
        return paid


class RowAccounts:
    """The accounts of many rows at once: an account number per row, totals per distinct account.

    Parameters
    ----------
    ledger : Ledger
        The prices.
    n_rows : int
        How many rows, 0 or more. Each begins with the empty account.

    Attributes
    ----------
    of_row : array of int32 of shape (n_rows,)
        The number of each row's account.
    accounts : list of Account
        The distinct accounts by their numbers; the first is the empty one.

    Examples
    --------
    >>> import numpy as np
    >>> rows = RowAccounts(Ledger([1.0, 5.0], evaluation=[]), n_rows=3)
    >>> rows.buy(np.array([0, 1]), 0b01)
    array([ True,  True])
    >>> rows.buy(np.array([1, 2]), 0b10, budget=5.0)
    array([False,  True])
    >>> rows.totals()
    array([1., 1., 5.])
    """

    def __init__(self, ledger: Ledger, n_rows: int) -> None:
        self.ledger = ledger
        self.of_row: NDArray[np.int32] = np.zeros(n_rows, np.int32)
        self.accounts: list[Account] = [ledger.empty]
        self._number: dict[Account, int] = {ledger.empty: 0}

    def change(self, rows: NDArray[np.intp], rule: Callable[[Account], tuple[Account, int]]) -> NDArray[np.int8]:
        """Give each row the account that a rule makes of its present one; returns the rule's second result per row."""
        numbers, kind = self.of_row[rows], np.zeros(len(rows), np.intp)
        if (numbers == numbers[:1]).all():
            numbers = numbers[:1]
        else:
            numbers, kind = np.unique(numbers, return_inverse=True)
        found = [rule(self.accounts[n]) for n in numbers]
        self.of_row[rows] = np.fromiter((self._intern(after) for after, _ in found), np.int32, len(found))[kind]
        return np.fromiter((outcome for _, outcome in found), np.int8, len(found))[kind]

    def buy(
        self, rows: NDArray[np.intp], acquisitions: int, learners: int = 0, budget: float = math.inf
    ) -> NDArray[np.bool_]:
        """Buy one set for these rows where the total stays within the budget; tells for which rows it did."""

        def rule(account: Account) -> tuple[Account, int]:
            after = self.ledger.after(account, acquisitions, learners)
            return (after, 1) if after.total <= budget else (account, 0)

        return self.change(rows, rule).astype(bool)

    def buy_each(
        self, rows: NDArray[np.intp], words: NDArray[np.uint64], learners: int = 0, budget: float = math.inf
    ) -> NDArray[np.bool_]:
        """Buy for each row its own set, given as 64-bit words, and evaluate these learners for it, where the total
        stays within the budget; tells for which rows it did."""
        keys = np.column_stack([self.of_row[rows].astype(np.uint64), words])
        kinds, kind = np.unique(np.ascontiguousarray(keys).view(f"V{keys.shape[1] * 8}"), return_inverse=True)
        table = kinds.view(np.uint64).reshape(len(kinds), keys.shape[1])
        after = [
            self.ledger.after(self.accounts[int(line[0])], int.from_bytes(line[1:].tobytes(), "little"), learners)
            for line in table
        ]
        kind = kind.ravel()
        affordable = np.fromiter((a.total <= budget for a in after), bool, len(after))[kind]
        numbers = np.fromiter((self._intern(a) for a in after), np.int32, len(after))[kind]
        self.of_row[rows[affordable]] = numbers[affordable]
        return affordable

    def totals(self) -> NDArray[np.float64]:
        """What each row paid."""
        return np.array([a.total for a in self.accounts])[self.of_row]

    def set_account(self, row: int, account: Account) -> None:
        """Give one row an account."""
        self.of_row[row] = self._intern(account)

    def under(self, ledger: Ledger) -> RowAccounts:
        """The same purchases in another ledger."""
        other = RowAccounts(ledger, 0)
        own = [ledger.after(ledger.empty, account.owned, account.evaluated) for account in self.accounts]
        other.of_row = np.array([other._intern(account) for account in own], np.int32)[self.of_row]
        return other

    @classmethod
    def joined(cls, parts: Sequence[RowAccounts], order: NDArray[np.intp]) -> RowAccounts:
        """The accounts of several blocks of rows in one, in another order of the rows."""
        whole = cls(parts[0].ledger, 0)
        numbers = [np.array([whole._intern(a) for a in part.accounts], np.int32)[part.of_row] for part in parts]
        whole.of_row = np.concatenate(numbers)[order]
        return whole

    def _intern(self, account: Account) -> int:
        number = self._number.get(account)
        if number is None:
            number = self._number[account] = len(self.accounts)
            self.accounts.append(account)
        return number


def set_bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, in rising order.

    Parameters
    ----------
    mask : int
        A bit set, 0 or more.

    Yields
    ------
    int
        The number of a bit; the lowest bit has the number 0.

    Examples
    --------
    >>> list(set_bits(0b1101))
    [0, 2, 3]
    """
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
