"""Prices that depend on the row: what may be declared, how files spell it, and what is refused."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import miserly as ms
from miserly.costs import CostTable, LinearPrice, RowPrices, expecting

NEEDS = {"age": ["ask"], "tokens": ["count"], "answer": ["count", "llm"]}
LLM = LinearPrice(0.01, {"tokens": 2e-5})


def table(llm=LLM, needs=NEEDS, **others):
    return CostTable(list(needs), needs, {"ask": 1, "count": 0.5, "llm": llm, **others})


def test_a_linear_price_is_a_number_for_each_row():
    assert LLM.at({"tokens": 1000, "age": 3}) == 0.01 + 2e-5 * 1000
    assert LLM.features == ("tokens",)
    assert LinearPrice(0.01, {"tokens": 2e-5}) == LLM
    assert hash(LLM) == hash(LinearPrice(0.01, {"tokens": 2e-5}))
    assert LinearPrice(0.01, {"tokens": 3e-5}) != LLM
    for again in (copy.deepcopy(LLM), pickle.loads(pickle.dumps(LLM))):
        assert again == LLM
    assert ms.LinearPrice is LinearPrice


@given(st.floats(0, 1e6))
def test_a_constant_as_a_linear_price_is_the_constant(price):
    one, other = table(LinearPrice(price, {})), table(price)
    assert one == other
    assert one.to_dict() == other.to_dict()
    assert hash(one) == hash(other)
    assert not one.row_prices


def test_tables_keep_the_price_through_everything():
    costs = table()
    assert costs.prices["llm"] == 0.01  # expected: the base, until fit knows the mean
    assert costs.row_prices == {"llm": LLM}
    assert CostTable(**costs.to_dict()) == costs
    assert pickle.loads(pickle.dumps(costs)) == costs
    assert copy.deepcopy(costs) == costs
    assert costs.bind(["answer", "tokens", "age"]).row_prices == costs.row_prices
    assert costs.restrict(["tokens", "answer"]).row_prices == costs.row_prices
    assert not costs.restrict(["age"]).row_prices
    assert costs.scaled(100).row_prices["llm"] == LinearPrice(1.0, {"tokens": 2e-5 * 100})
    assert costs != table(0.01)
    assert hash(costs) != hash(table(0.01))
    unnamed = CostTable.per_feature([1.0, LinearPrice(1.0, {"x0": 2.0})])
    renamed = unnamed.bind(["size", "text"])
    assert renamed.row_prices == {"text": LinearPrice(1.0, {"size": 2.0})}
    assert renamed.needs["text"] == ("size", "text")


def test_prices_of_rows_and_their_mean():
    costs = table()
    X = np.array([[0.0, 100.0, 0.0], [0.0, 300.0, 0.0]])
    np.testing.assert_array_equal(RowPrices(costs).matrix(X)[:, 2], [0.01 + 2e-5 * 100, 0.01 + 2e-5 * 300])
    mean = expecting(costs, X)
    assert mean.prices["llm"] == mean.row_prices["llm"].mean == pytest.approx(0.014)
    assert mean.prices["ask"] == 1.0
    assert expecting(mean, X[:1]) == mean  # a part of the rows does not change it: plans of one table stay comparable
    for wrong in (np.nan, -1e4):
        X[1, 1] = wrong
        with pytest.raises(ValueError, match="Row 1"):
            expecting(costs, X)


@pytest.mark.parametrize(
    ("prices", "needs", "says"),
    [
        ({"llm": LinearPrice(1, {"words": 1})}, NEEDS, "'words', which is not a feature"),
        ({"llm": LinearPrice(1, {"answer": 1})}, NEEDS, "'answer', which needs 'llm' itself: a circle"),
        (
            {},
            NEEDS | {"answer": ["llm"]},
            "not 'count', so 'tokens' may come later. Add 'count' to the needs of 'answer'",
        ),
        (
            {"llm": LinearPrice(1, {"tokens": 1}), "count": LinearPrice(1, {"answer": 1})},
            {"age": [], "tokens": ["count"], "answer": ["llm"]},
            "circle",
        ),
        ({"llm": LinearPrice(-1.0)}, NEEDS, "not negative"),
    ],
)
def test_prices_that_cannot_be_known_in_time(prices, needs, says):
    with pytest.raises(ValueError, match=says):
        table(needs=needs, **prices) if "llm" not in prices else table(**({"needs": needs} | prices))


@pytest.mark.parametrize(
    ("base", "per"),
    [(np.nan, {}), (np.inf, {}), ("one", {}), (1.0, {"a": np.nan}), (1.0, {"a": "x"}), (1.0, [1.0]), (None, {})],
)
def test_linear_prices_of_nothing(base, per):
    with pytest.raises(ValueError, match=r"linear price|price of a unit"):
        LinearPrice(base, per)


def test_toml(tmp_path):
    costs = table()
    costs.to_toml(tmp_path / "a.toml")
    assert CostTable.from_file(tmp_path / "a.toml") == costs
    (tmp_path / "b.toml").write_text(
        "[acquisitions]\nask = 1\ncount = 0.5\nllm = { base = 0.01, per = { tokens = 2e-5 } }\n"
        '[features]\nage = ["ask"]\ntokens = ["count"]\nanswer = ["count", "llm"]\n'
    )
    assert CostTable.from_file(tmp_path / "b.toml") == costs
    (tmp_path / "c.toml").write_text(
        "[columns]\nage = 1\ntokens = 0.5\nanswer = { price = { base = 0.01, per = { tokens = 2e-5 } } }\n"
    )
    by_column = CostTable.from_file(tmp_path / "c.toml")
    assert by_column.row_prices == {"answer": LLM}
    assert by_column.needs["answer"] == ("tokens", "answer")


def test_csv_and_frames(tmp_path):
    lines = [("tokens", "0.5"), ("Atom-Atom size", "0"), ("answer", "0.01 + 2e-5*tokens - 1e-6 * Atom-Atom size")]
    frame = pd.DataFrame(lines, columns=["feature", "cost"])
    frame.to_csv(tmp_path / "a.csv", index=False)
    expected = LinearPrice(0.01, {"tokens": 2e-5, "Atom-Atom size": -1e-6})
    for costs in (CostTable.from_csv(tmp_path / "a.csv"), CostTable.from_frame(frame)):
        assert costs.row_prices == {"answer": expected}
        assert costs.needs["answer"] == ("tokens", "Atom-Atom size", "answer")
    for wrong in ("0.01 + x*tokens", "0.01 + 2*tokens + 3*tokens", "0.01+2*tokens*3", "0.01 + 2*", "1 + 2*answer"):
        (tmp_path / "b.csv").write_text(f"feature,cost\ntokens,1\nanswer,{wrong}\n")
        with pytest.raises(ValueError, match="answer"):
            CostTable.from_csv(tmp_path / "b.csv")
