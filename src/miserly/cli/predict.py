"""`miserly predict`: answers and costs of a saved plan."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from miserly.cli.options import FILE, OUT_FILE, json_option, print_json


@click.command()
@click.argument("plan", type=FILE)
@click.argument("table", type=FILE)
@click.option("--budget", type=float, default=None, help="Most that a row may cost.")
@click.option("--label", default=None, metavar="COLUMN", help="Column to leave out.")
@click.option("--qid", default=None, metavar="COLUMN", help="Column of query ids.")
@click.option("--proba", is_flag=True, help="Also the probability of each class.")
@click.option("-o", "--out", type=OUT_FILE, default=None, help="CSV to write; stdout unless given.")
@json_option
def predict(
    plan: Path,
    table: Path,
    budget: float | None,
    label: str | None,
    qid: str | None,
    proba: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Answer every row of TABLE with PLAN, and tell what it cost: CSV or Parquet, with the plan's features by name, or
    LETOR, with all of them in the plan's order."""
    from miserly.datasets import read_table, write_csv
    from miserly.plan import load_plan

    loaded = load_plan(plan)
    rows = read_table(table, label, qid, loaded.costs.features)
    missing = [f for f in loaded.costs.features if f not in rows.features]
    if missing:
        raise ValueError(f"'{table}' lacks the features {missing[:5]} that the plan reads. Add these columns.")
    X = rows.X[:, [rows.features.index(f) for f in loaded.costs.features]]
    result = loaded.run(X, rows.qid, budget)
    columns: dict[str, Any] = {"answer": loaded.read(result.z), "cost": result.cost}
    columns["stopped"] = ["budget" if b else "answered" for b in result.out_of_budget]
    if proba and loaded.classes is not None:
        columns |= {f"p({c})": p for c, p in zip(loaded.classes, loaded.probabilities(result.z).T)}
    if as_json:
        print_json([dict(zip(columns, line)) for line in zip(*columns.values())])
    elif out is not None:
        write_csv(out, list(columns), list(columns.values()))
        click.echo(f"{len(X)} answers in {out}, mean cost {result.cost.mean():g} {loaded.costs.unit}.")
    else:
        write_csv(sys.stdout, list(columns), list(columns.values()))
