"""Features need acquisitions, acquisitions have prices: the union is paid, once."""

import copy
import math
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miserly.costs import CostTable

THYROID = CostTable(
    features=["age", "t3", "tt4", "t4u", "fti"],
    needs={
        "age": "ask",
        "t3": ["draw", "t3"],
        "tt4": ["draw", "tt4"],
        "t4u": ["draw", "t4u"],
        "fti": ["draw", "tt4", "t4u"],
    },
    prices={"ask": 1, "draw": 2.1, "t3": 9.31, "tt4": 12.41, "t4u": 9.31},
    unit="CAD",
)


@st.composite
def tables(draw):
    acquisitions = [f"a{i}" for i in range(draw(st.integers(0, 6)))]
    price = st.one_of(st.floats(0, 100, allow_subnormal=False), st.sampled_from([0.0, 0.1, 0.2, 0.3]))
    prices = {a: draw(price) for a in acquisitions}
    subset = st.lists(st.sampled_from(acquisitions), unique=True) if acquisitions else st.just([])
    needs = {f"f{i}": draw(subset) for i in range(draw(st.integers(1, 6)))}
    return CostTable(tuple(needs), needs, prices)


@given(tables(), st.data())
def test_the_price_is_the_exact_price_of_the_union(table, data):
    wanted = data.draw(st.lists(st.sampled_from(table.features)))
    union = {a for f in wanted for a in table.needs[f]}
    assert table.price(wanted) == math.fsum(table.prices[a] for a in union)
    assert table.price(reversed(wanted)) == table.price(wanted)


@given(tables(), st.data())
def test_the_marginal_price_is_that_of_what_is_missing(table, data):
    owned = data.draw(st.sets(st.sampled_from(table.acquisitions))) if table.prices else set()
    marginal = table.marginal(owned)
    assert list(marginal) == list(table.features)
    for feature, price in marginal.items():
        assert price == math.fsum(table.prices[a] for a in table.needs[feature] if a not in owned)
    assert table.marginal() == {f: table.price([f]) for f in table.features}


@given(tables(), st.data())
def test_a_restricted_table_prices_the_same(table, data):
    kept = data.draw(st.lists(st.sampled_from(table.features), unique=True))
    small = table.restrict(kept)
    assert small.features == tuple(kept)
    assert set(small.prices) == {a for f in kept for a in table.needs[f]}
    assert small.price(kept) == table.price(kept)


