"""Logged tables at the command line: `init` warns, the price file marks, `frontier` weighs."""

import numpy as np
import pytest
from command import miserly


@pytest.fixture
def logged(tmp_path):
    rng = np.random.default_rng(0)
    age, a = rng.normal(size=(2, 300))
    seen = rng.random(300) < np.where(age > 0, 0.9, 0.2)
    died = (a + 0.3 * age > 0).astype(int)
    lines = [f"{x:.3f},{v:.3f},{y}" if on else f"{x:.3f},,{y}" for x, v, y, on in zip(age, a, died, seen)]
    (tmp_path / "train.csv").write_text("\n".join(["age,lactate,died", *lines]) + "\n")
    return tmp_path


INIT = ["init", "train.csv", "--label", "died", "--price", 1]


def test_init_warns_and_marks(logged):
    said = miserly(*INIT, cwd=logged)
    assert "by 'age': who orders it looks at that" in said
    assert 'write missing = "not_ordered"' in said
    assert 'type = "number" }' in (logged / "costs.toml").read_text()
    said = miserly(*INIT, "--force", "--not-ordered", "lactate", cwd=logged)
    assert 'type = "number", missing = "not_ordered" }' in (logged / "costs.toml").read_text()
    assert "write missing" not in said


def test_frontier_shows_how_many_rows_count(logged):
    miserly(*INIT, cwd=logged)
    how = ["frontier", "train.csv", "--costs", "costs.toml", "--method", "greedy-miser", "--grid", "1e-3:1e-1:2"]
    said = miserly(*how, "--not-ordered", "lactate", cwd=logged)
    assert "effective_rows" in said
    assert "rows whose purchases were logged" in said
    assert "missing names 'lactat'" in miserly(*how, "--not-ordered", "lactat", cwd=logged, code=1)
    assert "nobody ordered it" in miserly("report", "frontier", cwd=logged, code=1)
