"""Whatever writes files, in two versions each: tests let it fail, or have `python deeds.py` do it, to be killed."""

import os
import sys
from pathlib import Path

import numpy as np

import miserly as ms
from miserly.datasets import _streams as streams
from miserly.datasets import four_quadrants, write_csv
from miserly.report import save_run, write_report
from oracles.hand_built import PLANS
from report.sweeps import triage

DATA = four_quadrants(300, 0)
TRAIN, VALIDATION = (DATA.X[:200], DATA.y[:200]), (DATA.X[200:], DATA.y[200:])


def save_plan(path, version):
    PLANS[("cascade", "wide")[version]]().save(path)


def write_table(path, version):
    write_csv(path, ["a", "b"], np.full((2, 300 + version), 0.5))


def write_prices(path, version):
    ms.CostTable.per_feature({f"feature {i}": 1.0 + version for i in range(40)}).to_toml(path)


def write_page(path, version):
    write_report([triage(60)[version]], path)


def draw_front(path, version):
    triage(60)[2 * version].front.plot(path)


def keep_run(folder, version):
    """One run is of seven models, the other of two."""
    made = triage(60)[2 * version]
    save_run(made.front, (made.rows.X, made.rows.y), folder)


FILES = {"a.plan": save_plan, "a.csv": write_table, "a.toml": write_prices, "a.html": write_page, "a.png": draw_front}


def model(**options):
    return ms.GreedyMiserRegressor(DATA.costs, 1e-3, **{"n_estimators": 6, "warm_start": True, **options})


def fit(folder, version=0):
    """Three hundred rounds, and the model."""
    fitted = model(n_estimators=300, subsample=0.7, random_state=version).fit(*TRAIN, checkpoint=folder / "rounds")
    fitted.plan_.save(folder / "a.plan")


def sweep(folder, version=0):
    grid = {"tradeoff": np.geomspace(1e-4, 1, 12)}
    return ms.frontier(model(n_estimators=40, max_depth=2 + version), TRAIN, VALIDATION, grid=grid, store=folder)


def bins(folder, version=0):
    """Sixty blocks of a table that is written first."""
    streams.RowStream.rows_at_once = 50
    source = folder.with_name(folder.name + ".csv")
    if not source.exists():
        X = np.random.default_rng(version).normal(size=(3000, 30))
        write_csv(source, [*(f"x{f}" for f in range(30)), "y"], [*X.T, X[:, 0]])
    return ms.BinnedDataset.from_csv(source, folder, label="y")


def saves(folder, version=0):
    """Small files again and again, each in its two versions by turns."""
    for turn in range(1, 10**6):
        for name in ("a.plan", "a.csv", "a.toml"):
            FILES[name](folder / name, turn % 2)


def runs(folder, version=0):
    for turn in range(1, 10**6):
        keep_run(folder / "run", turn % 2)


def do_in_forks():
    """Do what standard input asks for, each in a fork of this process, which has all modules; tell how each ends."""
    for line in sys.stdin:
        deed, folder = line.rstrip("\n").split(" ", 1)
        process = os.fork()
        if process == 0:
            code = 1
            try:
                {"fit": fit, "sweep": sweep, "bins": bins, "saves": saves, "runs": runs}[deed](Path(folder))
                code = 0
            finally:
                os._exit(code)
        sys.stdout.write(f"{process}\n")
        sys.stdout.flush()
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    do_in_forks()
