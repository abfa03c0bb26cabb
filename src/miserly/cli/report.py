"""`miserly report`: what a budget buys, as a page for a browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from miserly.cli.options import FILE, OUT_FILE
from miserly.cli.progress import bar

RUN = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command()
@click.argument("runs", metavar="RUN...", type=RUN, nargs=-1, required=True)
@click.option("-o", "--out", type=OUT_FILE, default=Path("report.html"), show_default=True)
@click.option("--title", default="What a budget buys", show_default=True)
@click.option("--group-by", "columns", multiple=True, metavar="COLUMN", help="Show what its groups pay. Repeatable.")
@click.option("--rows", type=FILE, default=None, help="The validation table, line by line, where COLUMN is no feature.")
def report(runs: tuple[Path, ...], out: Path, title: str, columns: tuple[str, ...], rows: Path | None) -> None:
    """Write one self-contained page about RUN, the --out folder of a sweep; several runs on the same validation rows
    are compared.

    With --group-by the page shows what the groups of a column pay and how often predictions about them are wrong.
    """
    from miserly.report import load_run, write_report

    if rows is not None and not columns:
        raise click.UsageError("--rows has the columns of --group-by: name at least one.")

    loaded = [load_run(folder) for folder in runs]
    if len({run.front.name for run in loaded}) < len(loaded):  # then folders tell them apart
        loaded = [replace(run, front=replace(run.front, name=f.resolve().name)) for run, f in zip(loaded, runs)]
    with bar("models") as progress:
        write_report(loaded, out, title, progress, {name: _column(rows, name) for name in columns})
    click.echo(f"Wrote {out} ({out.stat().st_size / 1e6:.1f} MB): open it in a browser, it needs no network.")


def _column(rows: Path | None, name: str) -> list[Any] | None:
    """The cells of a column of a table, numbers if all are; without a table, the run is asked for the feature."""
    if rows is None:
        return None
    from miserly.datasets import FileFormat, raw_table

    columns = raw_table(rows, FileFormat()).columns
    if name not in columns:
        raise click.ClickException(f"'{rows}' has no column {name!r}. It has {', '.join(map(str, columns))}.")
    cells = list(columns[name])
    try:
        return [float(cell) if str(cell).strip() else None for cell in cells]
    except ValueError:
        return [str(cell).strip() or None for cell in cells]
