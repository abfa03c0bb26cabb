"""The ledger against plain sets: each acquisition is charged once per row, in any order, to the last bit."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miserly.costs import Account, Ledger, RowAccounts
from miserly.costs._ledger import set_bits

PRICES = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.7, 1e-9, 1.0, 1e9])
SETS = st.sets(st.integers(0, 69), max_size=5)


def bits(numbers):
    return sum(1 << n for n in numbers)


@st.composite
def ledgers(draw):
    prices = draw(st.lists(PRICES, min_size=70, max_size=70))
    evaluation = draw(st.lists(PRICES, min_size=70, max_size=70))
    return prices, evaluation, Ledger(prices, evaluation)


def fsum(prices, evaluation, owned, evaluated):
    return math.fsum([prices[a] for a in owned] + [evaluation[t] for t in evaluated])


@given(st.sets(st.integers(0, 200)))
def test_set_bits_are_the_members_in_rising_order(members):
    assert list(set_bits(bits(members))) == sorted(members)


@settings(deadline=None)
@given(ledgers(), st.lists(st.tuples(SETS, SETS), max_size=5), st.randoms())
def test_the_order_of_buying_does_not_matter(ledger, purchases, random):
    prices, evaluation, ledger = ledger
    totals = set()
    for _ in range(3):
        account, owned, evaluated = ledger.empty, set(), set()
        for acquisitions, learners in purchases:
            account = ledger.after(account, bits(acquisitions), bits(learners))
            owned, evaluated = owned | acquisitions, evaluated | learners
            assert account.total == fsum(prices, evaluation, owned, evaluated)
            assert account.owned == bits(owned)
        totals.add(account)
        random.shuffle(purchases)
    assert len(totals) == 1
    everything = [bits(set().union(*(p[i] for p in purchases))) for i in (0, 1)]
    assert ledger.price(*everything) == totals.pop().total


def test_what_is_owned_is_free_and_the_account_the_same():
    ledger = Ledger([1.0, 2.0], [0.5])
    account = ledger.after(ledger.empty, 0b01, 0b1)
    assert account == Account(0b01, 0b1, 1.5)
    assert ledger.after(account, 0b01, 0b1) is account
    assert ledger.after(account, 0b11).total == 3.5
    assert ledger.empty.total == 0.0


def test_a_full_memory_is_forgotten_and_changes_nothing(monkeypatch):
    monkeypatch.setattr("miserly.costs._ledger.REMEMBERED", 3)
    ledger = Ledger([0.1] * 12, [])
    for members in range(1 << 12):
        assert ledger.after(ledger.empty, members).total == math.fsum([0.1] * members.bit_count())


@settings(deadline=None, max_examples=60)
@given(ledgers(), st.lists(st.tuples(st.sets(st.integers(0, 5)), SETS, SETS, st.booleans()), max_size=6), st.data())
def test_the_accounts_of_many_rows_are_those_of_each(ledger, purchases, data):
    prices, evaluation, ledger = ledger
    budget = data.draw(st.sampled_from([math.inf, 0.0, 0.3, 1.0, 2.5, 1e9]))
    accounts = RowAccounts(ledger, 6)
    owned = [(set(), set()) for _ in range(6)]
    for rows, acquisitions, learners, each in purchases:
        numbers = np.array(sorted(rows), np.intp)
        if each:
            wanted = [{(a + row) % 70 for a in acquisitions} for row in numbers.tolist()]
            words = np.array([[bits(w) & (2**64 - 1), bits(w) >> 64] for w in wanted], np.uint64).reshape(-1, 2)
            bought = accounts.buy_each(numbers, words, bits(learners), budget)
        else:
            wanted = [acquisitions] * len(numbers)
            bought = accounts.buy(numbers, bits(acquisitions), bits(learners), budget)
        for row, want, done in zip(numbers.tolist(), wanted, bought.tolist()):
            after = (owned[row][0] | want, owned[row][1] | learners)
            assert done == (fsum(prices, evaluation, *after) <= budget)
            owned[row] = after if done else owned[row]
        totals = accounts.totals()
        assert totals.tolist() == [fsum(prices, evaluation, *o) for o in owned]
        assert (totals <= budget).all()


@pytest.mark.parametrize("n_words", [1, 2, 3])
def test_no_rows_buy_nothing(n_words):
    accounts = RowAccounts(Ledger([1.0] * 130, []), 4)
    nobody = np.zeros(0, np.intp)
    assert accounts.buy(nobody, 1).shape == (0,)
    assert accounts.buy_each(nobody, np.zeros((0, n_words), np.uint64)).shape == (0,)
    assert accounts.totals().tolist() == [0.0] * 4


def test_rows_that_bought_the_same_share_an_account():
    accounts = RowAccounts(Ledger([1.0, 2.0, 4.0], []), 4)
    accounts.buy(np.array([0, 2]), 0b001)
    accounts.buy_each(np.array([1, 2, 3]), np.array([[0b011], [0b010], [0b011]], np.uint64))
    assert accounts.totals().tolist() == [1.0, 3.0, 3.0, 3.0]
    assert len(set(accounts.of_row[1:].tolist())) == 1
