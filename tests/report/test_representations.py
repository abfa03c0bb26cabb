"""How objects show themselves: one line as text, a small table as HTML, whatever they hold."""

import numpy as np
import pytest

import miserly as ms
from miserly.runtime import readers
from oracles import hand_built


@pytest.fixture(scope="module")
def shown():
    X = hand_built.rows(80, seed=0)
    plan = hand_built.anytime()
    costs = ms.CostTable.per_feature({f"x{i}": i + 1.0 for i in range(30)}, unit="<ms>")
    y = X[:, 0] > 0
    many = np.random.default_rng(0).normal(size=(80, 30))
    front = ms.frontier(
        ms.GreedyMiserClassifier(costs, n_estimators=3), (many, y), (many, y), grid={"tradeoff": [0.0, 1e-2]}
    )
    with ms.OnDemand(front.points[0].model.plan_, readers(costs)) as runner:
        answer = runner.predict(dict(zip(costs.features, many[0])))
    plans = [front.points[0].model.plan_, front.points[1].model.plan_]
    menu = ms.Menu(plans, [np.inf], [[0.9], [0.8]], [[9.0], [3.0]], metric="accuracy")
    return {"plan": plan, "costs": costs, "frontier": front, "answer": answer, "menu": menu}


@pytest.mark.parametrize("name", ["plan", "costs", "frontier", "answer", "menu"])
def test_one_line_of_text_and_a_small_piece_of_html(shown, name):
    thing = shown[name]
    assert len(repr(thing)) < 400
    assert "\n" not in repr(thing)
    html = thing._repr_html_()
    assert len(html) < 20_000
    assert html.count("<tr>") <= 20
    assert "<script" not in html
    assert "<ms>" not in html, "names are escaped"


def test_a_frontier_draws_its_front(shown):
    html = shown["frontier"]._repr_html_()
    assert html.count("<circle") == len(shown["frontier"].pareto()) or "<svg" not in html
