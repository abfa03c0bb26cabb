"""`miserly explain`: a saved plan or menu in words and a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from miserly.cli.mistakes import error_costs_option, error_matrix
from miserly.cli.options import FILE, json_option, load_model, print_json


@click.command()
@click.argument("plan", type=FILE)
@click.option("--rows", type=FILE, default=None, help="Other rows than those of training: prints a protocol.")
@click.option("--label", default=None, metavar="COLUMN", help="The label's column in ROWS.")
@click.option("--markdown", is_flag=True, help="The protocol as Markdown.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the protocol: .svg, .html (to print), .md or .txt.")
@click.option("--budget", type=float, default=None, help="The most that a row may pay; of a menu it chooses the plan.")
@click.option("--title", default=None, help="Heading of an HTML page; the name of the label unless given.")
@error_costs_option
@click.option("--dot", is_flag=True, help="The graph in Graphviz's language instead.")
@click.option("--number", type=int, default=None, help="One plan of a menu, from 0.")
@json_option
def explain(
    plan: Path,
    rows: Path | None,
    label: str | None,
    markdown: bool,
    out: Path | None,
    budget: float | None,
    title: str | None,
    error_costs: dict[tuple[str, str], float] | None,
    dot: bool,
    number: int | None,
    as_json: bool,
) -> None:
    """Explain what PLAN buys, in which order, at what cost, and what each purchase gained; of a menu, which plan is
    best under which budget.

    With --rows and --label it prints a protocol: what to order first, and what to do with each result. --out writes it
    as a drawing or as a page to print. With --error-costs the plan predicts the class with the least expected cost.
    """
    from miserly.plan import Menu

    loaded = load_model(plan)
    if rows is None and (out, budget, title, error_costs) != (None, None, None, None):
        raise click.UsageError(
            "--out, --budget, --title and --error-costs belong to a protocol: give --rows and --label too."
        )
    if number is not None and isinstance(loaded, Menu):
        if not 0 <= number < len(loaded.plans):
            raise click.UsageError(f"The menu has plans 0 to {len(loaded.plans) - 1}, --number is {number}.")
        loaded = loaded.plans[number]
    if rows is not None:
        _print_protocol(loaded, rows, label, markdown, out, budget, title, error_costs)
    elif isinstance(loaded, Menu):
        shown = {"plans": list(loaded.names), "caps": loaded.caps, "quality": loaded.quality, "cost": loaded.cost}
        print_json(shown) if as_json else click.echo(loaded.describe())
    elif dot:
        click.echo(loaded.export("dot"))
    elif as_json:
        print_json({"notes": dict(loaded.notes), "purchases": loaded.purchases(), "unit": loaded.costs.unit})
    else:
        _print_purchases(loaded)


def _print_purchases(loaded: Any) -> None:
    """A plan in words and a table."""
    from rich.console import Console
    from rich.table import Table

    click.echo(loaded.summary())
    path = loaded.notes.get("path")
    lines: list[tuple[Any, ...]]
    columns: tuple[str, ...]
    if path:
        lines = [(p["round"], p["feature"], ", ".join(p["acquisitions"]), p["price"], p["gain"]) for p in path]
        columns = ("round", "for feature", "buys", "price", "gain")
    else:
        lines = [(p["node"], ", ".join(p["buys"]) or "nothing", p["price"], p["total"]) for p in loaded.purchases()]
        columns = ("node", "buys", "price", "total")
    table = Table(title="What it buys, in order")
    for column in columns:
        table.add_column(column, justify="left" if column in ("buys", "for feature") else "right")
    for row in lines:
        table.add_row(*(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row))
    Console().print(table)
    if path:
        click.echo(
            "gain: mean squared error of the gradients that the split removed, which its price was weighed against"
        )


def _print_protocol(
    model: Any,
    file: Path,
    label: str | None,
    markdown: bool,
    out: Path | None,
    budget: float | None,
    title: str | None,
    error_costs: dict[tuple[str, str], float] | None,
) -> None:
    """A plan or a menu as a protocol, measured on the rows of a file."""
    from miserly.datasets import read_table
    from miserly.plan import Menu
    from miserly.report import LabelledRows, protocol
    from miserly.schema import Schema

    plan = model.plans[0] if isinstance(model, Menu) else model
    schema = plan.schema or Schema.of_names(plan.costs.features)
    label = label or schema.label
    if label is None:
        raise click.UsageError("--rows needs --label: the column with the true labels.")
    table = read_table(file, label, schema=schema)
    assert table.y is not None
    if error_costs is not None:
        matrix = error_matrix(error_costs, plan.classes)
        if isinstance(model, Menu):
            model = replace(model, plans=tuple(p.with_error_costs(matrix) for p in model.plans))
        else:
            model = model.with_error_costs(matrix)
    found = protocol(model, LabelledRows(table.X, table.y), budget=budget, outcome=label)
    if out is not None:
        try:
            found.save(out, title)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        click.echo(f"{found.headline()} Written to {out}.")
        return
    click.echo(found.markdown() if markdown else found.text())
