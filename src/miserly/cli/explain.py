"""`miserly explain`: a saved plan in words and a table."""

from __future__ import annotations

from pathlib import Path

import click

from miserly.cli.options import FILE, json_option, print_json


@click.command()
@click.argument("plan", type=FILE)
@click.option("--dot", is_flag=True, help="The graph in Graphviz's language instead.")
@json_option
def explain(plan: Path, dot: bool, as_json: bool) -> None:
    """Tell what PLAN buys, in which order, at what cost, and what each purchase gained."""
    from miserly.plan import load_plan

    loaded = load_plan(plan)
    if dot:
        click.echo(loaded.to_dot())
        return
    if as_json:
        print_json({"notes": dict(loaded.notes), "purchases": loaded.purchases(), "unit": loaded.costs.unit})
        return
    from rich.console import Console
    from rich.table import Table

    click.echo(loaded.summary())
    table = Table(title="What it buys, in order")
    for column in ("node", "buys", "price", "total", "learners", "evaluation", "gain"):
        table.add_column(column, justify="left" if column == "buys" else "right")
    for line in loaded.purchases():
        cells = (line[column] for column in ("price", "total", "learners", "evaluation", "gain"))
        table.add_row(str(line["node"]), ", ".join(line["buys"]) or "nothing", *(f"{c:.4g}" for c in cells))
    Console().print(table)
