"""A plan file that somebody meddled with is refused, or served: it never takes the server down."""

import random

import numpy as np
import pytest

from miserly.plan import PlanFileError, load_plan
from miserly.serve._runner_pool import ActivePlan
from oracles.hand_built import PLANS
from oracles.meddling import damaged, meddled, parts_of


def fuzz(n, folder):
    """How many were refused and how many are served; any other end is an error."""
    draw, path, ends = random.Random(0), folder / "a.plan", {"refused": 0, "unfit": 0, "served": 0}
    originals = []
    for make in PLANS.values():
        make().save(path)
        originals.append(parts_of(path))
    for i in range(n):
        content = meddled(draw, originals[i % len(originals)], draw.choice(originals))
        path.write_bytes(damaged(draw, content) if draw.random() < 0.05 else content)
        try:
            plan = load_plan(path)
        except PlanFileError:
            ends["refused"] += 1
            continue
        try:
            active = ActivePlan(plan, None)
        except ValueError:
            ends["unfit"] += 1
            continue
        with np.errstate(all="ignore"):
            active.runner.predict(dict.fromkeys(plan.costs.features, 0.5), budget=100.0)
        ends["served"] += 1
    return ends


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_meddled_plans_never_crash(tmp_path):
    ends = fuzz(500, tmp_path)
    assert ends["refused"] > 100
    assert ends["served"] > 20


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_many_meddled_plans_never_crash(tmp_path):
    assert sum(fuzz(20_000, tmp_path).values()) == 20_000
