"""`miserly report`: what a budget buys, as a page for a browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from miserly.cli.options import OUT_FILE
from miserly.cli.progress import bar

RUN = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command()
@click.argument("runs", metavar="RUN...", type=RUN, nargs=-1, required=True)
@click.option("-o", "--out", type=OUT_FILE, default=Path("report.html"), show_default=True)
@click.option("--title", default="What a budget buys", show_default=True)
def report(runs: tuple[Path, ...], out: Path, title: str) -> None:
    """Write one self-contained page about RUN, the --out folder of a sweep; several runs on the same validation rows
    are compared."""
    from miserly.report import load_run, write_report

    loaded = [load_run(folder) for folder in runs]
    if len({run.front.name for run in loaded}) < len(loaded):  # then folders tell them apart
        loaded = [replace(run, front=replace(run.front, name=f.resolve().name)) for run, f in zip(loaded, runs)]
    with bar("models") as progress:
        write_report(loaded, out, title, progress)
    click.echo(f"Wrote {out} ({out.stat().st_size / 1e6:.1f} MB): open it in a browser, it needs no network.")
