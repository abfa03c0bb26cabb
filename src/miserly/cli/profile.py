"""`miserly profile`: what extractors take on a sample of rows, as a price file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from miserly.cli.modules import load_module
from miserly.cli.options import FILE, OUT_FILE
from miserly.cli.progress import bar

if TYPE_CHECKING:
    from miserly.runtime import Extractor


@click.command()
@click.argument("extractors", metavar="EXTRACTORS")
@click.argument("rows", metavar="ROWS")
@click.option("-o", "--out", type=OUT_FILE, default=None, help="Price file to write (TOML).")
@click.option("-n", "n_rows", type=click.IntRange(1), default=200, show_default=True, help="Rows to measure.")
@click.option("--clock", type=click.Choice(("cpu", "wall")), default="cpu", show_default=True)
@click.option("--statistic", type=click.Choice(("mean", "median", "p95")), default="mean", show_default=True)
@click.option("--against", type=FILE, default=None, help="Price file to compare with; warns of factors above two.")
@click.option("--relative", is_flag=True, help="Compare shares of the whole price, for prices that are no times.")
def profile(
    extractors: str,
    rows: str,
    out: Path | None,
    n_rows: int,
    clock: Any,
    statistic: str,
    against: Path | None,
    relative: bool,
) -> None:
    """Measure the extractors of a Python file or module on a sample of rows.

    EXTRACTORS is file.py or a module; all that it declares with @extractor are measured. ROWS is a CSV or Parquet table
    or JSON lines (a row is a dict), a folder (a row is the bytes of a file), or file.py:function, called for the rows.
    """
    from miserly.costs import CostTable
    from miserly.runtime import profile as measure

    found = _extractors(extractors)
    sample = _sample(rows, n_rows)
    with bar("measuring") as update:
        measured = measure(found, _counted(sample, update))
    click.echo(f"{len(sample)} rows, milliseconds:\n{measured.table()}")
    costs = CostTable.from_profile(measured, clock=clock, statistic=statistic)
    if against is not None:
        for warning in measured.compare(CostTable.from_file(against), clock, statistic, relative):
            click.echo(f"Warning: {warning}", err=True)
    if out is not None:
        costs.to_toml(out)
        click.echo(f"Prices ({statistic} {clock} milliseconds) in {out}.")


def _counted(sample: list[Any], update: Any) -> Any:
    for done, row in enumerate(sample):
        update(done, len(sample))
        yield row


def _extractors(where: str) -> list[Extractor]:
    from miserly.runtime import Extractor

    found = [thing for thing in vars(load_module(where)).values() if isinstance(thing, Extractor)]
    if not found:
        raise ValueError(f"'{where}' declares no extractors. Put @miserly.extractor(...) before its functions.")
    return list(dict.fromkeys(found))


def _sample(where: str, n_rows: int) -> list[Any]:
    """The first rows of a table, or as many files of a folder, taken evenly from all of it."""
    from itertools import islice

    name, colon, function = where.rpartition(":")
    if colon and (name.endswith(".py") or not Path(where).exists()):
        return list(islice(getattr(load_module(name), function)(), n_rows))
    path = Path(where)
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file())
        return [p.read_bytes() for p in files[:: max(1, len(files) // n_rows)][:n_rows]]
    if not path.is_file():
        raise FileNotFoundError(f"There is no file or folder '{where}'. Give rows, or file.py:function.")
    return list(islice(_table(path), n_rows))


def _table(path: Path) -> Any:
    if path.suffix in (".jsonl", ".ndjson"):
        import json

        with path.open(encoding="utf-8") as file:
            yield from (json.loads(line) for line in file if line.strip())
        return
    from miserly.datasets import read_table

    table = read_table(path, None, None)
    for line in table.X:
        yield dict(zip(table.features, line.tolist()))
