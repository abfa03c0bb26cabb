"""Error costs: the least total of tests and mistakes, by enumeration; predictions of the least expected cost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import miserly as ms
from miserly.plan import least_expected
from miserly.report import LabelledRows, totals_by_budget

MATRIX = [[0, 10], [200, 0]]


@pytest.fixture(scope="module")
def swept():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=600) > 1, "ill", "well")
    model = ms.GreedyMiserClassifier(ms.CostTable.per_feature([1.0, 8.0, 3.0]), n_estimators=20)
    grid = {"tradeoff": [0.0, 1e-3, 1e-2, 1.0]}
    return ms.frontier(model, (X[:300], y[:300]), (X[300:], y[300:]), grid=grid), X[300:], y[300:]


def test_the_chosen_model_has_the_least_total_of_all(swept):
    front, X, y = swept
    classes, totals = ["ill", "well"], []
    for point in front.points:
        p = point.model.predict_proba(X)
        total = 0.0
        for row, truth, paid in zip(p, y, point.model.predict_cost(X)):
            expected = [sum(row[t] * MATRIX[t][k] for t in range(2)) for k in range(2)]
            total += paid + MATRIX[classes.index(truth)][int(np.argmin(expected))]
        totals.append(total / len(y))
    assert [t.total for t in front.totals(MATRIX)] == pytest.approx(totals)
    best = front.points[int(np.argmin(totals))]
    assert front.choose_point(error_costs=MATRIX) is best


def test_the_chosen_model_decides_by_expected_cost(swept):
    front, X, _ = swept
    model = front.choose(error_costs=[[0, 1], [50, 0]])
    p = model.predict_proba(X)
    expected = np.where(p[:, 1] * 50 >= p[:, 0], "well", "ill")
    assert (model.predict(X) == expected).all()
    one_by_one = [model.plan_.predict(X[i : i + 1])[0] for i in range(50)]
    assert one_by_one == expected[:50].tolist()
    walk = model.plan_.start()
    while walk.needs:
        walk.supply({name: X[0, model.plan_.costs.features.index(name)] for name in walk.needs})
    assert walk.best.value == expected[0]


def test_a_budget_limits_the_choice(swept):
    front = swept[0]
    assert front.choose_point(budget=0.0, error_costs=MATRIX).validation.cost["mean"] <= min(
        p.validation.cost["mean"] for p in front.points
    )


def test_plans_keep_error_costs_in_files(swept, tmp_path):
    model = swept[0].choose(error_costs=MATRIX)
    model.plan_.save(tmp_path / "a.plan")
    assert ms.load_plan(tmp_path / "a.plan") == model.plan_
    assert "expected to cost least" in model.plan_.describe()


@pytest.mark.parametrize("wrong", [[[0, 1]], [[0, -1], [1, 0]], [[0, np.nan], [1, 0]], [[1, 1], [1, 1]], "free"])
def test_bad_matrices_are_refused(swept, wrong):
    with pytest.raises(ValueError, match="error_costs"):
        swept[0].choose(error_costs=wrong)


@given(st.integers(0, 2**31), st.integers(2, 4))
def test_least_expected_equals_the_product(seed, n_classes):
    rng = np.random.default_rng(seed)
    p, matrix = rng.dirichlet(np.ones(n_classes), 20), rng.random((n_classes, n_classes))
    assert (least_expected(p, matrix) == np.argmin(p @ matrix, axis=1)).all()


def test_auto_miser_chooses_by_error_costs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = X[:, 0] + X[:, 1] > 0.5
    front = ms.AutoMiserClassifier(ms.CostTable.per_feature([1.0, 5.0]), time_limit=None).fit(X, y).frontier_
    cheap, careful = (front.choose(error_costs=[[0, c], [c, 0]]).predict_cost(X).mean() for c in (0.1, 1000.0))
    assert cheap == 0.0 < careful


def test_costs_of_each_row_are_counted_row_by_row(swept):
    front, X, y = swept
    rng = np.random.default_rng(1)
    ill = (y == "ill")[:, None]
    each = np.where(ill, [0.0, 200.0], [10.0, 0.0]) * rng.gamma(1.0, 1.0, (len(y), 1))
    matrix = np.array([each[y == "ill"].mean(axis=0), each[y == "well"].mean(axis=0)])
    totals = front.totals(each)
    table = totals_by_budget(front, LabelledRows(X, y), each)
    for k, point in enumerate(front.points):
        said = least_expected(point.model.predict_proba(X), matrix)
        assert totals[k].mistakes == pytest.approx(np.mean([each[i, s] for i, s in enumerate(said)]))
        for line in table:
            if line.number == k:
                assert line.mistakes == pytest.approx(totals[k].mistakes)
    chosen = front.choose(error_costs=each)
    assert chosen.plan_.error_costs.tolist() == matrix.tolist()
    with pytest.raises(ValueError, match="299 rows, and there are 300"):
        front.totals(each[1:])
