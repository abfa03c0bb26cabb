"""`miserly import`: the model file of another library as a plan."""

from __future__ import annotations

from pathlib import Path

import click

from miserly.cli.options import FILE, OUT_FILE, json_option, print_json


@click.command("import")
@click.argument("model", type=FILE)
@click.option("--costs", type=FILE, required=True, help="Prices: a TOML or CSV file, as for fit.")
@click.option("-o", "--out", type=OUT_FILE, default=Path("model.plan"), show_default=True)
@click.option(
    "--charge",
    type=click.Choice(["path", "learner"]),
    default="path",
    show_default=True,
    help="A row pays for the splits that it meets, or for all that a tree may look at.",
)
@click.option(
    "--lazy",
    type=click.Choice(["class", "order"]),
    help="Stop buying once the class of a row, or the order of the first documents of a query, is certain.",
)
@click.option(
    "--top", type=click.IntRange(1), default=10, show_default=True, help="How many documents --lazy order keeps."
)
@json_option
def import_model(model: Path, costs: Path, out: Path, charge: str, lazy: str | None, top: int, as_json: bool) -> None:
    """Save MODEL (LightGBM text, XGBoost JSON or UBJ, CatBoost JSON, ONNX) as a plan that predicts the same."""
    from miserly.boosting import import_plan
    from miserly.costs import CostTable

    plan = import_plan(model, CostTable.from_file(costs), charge=charge)  # type: ignore[arg-type]
    plan = plan if lazy is None else plan.lazy(lazy, top)
    plan.save(out)
    if as_json:
        used = [plan.costs.features[f] for f in plan.used_features]
        print_json({"plan": str(out), "trees": len(plan.dictionary), "features": used, "unit": plan.costs.unit})
    else:
        click.echo(plan.summary())
        click.echo(f"Saved {out}. Next: miserly predict {out} ROWS, or miserly serve {out}.")
