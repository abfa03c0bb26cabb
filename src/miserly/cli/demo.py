"""`miserly demo`: from data and prices to a chosen, saved, explained model, in one go."""

from __future__ import annotations

from pathlib import Path

import click

from miserly.cli.progress import bar

QUERIES = (700, 300, 300)
GRID = (0.0, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3)
LOSS = 0.01


@click.command()
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("demo"), show_default=True)
@click.option("--n-jobs", type=int, default=None, help="Threads; all cores unless given.")
def demo(out: Path, n_jobs: int | None) -> None:
    """Rank web pages with 519 priced features: sweep, choose, save, explain. Writes a plan, a picture and a page."""
    from miserly.datasets import yahoo_like
    from miserly.estimators import GreedyMiserRegressor
    from miserly.frontiers import frontier
    from miserly.report import save_run, write_report

    click.echo("Data: 519 features that cost 1 to 200 tree evaluations each, graded documents of web queries.")
    train, validation, test = (yahoo_like(n, seed) for seed, n in enumerate(QUERIES))
    click.echo(f"{len(train.y)} rows to learn from; the first run also compiles, which takes half a minute.")
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
    click.echo(front.table())

    blind = front.points[0]
    chosen = front.choose_point(quality=blind.validation.quality * (1 - LOSS))
    out.mkdir(parents=True, exist_ok=True)
    chosen.model.plan_.save(out / "demo.plan")
    front.plot(out / "frontier.png", chosen=chosen, blind=blind, on="test")
    assert blind.test is not None
    assert chosen.test is not None
    full, cheap = blind.test.cost["mean"], chosen.test.cost["mean"]
    verdict = (
        f"{full / cheap:.1f} times cheaper than the cost-blind model: {cheap:.0f} instead of {full:.0f} {front.unit} "
        f"a document, at NDCG@5 {chosen.test.quality:.4f} instead of {blind.test.quality:.4f} on test data "
        f"({blind.test.quality - chosen.test.quality:.4f} lost; tradeoff={chosen.params['tradeoff']:g})."
    )
    run = save_run(front, (validation.X, validation.y, validation.qid), out, chosen)
    page = out / "report.html"
    with bar("models on the page") as progress:
        write_report([run], page, "Ranking web pages: what a budget buys", progress)
    click.echo(f"\n{verdict}\n")
    click.echo(f"The plan is {out}/demo.plan: ask `miserly explain {out}/demo.plan`.")
    click.echo(f"The page is {page}: open it in a browser and move the budget.")
