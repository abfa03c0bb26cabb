"""The claim of the generators' benchmark on one small draw, in both directions."""

import numpy as np
import pytest

from benchmarks.generators import BUDGETS, compare, draw


@pytest.mark.slow
def test_trees_of_classifiers_where_rows_need_different_columns_and_boosting_where_they_do_not(tmp_path):
    results = {name: compare(name, seeds=[0], n_rows=400) for name in BUDGETS}
    quadrants = {m: e[0][BUDGETS["four quadrants"].index(14)] for m, e in results["four quadrants"].items()}
    waves = {m: e[0][BUDGETS["bent sum"].index(4)] for m, e in results["bent sum"].items()}
    assert quadrants["CSTC"] < 0.5 * quadrants["Greedy Miser"]
    assert waves["Greedy Miser"] < 0.5 * waves["CSTC"]
    twice = {name: {m: np.vstack([e, e]) for m, e in found.items()} for name, found in results.items()}
    draw(twice, str(tmp_path / "both.png"))
    assert (tmp_path / "both.png").stat().st_size > 10_000
