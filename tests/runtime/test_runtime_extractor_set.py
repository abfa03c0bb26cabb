"""Extractors are checked against the plan when the runner is made, and their results when they come."""

import numpy as np
import pytest

from miserly.costs import CostTable
from miserly.plan import Node, Plan, RawFeatures
from miserly.runtime import OnDemand, extractor

COSTS = CostTable(
    features=["words", "links", "ratio", "size"],
    needs={"words": ["parse"], "links": ["parse", "urls"], "ratio": ["parse", "urls"], "size": []},
    prices={"parse": 2.0, "urls": 3.0},
)
PLAN = Plan(COSTS, RawFeatures([0, 1, 2, 3]), (Node([0, 1, 2, 3], [1.0, 10.0, 100.0, 1000.0]),), [0.5])


@extractor("parse", yields="words")
def parse(mail):
    return {"words": len(mail.split()), "text": mail}


@extractor("urls", yields=["links"], needs=parse)
def urls(mail, parsed):
    return parsed["text"].count("http")


@extractor(yields="ratio", needs=["parse", "urls"])
def ratio(mail, parsed, n_links):
    return n_links / parsed["words"]


@extractor(yields="size")
def size(mail):
    return len(mail)


def test_results_go_on_to_those_who_need_them_and_each_runs_once():
    answer = OnDemand(PLAN, [ratio, urls, size, parse]).predict("see http://a and http://b")
    assert answer.value == 0.5 + 4 + 10 * 2 + 100 * 0.5 + 1000 * 25
    assert answer.cost == 5.0
    assert [call.name for call in answer.calls] == ["size", "parse", "urls", "ratio"]
    assert answer.acquired == ("parse", "urls")
    assert "answered" in answer.trace()
    assert urls("", {"text": "http"}) == 1, "a decorated function can still be called"


def test_extractors_that_the_plan_does_not_need_are_not_called():
    @extractor("weather", yields="rain")
    def weather(mail):
        raise AssertionError

    assert OnDemand(PLAN, [parse, urls, ratio, size, weather]).predict("a").stopped == "answered"


def changed(function, **fields):
    return extractor(**{"acquisition": "parse", "yields": "words", **fields})(function)


@pytest.mark.parametrize(
    ("extractors", "match"),
    [
        ([parse, ratio, size], r"'ratio' needs 'urls', and there is no extractor"),
        ([parse, size], r"'links', which no extractor yields"),
        ([changed(len, acquisition="prase"), size], r"'links', which no extractor yields"),
        ([parse, urls, ratio, size, parse], r"Two extractors perform 'parse'"),
        ([parse, urls, ratio, size, changed(len, acquisition="other")], r"'parse' and 'other' both yield 'words'"),
        ([parse, urls, ratio], r"'size', which no extractor yields"),
        ([parse, urls, ratio, len], r"len.* is not an extractor"),
        ([changed(len, needs=["urls"]), urls, ratio, size], r"circle: .*parse → urls|circle: .*urls → parse"),
        ([changed(len, needs=["fetch"]), changed(len, acquisition="fetch", yields=()), urls, ratio, size], "unpaid"),
    ],
)
def test_a_missing_a_doubled_or_an_unpaid_extractor_is_an_error_at_once(extractors, match):
    with pytest.raises((ValueError, TypeError), match=match):
        OnDemand(PLAN, extractors)


def test_a_misspelt_acquisition_is_named_with_what_was_meant():
    costs = CostTable.per_feature({"words": 1.0})
    plan = Plan(costs, RawFeatures([0]), (Node([0], [1.0]),), [0.0])
    with pytest.raises(ValueError, match=r"may buy 'words'.*Did you mean 'word'"):
        OnDemand(plan, [changed(len, acquisition="word")])


@pytest.mark.parametrize(
    "fields", [{"workers": 0}, {"timeout": 0.0}, {"retries": -1}, {"acquisition": len}], ids=lambda f: next(iter(f))
)
def test_bad_declarations(fields):
    with pytest.raises((ValueError, TypeError), match=r"extractor|acquisition"):
        changed(len, **fields)


@pytest.mark.parametrize(
    ("result", "outcome"),
    [({"other": 1.0}, "promised"), ([1.0, 2.0], "TypeError"), ("many", "ValueError"), (None, "ok"), (True, "ok")],
)
def test_a_result_that_is_no_number_is_a_failure_of_the_extractor(result, outcome):
    costs = CostTable.per_feature({"words": 1.0})
    plan = Plan(costs, RawFeatures([0]), (Node([0], [1.0]),), [0.25])
    answer = OnDemand(plan, [changed(lambda mail: result, acquisition="words")]).predict("x")
    assert outcome in answer.calls[0].outcome
    if outcome != "ok":
        assert answer.stopped == "failed:words"
        assert answer.value == 0.25
        assert answer.cost == 0.0


def test_lists_of_values_and_too_few_of_them():
    costs = CostTable(features=["a", "b"], needs={"a": ["x"], "b": ["x"]}, prices={"x": 1.0})
    plan = Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [1.0, 10.0]),), [0.0])
    two = extractor("x", yields=["a", "b"])
    assert OnDemand(plan, [two(lambda row: (1, 2))]).predict(0).value == 21.0
    assert OnDemand(plan, [two(lambda row: np.array([1, 2]))]).predict(0).value == 21.0
    assert "returned 1" in OnDemand(plan, [two(lambda row: (1,))]).predict(0).calls[0].outcome
    short = extractor("x", yields=["a", "b"], many=True)(lambda rows: [(1, 2)])
    answers = OnDemand(plan, [short]).predict_many([0, 0])
    assert [a.stopped for a in answers] == ["failed:x"] * 2
    assert "got 2 rows and returned 1" in answers[0].calls[0].outcome


def test_categories_are_read_as_the_estimator_read_them():
    import pandas as pd

    from miserly.estimators import GreedyMiserClassifier

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"colour": pd.Categorical(rng.choice(["red", "green", "blue"], 400)), "n": rng.normal(size=400)})
    y = (X["colour"] == "green").to_numpy() ^ (X["n"] > 1).to_numpy()
    model = GreedyMiserClassifier(CostTable.per_feature({"colour": 1.0, "n": 2.0}), n_estimators=20).fit(X, y)
    colour = extractor("colour", yields="colour")(lambda row: row[0])
    n = extractor("n", yields="n")(lambda row: row[1])
    with OnDemand(model.plan_, [colour, n]) as runner:
        for i in range(50):
            assert runner.predict(tuple(X.iloc[i])).value == model.predict(X.iloc[i : i + 1])[0]
        assert runner.predict(("violet", 0.0)).stopped == "answered"
