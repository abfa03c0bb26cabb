"""`miserly explain`: a saved plan in words and a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
    path = loaded.notes.get("path")
    rows: list[tuple[Any, ...]]
    columns: tuple[str, ...]
    if path:
        rows = [(p["round"], p["feature"], ", ".join(p["acquisitions"]), p["price"], p["gain"]) for p in path]
        columns = ("round", "for feature", "buys", "price", "gain")
    else:
        rows = [(p["node"], ", ".join(p["buys"]) or "nothing", p["price"], p["total"]) for p in loaded.purchases()]
        columns = ("node", "buys", "price", "total")
    table = Table(title="What it buys, in order")
    for column in columns:
        table.add_column(column, justify="left" if column in ("buys", "for feature") else "right")
    for row in rows:
        table.add_row(*(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row))
    Console().print(table)
    if path:
        click.echo(
            "gain: mean squared error of the gradients that the split removed, which its price was weighed against"
        )
