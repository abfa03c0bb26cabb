"""The example of algorithm selection, on scenarios that are not part of the project."""

import numpy as np
import pytest

from examples.algorithm_selection.__main__ import main
from examples.algorithm_selection.scenarios import folder, load
from examples.algorithm_selection.selection import Problem, Stages, portfolio

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
    plans = [stages.plan(by_row) for by_row in (True, False)]
    paid = [stages.outcome(plan, rows)[1] for plan in plans]
    bought = [np.unique(plan.run(data.features[rows]).accounts.of_row) for plan in plans]
    assert len(bought[1]) == 1 < len(bought[0])  # by mean prices all rows run the same steps
    more, less = paid[0] > paid[1], paid[0] < paid[1]
    assert more.any() or less.any()
    assert data.seconds[rows][~more].sum(axis=1).mean() > data.seconds[rows][more].sum(axis=1).mean()


def test_more_steps_never_lose_more(learned):
    _, stages = learned
    assert (np.diff(stages.lost) <= 0).all()
    assert stages.sets[0] == ()
    assert set(stages.sets[-1]) == set(stages.problem.data.steps)
    assert all(set(now) < set(after) for now, after in zip(stages.sets, stages.sets[1:]))


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
