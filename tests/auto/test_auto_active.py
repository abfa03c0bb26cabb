"""Active models in the portfolio: only where no purchase has a value alone, and measured as all other members are."""

from types import SimpleNamespace

import numpy as np
import pytest

import miserly as ms
from miserly.auto._active import needs_look_ahead


def context_and_blocks(n, seed):
    """The majority of three signs, in the block that the context names."""
    rng = np.random.default_rng(seed)
    context, signs = rng.integers(3, size=n), rng.choice([-1.0, 1.0], size=(n, 3, 3))
    y = signs[np.arange(n), context].sum(axis=1) > 0
    return np.column_stack([context, signs.reshape(n, 9)]), y.astype(int)


def scale_of(X, y, teacher):
    """What is asked of a scale: rows, and the predictions of the best model."""
    graph = SimpleNamespace(number={7: 0}, teacher=7)
    task = SimpleNamespace(n_classes=2)
    return SimpleNamespace(task=task, rows=SimpleNamespace(X=X, y=y), graph=graph, outputs=teacher[None])


def test_look_ahead_is_needed_where_a_context_decides_which_test_decides():
    X, y = context_and_blocks(1500, 0)
    assert needs_look_ahead(scale_of(X, y, np.eye(2)[y]))
    assert not needs_look_ahead(scale_of(X, y, np.full((len(y), 2), 0.5)))  # nothing to find
    easy = (X[:, 1] + 0.5 * X[:, 2] > 0).astype(int)
    assert not needs_look_ahead(scale_of(X, easy, np.eye(2)[easy]))


@pytest.mark.slow
def test_the_portfolio_solves_what_no_single_purchase_begins():
    """Its own sets cannot say which block a row needs: they buy nearly twice as much."""
    X, y = context_and_blocks(1600, 0)
    model = ms.AutoMiserClassifier(ms.CostTable.uniform(), time_limit=None).fit(X, y)
    members = [point.params["member"] for point in model.frontier_.points]
    assert "active" in members
    X, y = context_and_blocks(1000, 1)
    chosen = model.frontier_.choose(budget=4.0)
    assert chosen.score(X, y) > 0.95
    assert chosen.predict_cost(X).mean() < 4.2
    one = chosen.plan_.start()
    assert one.needs == ("x0",)
    menu = model.menu_
    assert menu.predict_cost(X, budget=4.0).max() <= 4.0
    assert menu.predict_cost(X, mean_budget=3.0, mix=True).mean() == pytest.approx(3.0, abs=0.3)
    held = ms.AutoMiserClassifier(ms.CostTable.uniform(), time_limit=None)
    held.fit(*context_and_blocks(900, 2), eval_set=context_and_blocks(1000, 3))
    assert "active" in {point.params["member"] for point in held.frontier_.points}
