"""Whatever happens to a plan file, loading it is an error in words or gives a sound plan, in time and in its memory."""

import random
import time
import tracemalloc
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from miserly.plan import PlanFileError, load_plan
from oracles.hand_built import PLANS
from oracles.meddling import damaged, meddled, parts_of
from oracles.random_plans import random_plan

SECONDS = 2.0
SPARE = 1 << 17  # bytes that a message and what tells where an error was may take, for plans of a few kilobytes


def originals(folder):
    """Plans of every kind: by hand, by chance over every dictionary, and charged by path."""
    plans = [make() for make in PLANS.values()]
    kinds = ("raw", "trees", "rbf", "polynomial", "chi2")
    plans += [random_plan(seed, kind=kind) for seed in range(3) for kind in kinds]
    plans += [replace(plan, charge="path", notes={"path": [{"round": 1}]}) for plan in plans[:6]]
    for plan in plans:
        plan.save(folder / "a.plan")
        yield plan, (folder / "a.plan").read_bytes(), parts_of(folder / "a.plan")


def loaded(path):
    """The plan of a file, or None if it is refused."""
    began, plan, message = time.process_time(), None, ""
    try:
        plan = load_plan(path)
    except PlanFileError as error:
        message = str(error)
    assert time.process_time() - began < SECONDS
    assert plan is not None or (str(path) in message and len(message) < 1000)
    return plan


def memory_to_load(path):
    tracemalloc.start()
    loaded(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def is_sound(plan, path):
    """It can be asked, kept, and is what was kept."""
    with np.errstate(all="ignore"):
        result = plan.run(np.full((2, len(plan.costs.features)), 0.5), qid=np.zeros(2, int), budget=100.0)
    assert result.score.shape == (2, len(plan.prior))
    plan.save(path)
    kept = path.read_bytes()
    load_plan(path).save(path)
    return path.read_bytes() == kept


def fuzz(n, folder, seed):
    """How the loads of so many files ended; every third is damaged, the others are sound archives of unsound content.

    Every twentieth load is measured: it takes at most twice the memory of the sound file. What threads that other tests
    left behind take meanwhile is measured too, so a load that seems to take more is measured again.
    """
    draw, path, ends = random.Random(seed), folder / "b.plan", Counter()
    known = list(originals(folder))
    needs = []
    for _, whole, _ in known:
        path.write_bytes(whole)
        needs.append(memory_to_load(path))
    for i in range(n):
        k = i % len(known)
        plan, whole, parts = known[k]
        if i % 3 == 0:
            content, kind = damaged(draw, whole), "damaged"
        else:
            content, kind = meddled(draw, parts, draw.choice(known)[2]), "meddled"
        path.write_bytes(content)
        found = loaded(path)
        if i % 20 == 0:
            assert any(memory_to_load(path) < 2 * needs[k] + SPARE for _ in range(3))
        if found is None:
            ends[kind, "refused"] += 1
        elif found == plan:
            ends[kind, "the same"] += 1
        else:
            assert kind == "meddled", f"number {i} is read as another plan"
            assert is_sound(found, path), f"number {i} is not what is kept of it"
            ends[kind, "another"] += 1
    return ends


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_meddled_plans_are_refused_or_sound(tmp_path):
    ends = fuzz(1500, tmp_path, 0)
    assert ends["damaged", "refused"] > 300
    assert min(ends["damaged", "the same"], ends["meddled", "the same"], ends["meddled", "another"]) > 5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("seed", range(10))
def test_a_hundred_thousand_meddled_plans_are_refused_or_sound(tmp_path, seed):
    assert sum(fuzz(10_000, tmp_path, seed).values()) == 10_000
