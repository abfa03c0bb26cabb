"""`miserly demo`: from data with prices to a chosen model, a page and the next command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from miserly.cli.portfolio import fit_portfolio
from miserly.cli.progress import bar

PATIENTS = (3000, 1500, 3000)
QUERIES = (700, 300, 300)
SECONDS = 20  # for the portfolio: the whole demo stays under a minute on two cores
LOSS = 0.01
COMPILES = "the first run also compiles, which takes half a minute."


@click.command()
@click.argument("what", type=click.Choice(["triage", "search"]), default="triage")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("demo"), show_default=True)
def demo(what: str, out: Path) -> None:
    """Learn on built-in data: which patient needs which test (triage), or which page to show first (search).

    Writes a plan, a menu of all models, a picture and a page for a browser, and prints the next commands.
    """
    out.mkdir(parents=True, exist_ok=True)
    (_triage if what == "triage" else _search)(out)


def _triage(out: Path) -> None:
    """Patients of a thyroid clinic: generated rows, published prices."""
    from miserly.auto import AutoMiserClassifier
    from miserly.datasets import triage_like
    from miserly.report import LabelledRows, protocol

    click.echo("Patients of a thyroid clinic (generated; the prices of the tests are published ones, in CAD).")
    train, validation, test = (triage_like(n, seed) for seed, n in enumerate(PATIENTS))
    everything = train.costs.price(train.costs.features)
    click.echo(f"{len(train.y)} patients to learn from; all tests together cost {everything:g} CAD; {COMPILES}")
    model = AutoMiserClassifier(train.costs, time_limit=SECONDS, metric="accuracy")
    front = fit_portfolio(model, [(part.X, part.y) for part in (train, validation, test)], quiet=False)
    chosen = _finish(front, (validation.X, validation.y), out, "Which patient needs which test?")
    found = protocol(chosen.model.plan_, LabelledRows(validation.X, validation.y))
    (out / "protocol.md").write_text(found.markdown(), encoding="utf-8")
    click.echo(f"{found.text()}\n")
    _next_commands(out, "the protocol above is in protocol.md")


def _search(out: Path) -> None:
    """Web pages with 519 priced features."""
    from miserly.auto import AutoMiserRanker
    from miserly.datasets import yahoo_like

    click.echo("Documents of web queries (generated): 519 features that cost 1 to 200 tree evaluations each.")
    train, validation, test = (yahoo_like(n, seed) for seed, n in enumerate(QUERIES))
    click.echo(f"{len(train.y)} rows to learn from; {COMPILES}")
    model = AutoMiserRanker(train.costs, time_limit=SECONDS)
    front = fit_portfolio(model, [(part.X, part.y, part.qid) for part in (train, validation, test)], quiet=False)
    _finish(front, (validation.X, validation.y, validation.qid), out, "Ranking web pages: what a budget buys")
    _next_commands(out, "the page shows all models")


def _finish(front: Any, validation: tuple[Any, ...], out: Path, title: str) -> Any:
    """Choose the cheapest model within 1 % of the best, write everything, print the table and the verdict."""
    from miserly.report import save_run, write_report

    click.echo(front.table())
    best = front.pareto()[-1]
    chosen = front.choose_point(quality=best.validation.quality * (1 - LOSS))
    chosen.model.plan_.save(out / "demo.plan")
    front.menu().save(out / "demo.menu")
    front.plot(out / "frontier.png", chosen=chosen, on="test")
    run = save_run(front, validation, out, chosen)
    with bar("models on the page") as progress:
        write_report([run], out / "report.html", title, progress)
    full, cheap = best.test.cost["mean"], chosen.test.cost["mean"]
    name = front.metric.name
    saved = f"It is {full / cheap:.1f} times cheaper." if cheap > 0 else "It is free."
    click.echo(
        f"\nOn test data the chosen model has {name} {chosen.test.quality:.4f} for {cheap:.4g} {front.unit}; "
        f"the best model has {best.test.quality:.4f} for {full:.4g}. {saved}\n"
    )
    return chosen


def _next_commands(out: Path, note: str) -> None:
    click.echo(f"Open {out}/report.html in a browser and move the budget; {note}. Next:")
    click.echo(f"  miserly explain {out}/demo.plan       # what the chosen plan buys, in which order")
    click.echo(f"  miserly serve {out}/demo.menu         # answer requests over HTTP, each within its own budget")
    click.echo("  miserly init your.csv --label COLUMN  # your own table: proposes its prices")
