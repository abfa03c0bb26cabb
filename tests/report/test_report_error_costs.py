"""Totals at each budget: against counting row by row, and against the frontier's own choice."""

import numpy as np
import pytest

import miserly as ms
from miserly.report import LabelledRows, TotalAtBudget, load_run, save_run, totals_by_budget

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 3))
Y = np.where(X[:, 0] + X[:, 1] + 0.5 * RNG.normal(size=700) > 1, "well", "ill")
MATRIX = np.array([[0, 200], [10, 0]])


@pytest.fixture(scope="module")
def front():
    model = ms.GreedyMiserClassifier(ms.CostTable.per_feature([1.0, 8.0, 3.0]), n_estimators=15)
    grid = {"tradeoff": [0.0, 1e-3, 1e-2, 1.0]}
    return ms.frontier(model, (X[:300], Y[:300]), (X[300:500], Y[300:500]), grid=grid)


def test_totals_are_those_of_counting(front):
    table = totals_by_budget(front, LabelledRows(X[500:], Y[500:]), MATRIX)
    for line in table:
        model = front.points[line.number].model
        p, truth = model.predict_proba(X[500:]), Y[500:]
        total = right = n_ill = 0.0
        for row, label, paid in zip(p, truth, model.predict_cost(X[500:])):
            said = int(np.argmin(row @ MATRIX)) if not np.isclose(*(row @ MATRIX)) else 1
            total += paid + MATRIX[["ill", "well"].index(label), said]
            n_ill += label == "ill"
            right += label == "ill" and said == 0
        assert line.total == pytest.approx(total / 200)
        assert line.rates["specificity"][0] == pytest.approx(right / n_ill)
        assert line.interval[0] <= line.total <= line.interval[1]
        assert all(low - 1e-9 <= share <= high + 1e-9 or np.isnan(share) for share, low, high in line.rates.values())


def test_the_last_line_is_the_frontiers_choice(front):
    table = totals_by_budget(front, LabelledRows(X[500:], Y[500:]), MATRIX)
    assert front.points[table[-1].number] is front.choose_point(error_costs=MATRIX)
    budgets = [line.budget for line in table]
    assert budgets == sorted(budgets)
    for line in table:
        assert front.points[line.number] is front.choose_point(budget=line.budget, error_costs=MATRIX)


def test_a_run_from_disk_is_counted_on_its_rows(front, tmp_path):
    save_run(front, (X[300:500], Y[300:500]), tmp_path / "run")
    run = load_run(tmp_path / "run")
    table = totals_by_budget(run.front, run.rows, MATRIX)
    assert isinstance(table[0], TotalAtBudget)
    totals = [line.total for line in table]
    assert totals == sorted(totals, reverse=True)


def test_plans_of_numbers_have_no_mistakes():
    model = ms.GreedyMiserRegressor(ms.CostTable.per_feature([1.0, 8.0, 3.0]), n_estimators=3)
    front = ms.frontier(model, (X, X[:, 0]), (X, X[:, 0]), grid={"tradeoff": [0.0]})
    with pytest.raises(ValueError, match="pairs of classes"):
        totals_by_budget(front, LabelledRows(X, X[:, 0]), MATRIX)
