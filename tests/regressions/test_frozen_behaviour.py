"""What every estimator learns on one small set, frozen: trees to the bit, everything else to 1e-9.

Moves and renames must not change it. A change of behaviour that is meant writes the file again:
`python tests/regressions/test_frozen_behaviour.py NAME …` (all without a name), and its commit says why.
"""

import hashlib
import json
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import pytest

from oracles.every_estimator import EVERY, data, model_of, targets_of
from oracles.prices import shared_prices

FILE = Path(__file__).with_name("frozen_behaviour.json")
X, Y = data(400)
COSTS = shared_prices()
BOOSTED = ("GreedyMiser", "Stagewise", "FeatureSubset", "AnytimeMiser", "PathTree")


def test_every_estimator_is_frozen():
    assert set(json.loads(FILE.read_text())) == set(EVERY)


@pytest.mark.parametrize("name", EVERY)
def test_frozen(name):
    for seen, expected in zip(observed(name), json.loads(FILE.read_text())[name], strict=True):
        assert seen["bits"] == expected["bits"]
        np.testing.assert_allclose(seen["scores"], expected["scores"], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(seen["costs"], expected["costs"], rtol=1e-9, atol=1e-9)


def observed(name):
    """The scores and costs of some rows under each kind of target; of boosted trees also a hash of the plan."""
    seen = []
    for target in targets_of(name, Y):
        plan = model_of(name, COSTS).fit(X, target).plan_
        scores, costs = np.atleast_2d(plan.score(X[:20], np.zeros(20)).T), plan.predict_cost(X[:20], np.zeros(20))
        bits = digest(plan) if name.startswith(BOOSTED) else None
        seen.append({"bits": bits, "scores": scores.tolist(), "costs": costs.tolist()})
    return seen


def digest(plan):
    """A hash of all that decides what a plan of trees says."""
    parts = [plan.prior, *plan.dictionary.arrays().values()]
    for node in plan.nodes:
        parts += [node.learners, node.weights, node.bias, np.array([node.passed, node.failed])]
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


if __name__ == "__main__":
    kept = json.loads(FILE.read_text()) if sys.argv[1:] else {}
    new = {name: observed(name) for name in sys.argv[1:] or EVERY}
    FILE.write_text(json.dumps({name: (kept | new)[name] for name in EVERY}, indent=1) + "\n")
