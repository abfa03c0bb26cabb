"""`miserly frontier`: the whole trade-off, a picture of it, and a chosen plan."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click

from miserly.cli.options import FILE, json_option, make_model, print_json, task_of, training, with_schema
from miserly.cli.progress import bar
from miserly.cli.tables import read_inputs, show_notes, table_arguments, table_options
from miserly.files import locked, write_whole

UNFINISHED = "unfinished"
FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.argument("train", type=FILE)
@click.argument("validation", type=FILE, required=False)
@click.option("--test", type=FILE, default=None, help="Data that no choice is made on.")
@click.option("--metric", default=None, help="accuracy, mse, auc, logloss, ndcg@5, precision@5, …")
@click.option("--grid", default=None, metavar="LOW:HIGH:N", help="Values of the cost axis (λ), spaced by a factor.")
@click.option("--refine", type=int, default=0, help="This many more values, where those leave most between them.")
@click.option("--budget", type=float, default=None, help="Choose the best model with this mean cost.")
@click.option("--quality", type=float, default=None, help="Choose the cheapest model that reaches this.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Models at once, a process each; -1: all cores.")
@click.option("--store", type=FOLDER, default=None, help="Keeps finished models: a killed sweep goes on where it was.")
@click.option("--out", type=FOLDER, default=Path("frontier"), show_default=True)
@click.option("--split", type=float, default=0.25, show_default=True, help="Share of validation rows.")
@table_options
@training
@json_option
def frontier(
    train: Path,
    validation: Path | None,
    test: Path | None,
    metric: str | None,
    grid: str | None,
    refine: int,
    budget: float | None,
    quality: float | None,
    jobs: int,
    store: Path | None,
    out: Path,
    split: float,
    costs: Path,
    config: Path | None,
    method: str,
    task: str,
    as_json: bool,
    **params: Any,
) -> None:
    """Fit a model per point of a method's cost axis on TRAIN, measure each on VALIDATION (or on rows that
    are split off TRAIN); writes a table, a picture and every plan."""
    if budget is not None and quality is not None:
        raise click.UsageError("Choose by --budget or by --quality, not by both.")
    if store is not None and store.resolve() == out.resolve():
        raise click.UsageError("--store and --out are two folders.")
    prices, *tables = read_inputs(costs, train, (validation, test), table_arguments(params, costs))
    show_notes(train, tables[0], quiet=as_json)
    if validation is None:
        tables[:2] = _split(tables[0], split, task, as_json, params.get("random_state") or 0)
    data = [t and ((t.X, t.y) if t.qid is None else (t.X, t.y, t.qid)) for t in tables]
    model = make_model(tables[0], prices, task, method, **params)
    values = _values(grid, model.cost_axis)
    out.mkdir(parents=True, exist_ok=True)
    chosen = None
    with locked(out, f"Another sweep is being written to '{out}'. Wait until it has ended, or give another --out."):
        how = {"grid": values, "metric": metric, "n_jobs": jobs, "store": store, "refine": refine}
        front, failed = _sweep(model, data, out / UNFINISHED, as_json, **how)
        if failed is None and (budget is not None or quality is not None):
            chosen, failed = _choose(front, budget, quality)
        for point in front.points:
            with_schema(point.model, tables[0])
        _write(front, data[1], out, chosen)
    if not as_json:
        click.echo(front.table())
        click.echo(f"Wrote {out}/frontier.txt, frontier.png and {len(front.points)} plans; see `miserly report {out}`.")
    if failed is not None:
        raise failed
    if as_json:
        print_json({"points": front.frame(), "complete": front.complete, "chosen": chosen and dict(chosen.params)})
        return
    if chosen is not None:
        click.echo(f"Chose {', '.join(f'{k}={v:.3g}' for k, v in chosen.params.items())}: {out}/chosen.plan")
    if not front.complete:
        raise click.Abort


def _split(table: Any, share: float, task: str, quiet: bool, seed: int) -> tuple[Any, Any]:
    """Training and validation rows of one table, and how they were chosen."""
    from miserly.datasets import split_table

    train, held_out = split_table(table, share, seed, stratify=task_of(table, task) == "classification")
    if not quiet:
        how = "by time" if table.times is not None else "by group" if table.groups is not None else "at random"
        how = "by query" if table.qid is not None and how == "at random" else how
        click.echo(f"{len(train.X)} training rows, {len(held_out.X)} validation rows, split {how}.", err=True)
    return train, held_out


def _sweep(model: Any, data: list[Any], unfinished: Path, quiet: bool, **how: Any) -> tuple[Any, Exception | None]:
    """The frontier, or as much of it as there is and why; finished plans are kept till the run is written."""
    from miserly.frontiers import SweepError, frontier

    with bar("models", quiet=quiet) as show:

        def progress(done: int, of: int, point: Any) -> None:
            if point is not None:
                unfinished.mkdir(exist_ok=True)
                point.model.plan_.save(unfinished / f"{done - 1:03d}.plan")
            show(done, of)

        try:
            return frontier(model, data[0], data[1], data[2], progress=progress, **how), None
        except SweepError as error:
            if not error.frontier.points:
                raise
            return error.frontier, error


def _choose(front: Any, budget: float | None, quality: float | None) -> tuple[Any, Exception | None]:
    """The point for a wish, or why there is none: the run is written all the same."""
    try:
        return front.choose_point(budget, quality), None
    except ValueError as error:
        return None, error


def _values(grid: str | None, axis: str) -> Any:
    import numpy as np

    if grid is None:
        return None
    try:
        low, high, n = grid.split(":")
        return {axis: np.geomspace(float(low), float(high), int(n))}
    except ValueError:
        raise click.BadParameter(f"--grid is LOW:HIGH:N, as in 1e-5:1e-1:8, got {grid!r}.") from None


def _write(front: Any, validation: Any, out: Path, chosen: Any = None) -> None:
    """The table, the picture, and the run, with plans in the order of the table (till then: in that of finishing)."""
    from miserly.report import save_run

    save_run(front, validation, out, chosen)
    shutil.rmtree(out / UNFINISHED, ignore_errors=True)
    if chosen is not None:
        chosen.model.plan_.save(out / "chosen.plan")
    write_whole(out / "frontier.txt", front.table() + "\n")
    front.plot(out / "frontier.png", chosen=chosen)
