"""`miserly fit`: one model from a table and prices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from miserly.cli.options import FILE, OUT_FILE, json_option, make_model, print_json, takes, training, with_schema
from miserly.cli.progress import waiting
from miserly.cli.tables import read_inputs, show_notes, table_arguments, table_options


@click.command()
@click.argument("train", type=FILE)
@click.option("--validation", type=FILE, default=None, help="Data to watch; stops early with --patience.")
@click.option("--patience", type=int, default=None, help="Stop when validation has not improved for this many rounds.")
@click.option("--tradeoff", type=float, default=None, help="λ: mean loss worth one unit of cost.")
@click.option("-o", "--out", type=OUT_FILE, default=Path("model.plan"), show_default=True)
@table_options
@training("greedy-miser")
@json_option
def fit(
    train: Path,
    validation: Path | None,
    patience: int | None,
    tradeoff: float | None,
    out: Path,
    costs: Path,
    config: Path | None,
    method: str,
    task: str,
    as_json: bool,
    **params: Any,
) -> None:
    """Fit one model on the table TRAIN (CSV, Parquet, Excel or LETOR) and save its plan."""
    if patience is not None and validation is None:
        raise click.UsageError("--patience stops on validation data: give --validation FILE.")
    prices, table, watched = read_inputs(costs, train, (validation,), table_arguments(params, costs))
    show_notes(train, table, quiet=as_json)
    model = make_model(table, prices, task, method, tradeoff=tradeoff, n_iter_no_change=patience, **params)
    extra: dict[str, Any] = {}
    if takes(model.fit, "qid") and table.qid is not None:
        extra["qid"] = table.qid
    if watched is not None:
        if not takes(model.fit, "eval_set"):
            raise click.UsageError(f"{method} does not watch validation rows while it learns. Leave --validation out.")
        extra["eval_set"] = (watched.X, watched.y, watched.qid)[: 3 if "qid" in extra else 2]
    with waiting("fitting", quiet=as_json):
        model.fit(table.X, table.y, **extra)
    plan = with_schema(model, table).plan_
    if watched is not None and not plan.costs.not_ordered:
        plan = plan.with_promise(watched.X, watched.y, watched.qid)
    plan.save(out)
    summary = {
        "plan": str(out),
        "rounds": getattr(model, "n_iter_", None),
        "train_loss": model.train_loss_[-1] if getattr(model, "train_loss_", None) else None,
        "cost_per_row": float(plan.predict_cost(table.X, table.qid).mean()),
        "unit": model.plan_.costs.unit,
    }
    if as_json:
        print_json(summary)
    else:
        click.echo(model.plan_.describe())
        click.echo(f"Mean cost {summary['cost_per_row']:g} {summary['unit']} a row. Saved {out}.")
