"""Prices in several currencies: what they are worth in one, files, and what is refused."""

import pytest

from miserly.costs import Caps, CostTable, CurrencyLedger, LinearPrice, read_budget

EXCHANGE = {"usd": 1, "minutes": 2}
NEEDS = {"age": [], "crp": ["draw", "crp"], "mri": ["mri"]}
PRICES = {"draw": {"usd": 5, "minutes": 10}, "crp": {"usd": 20, "minutes": 30}, "mri": {"usd": 800, "minutes": 45}}
COSTS = CostTable(list(NEEDS), NEEDS, PRICES, exchange=EXCHANGE)


def test_prices_are_worth_something_in_one_unit():
    assert dict(COSTS.prices) == {"draw": 25.0, "crp": 80.0, "mri": 890.0}
    assert COSTS.unit == "usd"  # the currency whose rate is 1
    assert COSTS.amounts["mri"] == {"usd": 800.0, "minutes": 45.0}
    assert CostTable(**COSTS.to_dict()) == COSTS
    assert COSTS.scaled(2).prices["mri"] == 1780.0
    assert COSTS.scaled(2).amounts == COSTS.amounts
    assert COSTS.restrict(["mri"]).amounts == {"mri": COSTS.amounts["mri"]}
    assert CostTable(list(NEEDS), NEEDS, PRICES, exchange={"usd": 1, "minutes": 3}) != COSTS


def test_amounts_may_depend_on_the_row():
    price = {"usd": LinearPrice(0.5, {"age": 0.25}), "minutes": 3}
    costs = CostTable(list(NEEDS), NEEDS, PRICES | {"mri": price}, exchange=EXCHANGE)
    assert costs.row_prices == {"mri": LinearPrice(6.5, {"age": 0.25})}
    assert CostTable(**costs.to_dict()) == costs


def test_files(tmp_path):
    COSTS.to_toml(tmp_path / "a.toml")
    assert CostTable.from_file(tmp_path / "a.toml") == COSTS
    (tmp_path / "b.csv").write_text('feature,cost\nage,0\nmri,"usd: 800; minutes: 45"\n')
    read = CostTable.from_csv(tmp_path / "b.csv", exchange=EXCHANGE)
    assert read.amounts == {"mri": {"usd": 800.0, "minutes": 45.0}}
    with pytest.raises(ValueError, match="no exchange rate"):
        CostTable.from_csv(tmp_path / "b.csv")


@pytest.mark.parametrize(
    ("prices", "exchange", "says"),
    [
        (PRICES, {"usd": 1}, "'minutes', which has no exchange rate"),
        (PRICES, {}, "'usd', which has no exchange rate"),
        (PRICES, {"usd": -1, "minutes": 1}, "exchange rate of 'usd'.*not negative"),
        (PRICES, {"usd": "one", "minutes": 1}, "must be a number"),
        (PRICES | {"mri": 800}, EXCHANGE, "no currency"),
        (PRICES | {"mri": {"usd": -1}}, EXCHANGE, "'mri' in 'usd'.*not negative"),
        (PRICES | {"mri": {"usd": 1, "rounds": 1}}, EXCHANGE, "every order counts one"),
    ],
)
def test_what_is_refused(prices, exchange, says):
    with pytest.raises(ValueError, match=says):
        CostTable(list(NEEDS), NEEDS, prices, exchange=exchange)


def test_budgets():
    caps = Caps(float("inf"), (("usd", 900), ("minutes", 60)))
    assert read_budget({"usd": 900, "minutes": 60}, EXCHANGE, "usd") == caps
    assert read_budget({"rounds": 2, "total": 7}, {}, "units") == Caps(7.0, (("rounds", 2.0),))
    assert read_budget({"CAD": 7}, {}, "CAD") == Caps(7.0, ())
    for wrong in ({"eur": 3}, {"usd": "much"}, {"usd": float("nan")}, float("nan")):
        with pytest.raises(ValueError, match=r"currency|not a number"):
            read_budget(wrong, EXCHANGE, "usd")


def test_what_is_ordered_together_counts_the_longest_time_and_one_round():
    ledger = CurrencyLedger(COSTS, [], Caps(float("inf"), ()))
    together = ledger.after(ledger.empty, 0b111)
    assert together.spent == (825.0, 45.0, 1.0)
    one = ledger.after(ledger.empty, 0b001)
    assert ledger.after(one, 0b111).spent == (825.0, 10.0 + 45.0, 2.0)
    assert ledger.after(one, 0b001) == one
    assert together.total == 995.0
    quick = CurrencyLedger(COSTS, [], Caps(float("inf"), (("minutes", 44),)))
    assert quick.after(ledger.empty, 0b111).total == float("inf")
