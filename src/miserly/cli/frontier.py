"""`miserly frontier`: the whole trade-off, a picture of it, and a chosen plan."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from miserly.cli.mistakes import error_costs_option, error_matrix
from miserly.cli.options import FILE, json_option, make_model, print_json, task_of, training, with_schema
from miserly.cli.portfolio import fit_portfolio
from miserly.cli.progress import bar
from miserly.cli.tables import read_inputs, show_notes, table_arguments, table_options
from miserly.files import locked, write_whole

UNFINISHED, MENU, AUTO = "unfinished", "frontier.menu", "auto"
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
@error_costs_option
@click.option("--jobs", type=int, default=1, show_default=True, help="Models at once, a process each; -1: all cores.")
@click.option("--store", type=FOLDER, default=None, help="Keeps finished models: a killed sweep goes on where it was.")
@click.option("--out", type=FOLDER, default=Path("frontier"), show_default=True)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    default=60,
    show_default=True,
    help="Seconds, for auto.",
)
@click.option("--split", type=float, default=0.25, show_default=True, help="Share of validation rows.")
@table_options
@training(AUTO)
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
    error_costs: dict[tuple[str, str], float] | None,
    jobs: int,
    store: Path | None,
    out: Path,
    split: float,
    time_limit: float,
    costs: Path,
    config: Path | None,
    method: str,
    task: str,
    as_json: bool,
    **params: Any,
) -> None:
    """Find the best models for every budget on TRAIN; writes a table, a picture, every plan and a menu of all.

    By default a portfolio is searched for --time-limit seconds (method auto). With --method NAME one method is swept
    over its cost axis instead. Quality is measured on VALIDATION, or on rows that are split off TRAIN.

    --time-limit counts from when the table is read and everything is compiled (once, about half a minute) to when no
    new model is begun. The model at work, measuring and the picture come on top. Where time is short, fewer sets of
    features get a model, stops are learned at fewer prices, and active models are left out.

    With --error-costs the chosen model has the least total of tests and mistakes (within --budget, if it is given), and
    it and the menu predict the class with the least expected cost.
    """
    if budget is not None and quality is not None:
        raise click.UsageError("Choose by --budget or by --quality, not by both.")
    if error_costs is not None and quality is not None:
        raise click.UsageError("--error-costs say what a mistake costs: give no --quality to reach beside them.")
    if store is not None and store.resolve() == out.resolve():
        raise click.UsageError("--store and --out are two folders.")
    arguments = table_arguments(params, costs)
    if method == AUTO:
        _refuse_sweep_options({"grid": grid, "refine": refine or None, "store": store, **params}, jobs)
    prices, *tables = read_inputs(costs, train, (validation, test), arguments)
    show_notes(train, tables[0], quiet=as_json)
    if validation is None:
        tables[:2] = split_rows(tables[0], split, task, as_json, params.get("random_state") or 0)
    data = [t and ((t.X, t.y) if t.qid is None else (t.X, t.y, t.qid)) for t in tables]
    if method == AUTO:
        given = {"time_limit": time_limit, "metric": metric, "random_state": params.get("random_state")}
        model = make_model(tables[0], prices, task, method, **given)
    else:
        model = make_model(tables[0], prices, task, method, **params)
    matrix = None if error_costs is None else error_matrix(error_costs, _classes(tables[0], task))
    how = {"grid": _values(grid, model.cost_axis), "metric": metric, "n_jobs": jobs, "store": store, "refine": refine}
    out.mkdir(parents=True, exist_ok=True)
    chosen = None
    with locked(out, f"Another sweep is being written to '{out}'. Wait until it has ended, or give another --out."):
        if method == AUTO:
            front, failed = fit_portfolio(model, data, as_json), None
        else:
            front, failed = _sweep(model, data, out / UNFINISHED, as_json, **how)
        judge = model.frontier_ if method == AUTO else front  # the portfolio judges on more rows than the page shows
        if failed is None and (budget is not None or quality is not None or matrix is not None):
            chosen, failed = _choose(judge, budget, quality, matrix)
        elif method == AUTO:
            chosen = judge.pareto()[-1]
        chosen = next((p for p, q in zip(front.points, judge.points) if q is chosen), None)
        for point in front.points:
            point.model.plan_ = _promising(with_schema(point.model, tables[0]).plan_, data[1])
        _write(front, data[1], out, chosen, tables[0].schema, matrix)
    _report(front, out, chosen, failed, as_json)


def _refuse_sweep_options(given: dict[str, Any], jobs: int) -> None:
    """Options of a single method say nothing to the portfolio, which chooses them itself."""
    names = [name for name, value in given.items() if value is not None and name != "random_state"]
    if names or jobs != 1:
        option = (names[0] if names else "jobs").replace("_", "-")
        raise click.UsageError(
            f"--{option} is for one method: add --method greedy-miser (`miserly methods` lists all)."
        )


def _report(front: Any, out: Path, chosen: Any, failed: Exception | None, as_json: bool) -> None:
    """What was found, and where it is."""
    if not as_json:
        click.echo(front.table())
        files = "frontier.txt, frontier.png" + (", frontier.menu" if (out / MENU).exists() else "")
        logged = any(point.validation.rows is not None for point in front.points)
        see = "" if logged else f"; see `miserly report {out}`"
        click.echo(f"Wrote {out}/{files} and {len(front.points)} plans{see}.")
        if logged:
            click.echo("Measured on the rows whose purchases were logged; effective_rows says how many they count for.")
    if failed is not None:
        raise failed
    if as_json:
        print_json({"points": front.records(), "complete": front.complete, "chosen": chosen and dict(chosen.params)})
        return
    if chosen is not None:
        params = ", ".join(f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in chosen.params.items())
        click.echo(f"Chose {params}: {out}/chosen.plan")
    if not front.complete:
        raise click.Abort


def split_rows(table: Any, share: float, task: str, quiet: bool, seed: int) -> tuple[Any, Any]:
    """Training and validation rows of one table, and how they were chosen."""
    from miserly.datasets import split_table

    train, held_out = split_table(table, share, seed, stratify=task_of(table, task) == "classification")
    if not quiet:
        how = "by time" if table.times is not None else "by group" if table.groups is not None else "at random"
        if how == "at random" and task_of(table, task) == "classification":
            how = "at random, stratified by the label"
        how = "by query" if table.qid is not None and how.startswith("at random") else how
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


def _choose(front: Any, budget: float | None, quality: float | None, error_costs: Any) -> tuple[Any, Exception | None]:
    """The point for a wish, or why there is none: the run is written all the same."""
    try:
        return front.choose_point(budget, quality, error_costs=error_costs), None
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


def _classes(table: Any, task: str) -> list[Any] | None:
    """The classes in the order of plans; None if numbers or lists are learned."""
    return sorted(set(table.y.tolist())) if task_of(table, task) == "classification" else None


def _promising(plan: Any, validation: Any) -> Any:
    """The plan with what it does on validation rows; where not all is logged, that promises nothing."""
    return plan if plan.costs.not_ordered else plan.with_promise(*validation)


def _write(front: Any, validation: Any, out: Path, chosen: Any, schema: Any, error_costs: Any) -> None:
    """The table, the picture, and the run, with plans in the order of the table (till then: in that of finishing)."""
    from miserly.report import save_run

    save_run(front, validation, out, chosen)
    shutil.rmtree(out / UNFINISHED, ignore_errors=True)
    if chosen is not None:
        plan = chosen.model.plan_
        if error_costs is not None:
            plan = _promising(plan.with_error_costs(error_costs), validation)
        plan.save(out / "chosen.plan")
    if front.offer is not None:
        menu = front.menu()
        plans = (replace(plan, schema=schema) for plan in menu.plans)
        if error_costs is not None:
            plans = (plan.with_error_costs(error_costs) for plan in plans)
        replace(menu, plans=tuple(plans)).save(out / MENU)
    write_whole(out / "frontier.txt", front.table() + "\n")
    front.plot(out / "frontier.png", chosen=chosen)