@given(tables())
def test_masks_and_words_say_what_needs_says(table):
    for i, feature in enumerate(table.features):
        wanted = [a in table.needs[feature] for a in table.acquisitions]
        words = table.needs_words[i]
        assert [bool(int(words[a // 64]) >> (a % 64) & 1) for a in range(len(table.prices))] == wanted
        assert table.feature_masks[i] == sum(1 << j for j, on in enumerate(wanted) if on)
    assert table.price_list == tuple(table.prices.values())


@given(tables())
def test_a_table_survives_plain_data_pickling_and_copying(table):
    for again in (CostTable(**table.to_dict()), pickle.loads(pickle.dumps(table)), copy.deepcopy(table)):
        assert again == table
        assert hash(again) == hash(table)
        assert again.acquisitions == table.acquisitions


def test_a_derived_feature_is_free_after_what_it_is_derived_from():
    assert THYROID.price(["fti"]) == math.fsum([2.1, 12.41, 9.31])
    assert THYROID.price(["fti", "tt4", "t4u"]) == THYROID.price(["fti"])
    assert THYROID.marginal(["draw", "tt4"])["fti"] == 9.31
    assert THYROID.price([]) == 0.0


def test_equal_tables_have_equal_hashes():
    one, two = ({"a": 1.0, "b": 2.0}, {"b": 2.0, "a": 1.0})
    tables = [CostTable(("x",), {"x": ("a", "b")}, prices) for prices in (one, two)]
    assert (tables[0] == tables[1]) <= (hash(tables[0]) == hash(tables[1]))


def test_a_table_is_frozen():
    with pytest.raises(FrozenInstanceError):
        THYROID.unit = "EUR"
    with pytest.raises(TypeError):
        THYROID.prices["ask"] = 0.0
    given_prices = {"ask": 1.0}
    table = CostTable(("age",), {"age": ("ask",)}, given_prices)
    given_prices["ask"] = 5.0
    assert table.price(["age"]) == 1.0


# ---- binding it to data ---------------------------------------------------------------------------------------------


def test_binding_orders_the_features_as_the_columns():
    names = ["fti", "age", "t4u", "tt4", "t3"]
    bound = THYROID.bind(names)
    assert bound.features == tuple(names)
    assert bound.price(["fti", "t3"]) == THYROID.price(["fti", "t3"])
    assert [bound.price([f]) for f in bound.features] == [THYROID.price([f]) for f in names]
    assert bound.feature_masks == tuple(THYROID.feature_masks[THYROID.features.index(f)] for f in names)
    assert THYROID.bind(list(THYROID.features)) == THYROID
    assert THYROID.bind(5) == THYROID


def test_a_mismatch_names_the_culprit_and_the_remedy():
    with pytest.raises(ValueError, match=r"missing 'bm25'.*Add a price"):
        THYROID.bind([*THYROID.features, "bm25"])
    with pytest.raises(ValueError, match=r"'fti', which X has not.*restrict"):
        THYROID.bind(THYROID.features[:4])
    with pytest.raises(ValueError, match=r"5 features, X has 4 columns.*one price per column"):
        THYROID.bind(4)
    with pytest.raises(ValueError, match="'age'"):
        THYROID.bind(["age", "age", "t3", "tt4", "t4u", "fti"])


def test_prices_by_position_take_the_names_of_the_columns():
    table = CostTable.per_feature([3.0, 1.0, 2.0])
    assert table.features == ("x0", "x1", "x2")
    bound = table.bind(["age", "x0", "x1"])
    assert [bound.price([f]) for f in ("age", "x0", "x1")] == [3.0, 1.0, 2.0]
    assert bound.acquisitions == ("age", "x0", "x1")
    assert table.bind(3) == table
    with pytest.raises(ValueError, match="3 features, X has 2 columns"):
        table.bind(["a", "b"])
    assert bound.bind(["x1", "age", "x0"]).price(["age"]) == 3.0


def test_a_number_of_columns_may_be_a_numpy_integer():
    assert CostTable.per_feature([3.0, 1.0]).bind(np.int64(2)).features == ("x0", "x1")


def test_uniform_prices_size_themselves():
    table = CostTable.uniform(2.5, evaluation=0.5, unit="ms")
    bound = table.bind(["a", "b"])
    assert (bound.price(["a", "b"]), bound.evaluation, bound.unit, bound.each) == (5.0, 0.5, "ms", None)
    assert table.bind(3).features == ("x0", "x1", "x2")
    assert table.bind(0).features == ()
    assert pickle.loads(pickle.dumps(table)) == table
    assert "2.5" in table.describe()


# ---- mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("price", [-1, math.nan, math.inf, "dear", None, [1], pytest.param(10**400, id="huge")])
def test_a_price_that_is_none_is_refused_with_its_name(price):
    with pytest.raises(ValueError, match="'mri'"):
        CostTable.per_feature({"age": 1, "mri": price})
    if price is not None:
        with pytest.raises(ValueError, match="uniform"):
            CostTable.uniform(price)
    if not isinstance(price, list):
        with pytest.raises(ValueError, match="evaluation"):
            CostTable.per_feature({"age": 1}, evaluation=price)


def test_relations_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"'age' needs 'ask', which has no price.*Add it"):
        CostTable(["age"], {"age": ["ask"]}, {})
    with pytest.raises(ValueError, match=r"No needs are given for 'age'"):
        CostTable(["age"], {}, {})
    with pytest.raises(ValueError, match="'sex', which the features do not list"):
        CostTable(["age"], {"age": [], "sex": []}, {})
    with pytest.raises(ValueError, match="'age' stands twice"):
        CostTable(["age", "age"], {"age": []}, {})
    with pytest.raises(ValueError, match="'age'"):
        CostTable(["age"], {"age": 3}, {"ask": 1.0})


def test_unknown_names_are_told_with_the_known_ones():
    for call in (lambda: THYROID.price(["bmi"]), lambda: THYROID.restrict(["bmi"])):
        with pytest.raises(KeyError, match=r"'bmi'.*'age'"):
            call()
    with pytest.raises(KeyError, match=r"'blood'.*'draw'"):
        THYROID.marginal(["blood"])


def test_evaluation_prices_are_one_for_all_or_one_for_each():
    table = CostTable.per_feature([1.0], evaluation=[0.5, 0.25])
    assert table.evaluation_prices(2) == (0.5, 0.25)
    assert CostTable.per_feature([1.0], evaluation=0.5).evaluation_prices(3) == (0.5,) * 3
    with pytest.raises(ValueError, match="2 evaluation prices, the dictionary 3"):
        table.evaluation_prices(3)
    assert "0.25 to 0.5" in table.describe()
    assert "evaluation 0 per learner" in THYROID.describe()
