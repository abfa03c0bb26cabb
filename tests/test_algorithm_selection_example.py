"""The example of algorithm selection, on scenarios that are not part of the project."""

from itertools import pairwise

import numpy as np
import pytest

from examples.algorithm_selection.__main__ import main
from examples.algorithm_selection.scenarios import folder, load
from examples.algorithm_selection.selection import Problem, Stages, chain, portfolio

pytestmark = pytest.mark.skipif(not folder().is_dir(), reason="needs the ASlib scenarios: set MISERLY_DATA")


@pytest.fixture(scope="module")
def learned():
    data = load("sat12-indu")
    return data, Stages.fit(Problem.of(data, np.arange(0, len(data.par10), 2)))


def test_the_ledger_is_the_measured_seconds_row_by_row(learned):
    data, stages = learned
    held, plan = np.arange(1, len(data.par10), 2), stages.plan(by_row=True)
    _, paid = stages.outcome(plan, held)
    run = plan.run(data.features[held])
    assert len(set(run.accounts.of_row)) > 1
    for number, seconds, total in zip(run.accounts.of_row, data.seconds[held], paid):
        owned = run.accounts.accounts[number].owned
        assert total == pytest.approx(sum(s for a, s in enumerate(seconds) if owned >> a & 1), rel=1e-12)


def test_gates_skip_the_steps_on_the_rows_on_which_they_take_long(learned):
    data, stages = learned
    rows = stages.problem.rows
    accounts = [stages.plan(by_row).run(data.features[rows]).accounts for by_row in (True, False)]
    assert len(np.unique(accounts[1].of_row)) == 1  # by mean prices all rows run the same steps
    n_steps = np.array([accounts[0].accounts[k].owned.bit_count() for k in accounts[0].of_row])
    fewer = n_steps < n_steps.max()
    assert 0.0 < fewer.mean() < 0.5
    assert data.seconds[rows][fewer].sum(axis=1).mean() > 2 * data.seconds[rows][~fewer].sum(axis=1).mean()


@pytest.mark.parametrize("by_row", [True, False])
def test_more_steps_never_lose_more(learned, by_row):
    data, stages = learned
    sets = chain(data, stages.problem.rows, by_row)
    assert (np.diff(stages.smooth(sets)) <= 0).all()
    assert sets[0] == frozenset()
    assert sets[-1] == set(data.steps)
    assert all(now < after for now, after in pairwise(sets))
    for steps in sets:
        for needed in data.needs.values():
            assert needed[-1] not in steps or set(needed) <= steps


def test_what_takes_long_on_few_rows_comes_early_by_row_and_late_in_the_mean(learned):
    data, stages = learned
    first = {by_row: chain(data, stages.problem.rows, by_row)[-2] for by_row in (True, False)}
    assert "KLB" in first[True] - first[False]  # 1.3 seconds on half of the rows, 41 in the mean
    assert "CG" in first[False] - first[True]  # 20 seconds on half of the rows, 21 in the mean


def test_the_portfolio_is_better_together_than_its_best_solver():
    par10 = load("asp-potassco").par10
    chosen = portfolio(par10)
    assert len(set(chosen.tolist())) == len(chosen)
    assert par10[:, chosen].min(axis=1).mean() < par10.mean(axis=0).min()


def test_it_prints_a_table(capsys):
    main(["bnsl-2016", "--folds", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all(0 < float(line.split()[5].rstrip("%")) < 100 for line in lines[1:])
