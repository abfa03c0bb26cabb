"""`miserly predict`: predictions and costs of a saved plan."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from miserly.cli.options import FILE, OUT_FILE, json_option, load_model, print_json
from miserly.cli.tables import scan, show_notes, table_arguments, table_options


@click.command()
@click.argument("plan", type=FILE)
@click.argument("table", type=FILE)
@click.option("--budget", type=float, default=None, help="Most that a row may cost.")
@click.option("--mean-budget", type=float, default=None, help="What rows may cost in the mean, for menus.")
@click.option("--proba", is_flag=True, help="Also the probability of each class.")
@click.option("-o", "--out", type=OUT_FILE, default=None, help="CSV to write; stdout unless given.")
@table_options
@json_option
def predict(
    plan: Path,
    table: Path,
    budget: float | None,
    mean_budget: float | None,
    proba: bool,
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Predict every row of TABLE with PLAN, or with a menu, and its cost. Columns are found by name, in any order and
    in the words that the plan was trained on; others are ignored, the identifier is copied. LETOR has them in the
    plan's order."""
    from miserly.datasets import write_csv
    from miserly.plan import Menu

    loaded = load_model(plan)
    if isinstance(loaded, Menu):
        chosen = loaded.choose(budget, mean_budget)
        loaded, budget = chosen.plan, chosen.cap
    elif mean_budget is not None:
        raise click.UsageError("--mean-budget chooses a plan of a menu; a single plan takes --budget only.")
    rows, id_name = _rows(loaded, table, options)
    show_notes(table, rows, quiet=as_json)
    result = loaded.run(rows.X, rows.qid, budget)
    columns: dict[str, Any] = {} if rows.ids is None else {id_name: rows.ids}
    columns |= {"prediction": loaded.read(result.z), "cost": result.cost}
    columns["stopped"] = ["budget" if b else "answered" for b in result.out_of_budget]
    if proba and loaded.classes is not None:
        columns |= {f"p({c})": p for c, p in zip(loaded.classes, loaded.probabilities(result.z).T)}
    if as_json:
        print_json([dict(zip(columns, line)) for line in zip(*columns.values())])
    elif out is not None:
        write_csv(out, list(columns), list(columns.values()))
        click.echo(f"{len(rows.X)} predictions in {out}, mean cost {result.cost.mean():g} {loaded.costs.unit}.")
    else:
        write_csv(sys.stdout, list(columns), list(columns.values()))


def _rows(plan: Any, path: Path, options: dict[str, Any]) -> tuple[Any, str]:
    """The rows of a table as the plan reads them, and the name of their identifier."""
    from miserly.datasets import TableError, TableProblem, did_you_mean, is_letor, read_table
    from miserly.schema import Schema

    arguments = table_arguments(options)
    if is_letor(path):
        return read_table(path, features=plan.costs.features), ""
    schema = plan.schema or Schema.of_names(plan.costs.features)
    asked, label = arguments.roles["id"], arguments.label or schema.label
    drop = [*arguments.drop, *schema.drop, *([] if label is None else [label])]
    roles = {**arguments.roles, "id": asked or schema.id, "label": None}
    found = scan(path, replace(arguments, roles=roles, drop=tuple(drop)), schema=schema)
    if asked is not None and found.table.ids is None:
        what = f"There is no column {asked!r} for the id."
        found.problems.append(TableProblem(str(path), "", what, did_you_mean(asked, found.raw.columns)))
    if found.problems:
        raise TableError(found.problems)
    return found.table, asked or schema.id or ""
