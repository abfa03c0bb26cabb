"""Whatever happens to a plan file, loading it is an error in words or gives a sound plan, in time and in its memory."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from miserly.plan import load_plan
from oracles.fuzzing import ask, is_kept, loaded, memory_to_load, takes_little
from oracles.hand_built import PLANS
from oracles.meddling import damaged, meddled, parts_of
from oracles.random_plans import random_plan


def originals(folder):
    """Plans of every kind: by hand, by chance over every dictionary, and charged by path."""
    plans = [make() for make in PLANS.values()]
    kinds = ("raw", "trees", "rbf", "polynomial", "chi2")
    plans += [random_plan(seed, kind=kind) for seed in range(3) for kind in kinds]
    plans += [replace(plan, charge="path", notes={"path": [{"round": 1}]}) for plan in plans[:6]]
    for plan in plans:
        plan.save(folder / "a.plan")
        yield plan, (folder / "a.plan").read_bytes(), parts_of(folder / "a.plan")


def is_sound(plan, path):
    """It can be asked, kept, and is what was kept."""
    ask(plan)
    return is_kept(plan, path, load_plan)


def fuzz(n, folder, seed):
    """How the loads of so many files ended; every third is damaged, the others are sound archives of unsound content.

    Every twentieth load is measured: it takes at most twice the memory of the sound file.
    """
    draw, path, ends = random.Random(seed), folder / "b.plan", Counter()
    known = list(originals(folder))
    needs = []
    for _, whole, _ in known:
        path.write_bytes(whole)
        needs.append(memory_to_load(path, load_plan))
    for i in range(n):
        k = i % len(known)
        plan, whole, parts = known[k]
        if i % 3 == 0:
            content, kind = damaged(draw, whole), "damaged"
        else:
            content, kind = meddled(draw, parts, draw.choice(known)[2]), "meddled"
        path.write_bytes(content)
        found = loaded(path, load_plan)
        if i % 20 == 0:
            assert takes_little(path, load_plan, needs[k])
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
    ends = fuzz(900, tmp_path, 0)
    assert ends["damaged", "refused"] > 180
    assert min(ends["damaged", "the same"], ends["meddled", "the same"], ends["meddled", "another"]) > 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("seed", range(10))
def test_a_hundred_thousand_meddled_plans_are_refused_or_sound(tmp_path, seed):
    assert sum(fuzz(10_000, tmp_path, seed).values()) == 10_000
