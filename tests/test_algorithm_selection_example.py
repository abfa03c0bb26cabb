"""The example of algorithm selection, on scenarios that are not part of the project."""

import numpy as np
import pytest

from examples.algorithm_selection.__main__ import NAMES, main
from examples.algorithm_selection.scenarios import folder, load
from examples.algorithm_selection.selection import fit, portfolio

pytestmark = pytest.mark.skipif(not folder().is_dir(), reason="needs the ASlib scenarios: set MISERLY_DATA")


@pytest.mark.parametrize("name", NAMES)
def test_the_ledger_is_the_measured_seconds_row_by_row(name):
    data = load(name)
    rows, held = np.arange(0, len(data.par10), 2), np.arange(1, len(data.par10), 2)
    selector = fit(data, rows, "row", 1.0)
    run = selector.plan.run(data.features[held])
    paid = selector.plan.predict_cost(data.features[held], prices=data.seconds[held])
    for number, seconds, total in zip(run.accounts.of_row, data.seconds[held], paid):
        owned = run.accounts.accounts[number].owned
        assert total == pytest.approx(sum(s for a, s in enumerate(seconds) if owned >> a & 1), rel=1e-12)
    capped = selector.plan.predict_cost(data.features[held], budget=5.0)
    assert (capped <= 5.0).all()


def test_the_portfolio_is_better_together_than_its_best_solver():
    par10 = load("asp-potassco").par10
    chosen = portfolio(par10)
    assert len(set(chosen.tolist())) == len(chosen)
    assert par10[:, chosen].min(axis=1).mean() < par10.mean(axis=0).min()


def test_it_prints_a_table(capsys):
    main(["asp-potassco", "--folds", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all(float(line.split()[-1].rstrip("%")) > 0 for line in lines[1:])
