"""One plan of each kind that the design lists, by hand, through the public cost battery."""

from dataclasses import replace

import numpy as np
import pytest

from miserly.checks import PLAN_CHECKS, check_plan
from oracles.hand_built import PLANS, rows


@pytest.mark.parametrize("charge", ["learner", "path"])
@pytest.mark.parametrize("name", PLANS)
def test_the_battery(name, charge):
    plan = replace(PLANS[name](), charge=charge)
    X = rows(24, 3, n_features=len(plan.costs.features))
    ran = check_plan(plan, X, qid=np.arange(24) % 5)
    assert len(ran) == len(PLAN_CHECKS) == 6


def test_the_battery_finds_a_plan_that_reads_what_was_not_bought():
    """A broken executor must not pass: here the table forgets that a feature needs anything."""
    plan = PLANS["anytime"]()
    X = rows(24, 3)

    class Cheat(type(plan)):
        def predict_cost(self, *args, **options):
            return super().predict_cost(*args, **options) * 0.5

    cheat = Cheat(**{name: getattr(plan, name) for name in plan.__dataclass_fields__})
    with pytest.raises(AssertionError):
        check_plan(cheat, X)
