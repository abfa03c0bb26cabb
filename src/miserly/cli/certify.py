"""`miserly certify`: a figure that holds on new rows, or how many rows that would take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from miserly.cli.options import FILE, OUT_FILE, json_option, load_model, print_json
from miserly.cli.predict import rows_of
from miserly.cli.tables import show_notes, table_options

FIGURES = click.Choice(("accuracy", "precision", "recall", "agreement"))
SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command()
@click.argument("plan", type=FILE)
@click.argument("table", type=FILE)
@click.option("--of", type=FIGURES, default="accuracy", show_default=True, help="The figure.")
@click.option("--target", type=SHARE, default=0.95, show_default=True, help="Its least value on new rows.")
@click.option("--delta", type=SHARE, default=0.05, show_default=True, help="The probability that it may be less.")
@click.option("--positive", default=None, metavar="CLASS", help="Of precision and recall; the second of two classes.")
@click.option("--budget", type=float, default=None, help="The cap under which a plan will run.")
@click.option("-o", "--out", type=OUT_FILE, required=True, help="Where to write the plan or the menu.")
@table_options
@json_option
def certify(
    plan: Path,
    table: Path,
    of: str,
    target: float,
    delta: float,
    positive: str | None,
    budget: float | None,
    out: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Set the thresholds of PLAN, or of a menu, so that a figure holds on new rows with probability 1 - delta.

    TABLE has calibration rows: a random sample of the rows to come, which PLAN was not fitted or chosen on. A target
    that cannot be certified is refused with the number of rows that would be needed.
    """
    from miserly.plan import Menu

    model = load_model(plan)
    rows, _ = rows_of(model, table, options, with_label=True)
    show_notes(table, rows, quiet=as_json)
    if isinstance(model, Menu) and budget is not None:
        raise click.UsageError("A menu is certified without a cap: leave --budget out, or certify one of its plans.")
    given = {"target": target, "of": of, "delta": delta, "positive": _class(model, positive)}
    safe = model.certified(rows.X, rows.y, **given, **({} if budget is None else {"budget": budget}))
    safe.save(out)
    plans = safe.plans if isinstance(safe, Menu) else (safe,)
    found = [one.certificate for one in plans if one.certificate is not None]
    if as_json:
        names = ("of", "target", "delta", "bound", "cost")
        print_json([{name: getattr(certificate, name) for name in names} for certificate in found])
        return
    for certificate in found:
        click.echo(f"{certificate.describe()}, mean cost {certificate.cost:.4g} {plans[0].costs.unit}")
    click.echo(f"Wrote {out}.")


def _class(model: Any, name: str | None) -> Any:
    """The class of a plan with this name; what is none is refused by the plan."""
    classes = (model.plans[0] if hasattr(model, "plans") else model).classes
    return next((c for c in (() if classes is None else classes) if str(c) == name), name)
