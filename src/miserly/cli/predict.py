"""`miserly predict`: predictions and costs of a saved plan."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from miserly.cli.options import BUDGET, FILE, OUT_FILE, json_option, load_model, print_json
from miserly.cli.tables import TableArguments, scan, scan_options, show_notes, table_arguments, table_options


@click.command()
@click.argument("plan", type=FILE)
@click.argument("table", type=FILE)
@click.option("--budget", type=BUDGET, default=None, help="Most that a row may cost: 50, or usd=900,minutes=60.")
@click.option("--mean-budget", type=float, default=None, help="What rows may cost in the mean, for menus.")
@click.option("--proba", is_flag=True, help="Also the probability of each class.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option("--cluster", default=None, metavar="ADDRESS", help="Of a Dask scheduler, whose workers predict.")
@click.option("-o", "--out", type=OUT_FILE, default=None, help="CSV or Parquet to write; stdout unless given.")
@table_options
@json_option
def predict(
    plan: Path,
    table: Path,
    budget: float | dict[str, float] | None,
    mean_budget: float | None,
    proba: bool,
    workers: int,
    cluster: str | None,
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Predict every row of TABLE with PLAN, or with a menu, and its cost. Columns are found by name, in any order and
    in the words that the plan was trained on; others are ignored, the identifier is copied. LETOR has them in the
    plan's order. CSV and Parquet are read and written in blocks, so that files may be larger than the memory. A word
    that a spreadsheet would compute (=1+1) is written with a quote before it."""
    from miserly.batch import FileTask, open_output, predict_file
    from miserly.datasets import is_letor
    from miserly.plan import Menu

    model = load_model(plan)
    if mean_budget is not None and not isinstance(model, Menu):
        raise click.UsageError("--mean-budget chooses a plan of a menu; a single plan takes --budget only.")
    limits: dict[str, Any] = {"budget": budget, "mean_budget": mean_budget, "proba": proba}
    if as_json or is_letor(table):
        _whole(model, table, options, out, as_json, **limits)
        return
    arguments, id_name = as_trained(model, table_arguments(options))
    roles, form, rules = scan_options(arguments)
    task = FileTask(plan.read_bytes(), roles, rules, **limits, id_name=id_name)
    with open_output(out, sys.stdout) as write, _connected(cluster) as executor:
        result = predict_file(task, table, write, form, workers, executor)
    if out is not None:
        for note in result.notes:
            click.echo(f"{table}: {note}", err=True)
        click.echo(f"{result.n_rows} predictions in {out}, mean cost {result.mean_cost:g} {model.costs.unit}.")


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """A client of a cluster, which runs the blocks; None without one."""
    if address is None:
        yield None
        return
    try:
        from miserly.distributed import connect
    except ImportError as error:
        raise ImportError(f"A cluster needs more: pip install 'miserly[dask]' ({error}).") from None
    with connect(address) as client:
        yield client


def _whole(model: Any, table: Path, options: dict[str, Any], out: Path | None, as_json: bool, **limits: Any) -> None:
    """A table that is read as a whole: LETOR, and for JSON."""
    from miserly.batch import answers, open_output
    from miserly.plan import Menu

    rows, id_name = rows_of(model, table, options)
    show_notes(table, rows, quiet=as_json)
    plan, budget = model, limits["budget"]
    if isinstance(model, Menu):
        chosen = model.choose(budget, limits["mean_budget"])
        plan, budget = chosen.plan, chosen.cap
    columns = answers(plan, rows, budget, limits["proba"], id_name)
    if as_json:
        print_json([dict(zip(columns, line)) for line in zip(*columns.values())])
        return
    with open_output(out, sys.stdout) as write:
        write(list(columns), list(columns.values()))
    if out is not None:
        unit, mean = model.costs.unit, columns["cost"].mean()
        click.echo(f"{len(rows.X)} predictions in {out}, mean cost {mean:g} {unit}.")


def as_trained(model: Any, arguments: TableArguments, with_label: bool = False) -> tuple[TableArguments, str]:
    """How a table is read as the plan's training table was, and the name of its identifier."""
    from miserly.batch import compares_documents

    schema = _schema(model)
    asked, label = arguments.roles["id"], arguments.label or schema.label
    drop = [*arguments.drop, *schema.drop, *([] if label is None or with_label else [label])]
    roles = {**arguments.roles, "id": asked or schema.id, "label": label if with_label else None}
    if compares_documents(model):
        roles["qid"] = arguments.roles["qid"] or schema.qid
    return replace(arguments, roles=roles, drop=tuple(drop)), asked or schema.id or ""


def _schema(model: Any) -> Any:
    from miserly.plan import Menu
    from miserly.schema import Schema

    first = model.plans[0] if isinstance(model, Menu) else model
    return first.schema or Schema.of_names(model.costs.features)


def rows_of(model: Any, path: Path, options: dict[str, Any], with_label: bool = False) -> tuple[Any, str]:
    """The rows of a table as the plan or the menu reads them, and the name of their identifier."""
    from miserly.batch import absent_columns
    from miserly.datasets import TableError, is_letor, read_table

    given = table_arguments(options)
    if is_letor(path):
        return read_table(path, features=model.costs.features), ""
    arguments, id_name = as_trained(model, given, with_label)
    found = scan(path, arguments, schema=_schema(model))
    found.problems += absent_columns(model, found, given.roles["id"], arguments.roles["qid"])
    if found.problems:
        raise TableError(found.problems)
    return found.table, id_name
