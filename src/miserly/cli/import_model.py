"""`miserly import`: the model file of another library as a plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from miserly.cli.options import FILE, OUT_FILE, json_option, print_json
from miserly.cli.tables import TableArguments, options_of_price_file


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
    plan = as_in_table(plan, options_of_price_file(costs))
    plan = plan if lazy is None else plan.lazy(lazy, top)
    plan.save(out)
    if as_json:
        used = [plan.costs.features[f] for f in plan.used_features]
        print_json({"plan": str(out), "trees": len(plan.dictionary), "features": used, "unit": plan.costs.unit})
    else:
        click.echo(plan.summary())
        asked = " --qid COLUMN" if plan.by_query and (plan.schema is None or plan.schema.qid is None) else ""
        click.echo(f"Saved {out}. Next: miserly predict {out} ROWS{asked}, or miserly serve {out}.")


def as_in_table(plan: Any, how: TableArguments) -> Any:
    """The plan with what the price file says about its table: label, identifier, queries, units, what is left out."""
    from miserly.schema import Schema

    roles = {role: how.roles[role] for role in ("label", "id", "qid")}
    if not any((*roles.values(), how.drop, how.units)):
        return plan
    schema = plan.schema or Schema.of_names(plan.costs.features)
    columns = tuple(replace(c, unit=how.units.get(c.name, c.unit)) for c in schema.columns)
    return replace(plan, schema=replace(schema, columns=columns, drop=how.drop, **roles))
