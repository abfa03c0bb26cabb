"""AutoMiser with prices measured by row, and with what mistakes cost by row."""

import numpy as np
import pytest

import miserly as ms

RNG = np.random.default_rng(0)
N = 120
X = RNG.normal(size=(2 * N, 3))
Y = (X[:, 1] + 0.1 * RNG.normal(size=2 * N) > 0).astype(int)
COSTS = ms.CostTable(
    ["size", "probe", "noise"],
    {"size": ["stat"], "probe": ["stat", "probe"], "noise": ["noise"]},
    {"stat": 1.0, "probe": 64.0, "noise": 1.0},
)
LARGE = X[:, 0] > 0.4
SECONDS = np.column_stack([np.ones(2 * N), np.where(LARGE, 256.0, 2.0), np.ones(2 * N)])
MATRIX = np.array([[0.0, 64.0], [64.0, 0.0]])
TRAIN, TEST = slice(0, N), slice(N, None)


@pytest.fixture(scope="module")
def fitted():
    model = ms.AutoMiserClassifier(COSTS, time_limit=None, error_costs=MATRIX)
    return model.fit(X[TRAIN], Y[TRAIN], prices=SECONDS[TRAIN])


def test_rows_on_which_a_step_is_expensive_do_without_it(fitted):
    paid = fitted.predict_cost(X[TEST], prices=SECONDS[TEST])
    bought = paid > 1.5  # more than the step that tells the price
    assert bought[~LARGE[TEST]].mean() > 0.9
    assert bought[LARGE[TEST]].mean() < 0.1
    blind = ms.AutoMiserClassifier(COSTS, time_limit=None, error_costs=MATRIX).fit(X[TRAIN], Y[TRAIN])

    def total(model):
        mistakes = MATRIX[Y[TEST], model.predict(X[TEST])]
        return (model.predict_cost(X[TEST], prices=SECONDS[TEST]) + mistakes).mean()

    assert total(fitted) < 0.8 * total(blind)


def test_costs_of_the_frontier_are_what_rows_paid(fitted):
    plan = fitted.plan_
    point = next(p for p in fitted.frontier_.points if p.model.plan_ == plan)
    really = plan.predict_cost(X[TRAIN], prices=SECONDS[TRAIN]).mean()
    assert point.validation.cost["mean"] == pytest.approx(really, rel=0.15)
    estimates = plan.predict_cost(X[TEST])
    assert estimates.mean() == pytest.approx(plan.predict_cost(X[TEST], prices=SECONDS[TEST]).mean(), rel=0.15)


def test_menus_keep_caps_by_the_estimate(fitted):
    assert fitted.predict_cost(X[TEST], budget=10.0).max() <= 10.0
    paid = fitted.predict_cost(X[TEST], budget=10.0, prices=SECONDS[TEST])
    assert (paid <= 10.0).mean() > 0.95


def test_measured_constants_change_no_bits():
    constant = np.tile(COSTS.price_list, (N, 1))
    models = [
        ms.AutoMiserClassifier(COSTS, time_limit=None).fit(X[TRAIN][:60], Y[TRAIN][:60], prices=prices)
        for prices in (None, constant[:60])
    ]
    assert (models[0].predict_proba(X[TEST]) == models[1].predict_proba(X[TEST])).all()
    assert models[0].frontier_.table() == models[1].frontier_.table()


def test_numbers_and_lists_take_prices_too():
    number = ms.AutoMiserRegressor(COSTS, time_limit=None).fit(X[:60], X[:60, 1], prices=SECONDS[:60])
    assert number.predict_cost(X[TEST], budget=10.0).max() <= 10.0
    held = (X[60:120], Y[60:120], np.repeat(np.arange(6), 10))
    lists = ms.AutoMiserRanker(COSTS, time_limit=None)
    lists.fit(X[:60], Y[:60], np.repeat(np.arange(6), 10), eval_set=held, prices=SECONDS[:60])
    paid = lists.predict_cost(X[:60], np.repeat(np.arange(6), 10), prices=SECONDS[:60])
    assert set(paid) <= {0.0, 1.0, 2.0, 3.0, 4.0, 257.0, 258.0}


def test_costs_by_row_that_are_those_of_a_class_are_the_matrix():
    matrix = np.array([[0.0, 8.0], [128.0, 0.0]])
    few = slice(0, 60)
    by_class = ms.AutoMiserClassifier(COSTS, time_limit=None, error_costs=matrix).fit(X[few], Y[few])
    by_row = ms.AutoMiserClassifier(COSTS, time_limit=None).fit(X[few], Y[few], error_costs=matrix[Y[few]])
    assert (by_class.predict(X) == by_row.predict(X)).all()
    assert by_class.frontier_.table() == by_row.frontier_.table()
    totals = [
        front.totals(costs) for front, costs in ((by_class.frontier_, matrix), (by_row.frontier_, matrix[Y[few]]))
    ]
    assert [t.total for t in totals[0]] == [t.total for t in totals[1]]


def test_mistakes_count_what_they_cost_on_each_row(fitted):
    amounts = RNG.gamma(1.0, 100.0, N)
    each = np.where(Y[TRAIN][:, None] == np.arange(2), 0.0, amounts[:, None])
    for k, total in enumerate(fitted.frontier_.totals(each)):
        seen = fitted.frontier_.held_out(k)
        means = [each[Y[TRAIN] == c].mean(axis=0) for c in range(2)]
        mistakes = sum(each[i, int(np.argmin(p @ means))] for i, p in enumerate(seen.probabilities)) / N
        assert total.mistakes == pytest.approx(mistakes)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((N - 1, 2)), "119 rows, and there are 120"),
        (np.full((N, 2), -1.0), r"row 0 \(from 0\)"),
        (np.full((N, 2), np.nan), r"row 0 \(from 0\)"),
        (np.ones((N, 2)), "same cost"),
        (np.zeros((N, 3)), "2 × 2"),
    ],
)
def test_wrong_costs_by_row_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        ms.AutoMiserClassifier(COSTS).fit(X[TRAIN], Y[TRAIN], error_costs=given)


def test_costs_are_given_once():
    with pytest.raises(ValueError, match="twice"):
        ms.AutoMiserClassifier(COSTS, error_costs=MATRIX).fit(X[TRAIN], Y[TRAIN], error_costs=MATRIX[Y[TRAIN]])


def test_wrong_prices_are_refused():
    wrong = SECONDS[TRAIN].copy()
    wrong[3, 0] = np.nan
    with pytest.raises(ValueError, match="row 3"):
        ms.AutoMiserClassifier(COSTS).fit(X[TRAIN], Y[TRAIN], prices=wrong)
