"""`miserly init`: a price file from a table, with a line for every column."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from miserly.cli.options import FILE, OUT_FILE
from miserly.cli.tables import scan, show_notes, table_arguments, table_options

HEAD = """\
# Prices of the columns of {train}. {prices}
# price: what one value costs a row, in the unit below. 0 is free.
# group: columns that come together (one blood sample) share the price of their group in [groups], paid once a row.
# unit, type: for people, and how the column is read: number, category, boolean, date, date:%d.%m.%Y.
# missing = "not_ordered": no value means that nobody bought it; models are learned and measured where somebody did.
"""


@click.command()
@click.argument("train", type=FILE)
@click.option("-o", "--out", type=OUT_FILE, default=Path("costs.toml"), show_default=True)
@click.option("--price", type=click.FloatRange(0), default=None, help="One price for every column; else you fill in.")
@click.option("--unit", default="units", show_default=True, help="What prices are in: usd, ms, minutes.")
@click.option("--force", is_flag=True, help="Overwrite OUT.")
@table_options
def init(train: Path, out: Path, price: float | None, unit: str, force: bool, **options: Any) -> None:
    """Write a commented price file for the table TRAIN: every column with its type, its values and a place for its
    price. Identifiers, constants and columns that give the label away are proposed to be left out."""
    from miserly.datasets import TableError, survey_table
    from miserly.files import write_whole

    if out.exists() and not force:
        raise click.UsageError(f"'{out}' exists. Give another --out, or --force to overwrite it.")
    arguments = table_arguments(options)
    found = scan(train, arguments)
    if found.problems:
        raise TableError(found.problems)
    show_notes(train, found.table)
    columns = survey_table(found.table)
    doubtful = {c.column.name: c.doubt for c in columns if c.doubt}
    kept = [c for c in columns if not c.doubt]
    write_whole(out, _text(train, arguments, kept, doubtful, price, unit))
    each = "" if price is None else f", each at {price:g} {unit}"
    click.echo(f"{out}: {len(kept)} column{'' if len(kept) == 1 else 's'}{each}.")
    for name, doubt in doubtful.items():
        names_rows = " If it names the rows, give --id, and predictions copy it." if "identifier" in doubt else ""
        click.echo(f"Left out: {name!r}: {doubt}. To use it, take it from `drop` and give it a price.{names_rows}")
    for c in kept:
        if c.warning:
            click.echo(f"Look at {c.column.name!r}: {c.warning}.")
    for c in kept:
        if c.column.kind == "date":
            click.echo(f"Look at {c.column.name!r}: a date. Leave it out (--drop) unless days are to be learned from.")
    if any(c.warning and c.column.name not in arguments.not_ordered for c in kept):
        click.echo('Where a value is missing because nobody ordered it, write missing = "not_ordered" on its line.')
    label = "" if arguments.label else " --label COLUMN"
    first = "" if price is not None else f"Write the prices into {out}, then: "
    click.echo(f"{first}miserly frontier {train} --costs {out}{label}")


def _text(
    train: Path, arguments: Any, columns: list[Any], doubtful: dict[str, str], price: float | None, unit: str
) -> str:
    """The price file."""
    prices = (
        'Write a number in place of each "?".'
        if price is None
        else f"Every column costs {price:g}, as --price said: write what each really costs."
    )
    lines = [HEAD.format(train=train.name, prices=prices), f"unit = {json.dumps(unit)}", "evaluation = 0.0", ""]
    width = max((len(json.dumps(c.column.name, ensure_ascii=False)) for c in columns), default=0)
    lines.append("[columns]")
    for c in columns:
        kind = c.column.kind + (f":{c.column.format}" if c.column.format else "")
        cost = '"?"' if price is None else f"{price:g}"
        ordered = ', missing = "not_ordered"' if c.column.name in arguments.not_ordered else ""
        own = f"unit = {json.dumps(c.column.unit, ensure_ascii=False)}, type = {json.dumps(kind)}"
        name = json.dumps(c.column.name, ensure_ascii=False)
        entry = f'{name:<{width}} = {{ price = {cost}, group = "", {own}{ordered} }}'
        lines.append(f"{entry}  # {c.values}; {c.missing:.1%} missing{'; ' + c.warning if c.warning else ''}")
    lines += ["", "[groups]", '# blood = 5.0  # an example: columns with group = "blood" share it', ""]
    lines += _table_section(arguments, doubtful)
    return "\n".join(lines) + "\n"


def _table_section(arguments: Any, doubtful: dict[str, str]) -> list[str]:
    """How the table is read, so that no later command has to be given it again."""
    lines = ["[table]  # how the table is read; options of the command line go first"]
    lines += [f"{role} = {json.dumps(name, ensure_ascii=False)}" for role, name in arguments.roles.items() if name]
    drop = [f"  {json.dumps(name, ensure_ascii=False)}," for name in arguments.drop]
    drop += [f"  {json.dumps(name, ensure_ascii=False)},  # proposed: {doubt}" for name, doubt in doubtful.items()]
    if drop:
        lines += ["drop = [", *drop, "]"]
    for name in ("missing", "not_missing"):
        if marks := getattr(arguments, name):
            lines.append(f"{name} = {json.dumps(list(marks), ensure_ascii=False)}")
    if arguments.limits != "value":
        lines.append(f"limits = {json.dumps(arguments.limits)}")
    lines += [f"{name} = {json.dumps(value)}" for name, value in arguments.text.items() if value]
    return lines
