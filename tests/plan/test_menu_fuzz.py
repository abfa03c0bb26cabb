"""Whatever happens to a menu file, loading it is an error in words or gives a sound menu, in time and in its memory."""

import random
from collections import Counter

import numpy as np
import pytest

import miserly as ms
from miserly.costs import CostTable
from miserly.plan import Menu, Node, Plan, RawFeatures, load_menu
from oracles.fuzzing import is_kept, loaded, memory_to_load, takes_little
from oracles.meddling import damaged, meddled_menu, parts_of


def originals():
    """A menu of linear plans, and one of trees."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, 2.0, 3.0]
    costs = CostTable.per_feature({"a": 1.0, "b": 3.0, "c": 10.0})
    linear = [
        Plan(costs, RawFeatures(np.arange(3)), (Node(range(k), np.ones(k)),), [0.0], means=np.zeros(3))
        for k in (1, 2, 3)
    ]
    trees = [ms.GreedyMiserRegressor(costs, t, n_estimators=3).fit(X, y).plan_ for t in (0.0, 0.1)]
    for plans in (linear, trees):
        yield Menu.measured(plans, X, lambda plan, run: -float(np.mean((plan.read(run.z) - y) ** 2)))


def is_sound(menu, path):
    """It predicts, and is what is kept of it."""
    X = np.full((2, len(menu.plans[0].costs.features)), 0.5)
    with np.errstate(all="ignore"):
        assert len(menu.predict(X, budget=2.0)) == 2
    return is_kept(menu, path, load_menu)


def fuzz(n, folder, seed):
    """How the loads of so many files ended."""
    draw, path, ends = random.Random(seed), folder / "b.menu", Counter()
    known = []
    for menu in originals():
        menu.save(path)
        known.append((path.read_bytes(), parts_of(path), memory_to_load(path, load_menu)))
    for i in range(n):
        whole, parts, needs = known[i % len(known)]
        path.write_bytes(damaged(draw, whole) if i % 3 == 0 else meddled_menu(draw, parts))
        found = loaded(path, load_menu)
        if i % 20 == 0:
            assert takes_little(path, load_menu, needs)
        if found is not None:
            assert is_sound(found, path), f"number {i} is not what is kept of it"
        ends["refused" if found is None else "sound"] += 1
    return ends


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_meddled_menus_are_refused_or_sound(tmp_path):
    ends = fuzz(300, tmp_path, 0)
    assert min(ends["refused"], ends["sound"]) > 30


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("seed", range(5))
def test_many_meddled_menus_are_refused_or_sound(tmp_path, seed):
    assert sum(fuzz(4_000, tmp_path, seed).values()) == 4_000
