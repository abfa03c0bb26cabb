"""`miserly demo`: from data with prices to a chosen model, a page and the next command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from miserly.cli.progress import bar

PATIENTS = (3000, 1500, 3000)
TRIAGE_TREES, TRIAGE_POINTS = 60, 10
QUERIES = (700, 300, 300)
GRID = (0.0, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3)
LOSS = 0.01
COMPILES = "the first run also compiles, which takes half a minute."


@click.command()
@click.argument("what", type=click.Choice(["triage", "search"]), default="triage")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("demo"), show_default=True)
@click.option("--n-jobs", type=int, default=None, help="Threads; all cores unless given.")
def demo(what: str, out: Path, n_jobs: int | None) -> None:
    """Learn on built-in data: which patient needs which test (triage), or which page to show first (search).

    Writes a plan, a picture and a page for a browser, and prints the next commands.
    """
    out.mkdir(parents=True, exist_ok=True)
    (_triage if what == "triage" else _search)(out, n_jobs)


def _triage(out: Path, n_jobs: int | None) -> None:
    """Patients of a thyroid clinic: generated rows, published prices."""
    from miserly.datasets import triage_like
    from miserly.estimators import GreedyMiserClassifier
    from miserly.frontiers import frontier
    from miserly.report import LabelledRows, protocol

    click.echo("Patients of a thyroid clinic (generated; the prices of the tests are published ones, in CAD).")
    train, validation, test = (triage_like(n, seed) for seed, n in enumerate(PATIENTS))
    everything = train.costs.price(train.costs.features)
    click.echo(f"{len(train.y)} patients to learn from; all tests together cost {everything:g} CAD; {COMPILES}")
    model = GreedyMiserClassifier(train.costs, n_estimators=TRIAGE_TREES, charge="path", n_jobs=n_jobs)
    grid = [0.0, *model.suggest_grid(train.y, TRIAGE_POINTS)]
    with bar("models") as progress:
        front = frontier(
            model,
            train=(train.X, train.y),
            validation=(validation.X, validation.y),
            test=(test.X, test.y),
            grid={"tradeoff": grid},
            metric="accuracy",
            name="Greedy Miser",
            progress=progress,
        )
    chosen = _finish(front, validation, out, "Which patient needs which test?")
    found = protocol(chosen.model.plan_, LabelledRows(validation.X, validation.y))
    (out / "protocol.md").write_text(found.markdown(), encoding="utf-8")
    click.echo(f"{found.text()}\n")
    _next_commands(out, "the protocol above is in protocol.md")


def _search(out: Path, n_jobs: int | None) -> None:
    """Web pages with 519 priced features."""
    from miserly.datasets import yahoo_like
    from miserly.estimators import GreedyMiserRegressor
    from miserly.frontiers import frontier

    click.echo("Documents of web queries (generated): 519 features that cost 1 to 200 tree evaluations each.")
    train, validation, test = (yahoo_like(n, seed) for seed, n in enumerate(QUERIES))
    click.echo(f"{len(train.y)} rows to learn from; {COMPILES}")
    model = GreedyMiserRegressor(costs=train.costs, n_estimators=300, n_jobs=n_jobs)
    with bar("models") as progress:
        front = frontier(
            model,
            train=(train.X, train.y, train.qid),
            validation=(validation.X, validation.y, validation.qid),
            test=(test.X, test.y, test.qid),
            grid={"tradeoff": GRID},
            metric="ndcg@5",
            name="Greedy Miser",
            progress=progress,
        )
    _finish(front, validation, out, "Ranking web pages: what a budget buys")
    _next_commands(out, "the page shows all models")


def _finish(front: Any, validation: Any, out: Path, title: str) -> Any:
    """Choose the cheapest model within 1 % of the cost-blind one, write everything, print the table and the verdict."""
    from miserly.report import save_run, write_report

    click.echo(front.table())
    blind = front.points[0]
    chosen = front.choose_point(quality=blind.validation.quality * (1 - LOSS))
    chosen.model.plan_.save(out / "demo.plan")
    front.plot(out / "frontier.png", chosen=chosen, blind=blind, on="test")
    rows = (validation.X, validation.y) if validation.qid is None else (validation.X, validation.y, validation.qid)
    run = save_run(front, rows, out, chosen)
    with bar("models on the page") as progress:
        write_report([run], out / "report.html", title, progress)
    full, cheap = blind.test.cost["mean"], chosen.test.cost["mean"]
    name = front.metric.name
    click.echo(
        f"\nOn test data the chosen model has {name} {chosen.test.quality:.4f} for {cheap:.4g} {front.unit}; "
        f"the cost-blind model has {blind.test.quality:.4f} for {full:.4g}. It is {full / cheap:.1f} times cheaper.\n"
    )
    return chosen


def _next_commands(out: Path, note: str) -> None:
    click.echo(f"Open {out}/report.html in a browser and move the budget; {note}. Next:")
    click.echo(f"  miserly explain {out}/demo.plan       # what the chosen plan buys, in which order")
    click.echo(f"  miserly serve {out}/demo.plan         # answer requests over HTTP")
    click.echo("  miserly init your.csv --label COLUMN  # your own table: proposes its prices")
