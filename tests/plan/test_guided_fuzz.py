"""Plans and menus changed again and again, led by coverage: what reaches new lines of the loader is changed further."""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import miserly as ms
from miserly.plan import load_menu, load_plan
from oracles.fuzzing import Coverage, ask, is_kept, loaded, memory_to_load, takes_little
from oracles.meddling import damaged, meddled, meddled_menu, parts_of, zipped
from oracles.policy import random_policy_plan
from plan import test_menu_fuzz, test_plan_fuzz
from plan.test_plan_lazy import random_plan as plan_of_trees
from plan.test_plan_schema import SCHEMA

MOST_BYTES = 30_000  # of a file that is changed further


def originals(folder):
    """Every kind of file with how it is read and changed: plans, with a rule or a policy too, what they know of their
    training, and menus."""
    path = folder / "a.plan"
    plans = [plan for plan, _, _ in test_plan_fuzz.originals(folder)]
    X = np.random.default_rng(0).normal(size=(60, 6))
    trees = plan_of_trees(0)
    plans += [trees.lazy(), plan_of_trees(1, n_outputs=3).lazy(), random_policy_plan(0), random_policy_plan(1, 3)]
    y = trees.predict(X)
    plans += [trees.with_promise(X, y), trees.certified(X, y, target=0.5, of="accuracy", delta=0.1)]
    costs = ms.CostTable.per_feature({"age": 1.0, "sex": 1.0, "smoker": 2.0, "admitted": 1.0})
    model = ms.GreedyMiserClassifier(costs, n_estimators=3).fit(X[:, :4], X[:, 0] > 0)
    plans.append(replace(model.plan_, schema=SCHEMA))
    for plan in plans:
        plan.save(path)
        yield load_plan, meddled, parts_of(path), memory_to_load(path, load_plan)
    for menu in test_menu_fuzz.originals():
        menu.save(path)
        yield (
            load_menu,
            lambda draw, parts, others: meddled_menu(draw, parts),
            parts_of(path),
            memory_to_load(path, load_menu),
        )


def fuzz(n, folder, seed):
    """How so many loads ended, and how many steps of the loader they took."""
    draw, path, ends, coverage = random.Random(seed), folder / "b.plan", Counter(), Coverage()
    corpus = list(originals(folder))
    n_first = len(corpus)
    for i in range(n):
        load, change, parts, needs = draw.choice(corpus if draw.random() < 0.5 else corpus[-200:])
        path.write_bytes(_changed(draw, change, parts, draw.choice(corpus)[2]))
        try:
            model, is_new = coverage.follow(loaded, path, load)
        except BaseException as error:
            error.add_note(f"number {i} of seed {seed}")
            raise
        if i % 20 == 0:
            assert takes_little(path, load, needs), f"number {i} of seed {seed}"
        if is_new and path.stat().st_size < MOST_BYTES and _is_archive(path):
            corpus.append((load, change, parts_of(path), needs))
        if model is not None:
            for plan in getattr(model, "plans", [model]):
                ask(plan)
            assert is_kept(model, path, load), f"number {i} of seed {seed}"
        ends["refused" if model is None else "sound"] += 1
    ends["kept"], ends["steps"] = len(corpus) - n_first, len(coverage)
    return ends


def _changed(draw, change, parts, others):
    """The bytes of a changed file; its bytes are damaged where its entries cannot be changed further."""
    try:
        return change(draw, parts, others)
    except Exception:
        return damaged(draw, zipped(parts.items()))


def _is_archive(path):
    try:
        return bool(parts_of(path))
    except Exception:  # zipfile raises many kinds
        return False


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_guided_changes_are_refused_or_sound(tmp_path):
    ends = fuzz(100, tmp_path, 0)
    assert ends["kept"] > 10
    assert min(ends["refused"], ends["sound"]) > 5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("seed", range(10))
def test_a_hundred_thousand_guided_changes_are_refused_or_sound(tmp_path, seed):
    ends = fuzz(10_000, tmp_path, seed)
    assert ends["refused"] + ends["sound"] == 10_000
