"""`miserly compare`: several methods on the same rows, one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from miserly.cli.frontier import FOLDER, split_rows
from miserly.cli.options import FILE, json_option, make_model, print_json, task_of, with_schema
from miserly.cli.progress import waiting
from miserly.cli.registry import METHODS
from miserly.cli.tables import read_inputs, show_notes, table_arguments, table_options

DEFAULT = ("auto", "greedy-miser", "path-tree", "feature-subset", "stagewise")


@click.command()
@click.argument("train", type=FILE)
@click.argument("validation", type=FILE, required=False)
@click.option("--costs", required=True, type=FILE, help="Prices: .toml, or .csv with feature,cost[,group,group_cost].")
@click.option("--method", "methods", multiple=True, help="Repeatable; a usual choice unless given.")
@click.option("--metric", default=None, help="accuracy, mse, auc, logloss, ndcg@5, …")
@click.option("--time-limit", type=click.FloatRange(0, min_open=True), default=60, show_default=True, help="For auto.")
@click.option("--split", type=float, default=0.25, show_default=True, help="Share of validation rows.")
@click.option("--task", type=click.Choice(("auto", "regression", "classification", "ranking")), default="auto")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--cv", type=click.IntRange(2), help="Folds instead of one split: differences get intervals.")
@click.option("--out", type=FOLDER, default=Path("compare"), show_default=True, help="A run per method.")
@table_options
@json_option
def compare(
    train: Path,
    validation: Path | None,
    costs: Path,
    methods: tuple[str, ...],
    metric: str | None,
    time_limit: float,
    split: float,
    task: str,
    seed: int,
    cv: int | None,
    out: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Sweep several methods on TRAIN, measure each on the same validation rows, and print one table.

    The area is the mean quality over the logarithm of the budget, from the least to the greatest cost of all. Each
    method leaves a run in OUT: `miserly report OUT/*` compares them on a page.

    With --cv each method is swept on every fold, and differences from the best method have 95 % intervals. OUT gets
    comparison.html, .md and .tex.
    """
    from miserly.report import save_run

    prices, *tables = read_inputs(costs, train, (validation,), table_arguments(options, costs))
    show_notes(train, tables[0], quiet=as_json)
    if cv is not None:
        if validation is not None:
            raise click.UsageError("--cv divides TRAIN into folds: give no VALIDATION beside it.")
        _cross_validated(tables[0], prices, methods, metric, time_limit, task, seed, cv, out, as_json)
        return
    if validation is None:
        tables = [*split_rows(tables[0], split, task, as_json, seed)]
    data = [(t.X, t.y) if t.qid is None else (t.X, t.y, t.qid) for t in tables]
    task = task_of(tables[0], task)
    fronts = {}
    for name, model in _models(tables[0], prices, methods, time_limit, task).items():
        with waiting(name, quiet=as_json):
            fronts[name] = _swept(model, data, metric or DEFAULT_METRIC[task], seed)
        for point in fronts[name].points:
            with_schema(point.model, tables[0])
        save_run(fronts[name], data[1], out / name)
    rows = _rows(fronts)
    if as_json:
        print_json(rows)
        return
    first = next(iter(fronts.values()))
    click.echo(f"{'method':<16} {'area':>8} {'best ' + first.metric.name:>14} {'its cost':>10} {'cheapest':>10}")
    for row in rows:
        figures = f"{row['area']:>8.4f} {row['best']:>14.4f} {row['cost']:>10.4g} {row['cheapest']:>10.4g}"
        click.echo(f"{row['method']:<16} {figures}")
    click.echo(f"Runs in {out}/; `miserly report {' '.join(f'{out}/{name}' for name in fronts)}` draws them.")


def _models(table: Any, prices: Any, methods: tuple[str, ...], time_limit: float, task: str) -> dict[str, Any]:
    """The estimators of some methods, or of the usual ones."""
    chosen = methods or tuple(name for name in DEFAULT if task in METHODS[name].classes)
    limits = {name: {"time_limit": time_limit} if name == "auto" else {} for name in chosen}
    return {name: make_model(table, prices, task, name, **limits[name]) for name in chosen}


def _cross_validated(
    table: Any,
    prices: Any,
    methods: tuple[str, ...],
    metric: str | None,
    time_limit: float,
    task: str,
    seed: int,
    cv: int,
    out: Path,
    as_json: bool,
) -> None:
    """Compare on folds, print the table, and write it."""
    from miserly.frontiers import compare as compare_methods

    task = task_of(table, task)
    models = _models(table, prices, methods, time_limit, task)
    for model in models.values():
        if hasattr(model, "random_state"):
            model.set_params(random_state=seed)
    data = (table.X, table.y) if table.qid is None else (table.X, table.y, table.qid)
    with waiting(f"{len(models)} methods on {cv} folds", quiet=as_json):
        found = compare_methods(models, data, cv, metric or DEFAULT_METRIC[task], random_state=seed)
    out.mkdir(parents=True, exist_ok=True)
    for suffix in ("html", "md", "tex"):
        found.save(out / f"comparison.{suffix}")
    if as_json:
        print_json(found.records())
        return
    click.echo(found.text())
    click.echo(f"Written to {out / 'comparison.html'}, .md and .tex.")


DEFAULT_METRIC = {"classification": "accuracy", "regression": "mse", "ranking": "ndcg@5"}


def _swept(model: Any, data: list[Any], metric: str, seed: int) -> Any:
    """The frontier of one method, or of the portfolio."""
    from miserly.cli.portfolio import fit_portfolio
    from miserly.frontiers import frontier

    if hasattr(model, "random_state"):
        model.set_params(random_state=seed)
    if hasattr(model, "time_limit"):
        return fit_portfolio(model.set_params(metric=metric), [*data, None], quiet=True)
    return frontier(model, data[0], data[1], metric=metric, progress=lambda *_: None)


def _rows(fronts: dict[str, Any]) -> list[dict[str, Any]]:
    """One row per method, best area first."""
    costs = [point.validation.cost["mean"] for front in fronts.values() for point in front.points]
    low = min((cost for cost in costs if cost > 0), default=1.0)
    high = max(*costs, low * (1 + 1e-9))
    rows = []
    for name, front in fronts.items():
        best, cheapest = front.pareto()[-1], front.pareto()[0]
        rows.append(
            {
                "method": name,
                "area": front.area(low, high),
                "best": best.validation.quality,
                "cost": best.validation.cost["mean"],
                "cheapest": cheapest.validation.cost["mean"],
            }
        )
    greater = next(iter(fronts.values())).metric.greater_is_better
    return sorted(rows, key=lambda row: -row["area"] if greater else row["area"])
