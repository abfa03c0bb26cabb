"""`miserly next`: what to buy next for one row, from whatever is known of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from miserly.cli.options import FILE, json_option, load_model, print_json


@click.command("next")
@click.argument("plan", type=FILE)
@click.option("--known", multiple=True, metavar="FEATURE=VALUE", help="A known value; empty: missing. Repeatable.")
@click.option("--unavailable", multiple=True, metavar="NAME", help="What must not be bought. Repeatable.")
@click.option(
    "--owned", multiple=True, metavar="ACQUISITION", help="Bought already, beside what --known needs. Repeatable."
)
@click.option("--budget", type=click.FloatRange(0), default=None, help="What may still be paid.")
@click.option("--top", type=click.IntRange(1), default=5, show_default=True, help="Purchases to list.")
@json_option
def next_purchase(
    plan: Path,
    known: tuple[str, ...],
    unavailable: tuple[str, ...],
    owned: tuple[str, ...],
    budget: float | None,
    top: int,
    as_json: bool,
) -> None:
    """Predict one row from what is known of it, by PLAN or a menu, and say what is worth buying next.

    Values are written as in the table that the plan was trained on: words, dates, decimal marks. What a known value
    needs, such as a blood draw, is not charged again.
    """
    from miserly.runtime import advise

    values = dict(_pair(entry) for entry in known)
    advice = advise(load_model(plan), values, unavailable, budget, owned)
    unit = advice.plan.costs.unit
    if as_json:
        print_json(_plain(advice, unit))
        return
    outcome = "" if advice.plan.schema is None or advice.plan.schema.label is None else f"{advice.plan.schema.label} = "
    click.echo(f"Prediction: {outcome}{advice.value}{_chances(advice)}")
    click.echo(advice.why)
    for name in advice.unknown_words:
        click.echo(f"The plan has not seen {name} = {values[name]!r}: it counts as missing.")
    for candidate in advice.ranking[:top]:
        names = ", ".join(candidate.acquisitions)
        click.echo(f"  {names}: {candidate.price:g} {unit}, expected gain {candidate.gain:.3g}")


def _pair(entry: str) -> tuple[str, str | None]:
    name, equals, value = entry.partition("=")
    if not equals:
        raise click.BadParameter(f"--known is FEATURE=VALUE, as in age=61, got {entry!r}.")
    return name, value or None


def _chances(advice: Any) -> str:
    if advice.probabilities is None:
        return ""
    return f" (probability {max(advice.probabilities):.3g})"


def _plain(advice: Any, unit: str) -> dict[str, Any]:
    classes = advice.plan.classes
    chances = None if classes is None else dict(zip(map(str, classes), advice.probabilities))
    return {
        "value": advice.value,
        "probabilities": chances,
        "next": advice.next,
        "together": list(advice.together),
        "price": advice.price,
        "unit": unit,
        "expected_gain": advice.expected_gain,
        "stop": advice.stop,
        "why": advice.why,
        "unknown_words": list(advice.unknown_words),
        "ranking": [candidate._asdict() for candidate in advice.ranking],
    }
