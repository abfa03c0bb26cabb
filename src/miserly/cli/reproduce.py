"""`miserly reproduce`: the figures and tables of the papers, and whether what they say is seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Every figure and table.")
@click.option("--list", "listed", is_flag=True, help="Name them.")
@click.option("--data", type=FOLDER, default=None, help="Your copies of the papers' data; else MISERLY_DATA.")
@click.option("--out", type=FOLDER, default=Path("reproduction"), show_default=True)
@click.option("--quick", is_flag=True, help="Small sizes: minutes instead of hours.")
@click.option("--real", is_flag=True, help="Measured data only, and the papers' synthetic sets: no stand-in is drawn.")
@click.option("--as-published", is_flag=True, help="Every method with the paper's own settings, where we have others.")
def reproduce(
    name: str | None,
    everything: bool,
    listed: bool,
    data: Path | None,
    out: Path,
    quick: bool,
    real: bool,
    as_published: bool,
) -> None:
    """Draw figure NAME of a paper again: CSV, PNG, and a line *the paper says / we see* for each of its claims.

    Finished points are kept in OUT/points: a run that was stopped goes on where it was.
    """
    from miserly.cli.progress import status_line
    from miserly.experiments import PUBLISHED, STUDIES, Bench, claim_line, claims_table, perform, verdict_counts

    if listed or (name is None and not everything):
        for study in STUDIES.values():
            click.echo(f"{study.name:<16} {study.title}")
        return
    if name is not None and name not in STUDIES:
        raise click.UsageError(f"There is no figure {name!r}. They are: {', '.join(STUDIES)}.")
    chosen = list(STUDIES.values()) if name is None else [STUDIES[name]]
    found, began = {}, time.perf_counter()
    with status_line() as show:
        bench = Bench(data, out, quick, real=real, reverted=PUBLISHED if as_published else None)
        if real and not bench.ranking("plain", "small"):
            raise click.UsageError("--real wants mq2008 or yahoo_ltrc in the data folder: name it with --data.")
        for number, study in enumerate(chosen, start=1):
            head = f"{number} of {len(chosen)}: {study.title}"
            bench.progress = partial(_show, show, head)
            found[study.name] = perform(study, bench)
            click.echo(f"{study.title} ({time.perf_counter() - began:.0f} s)")
            for claim in found[study.name].claims:
                click.echo(f"  {claim_line(claim)}")
    (out / "claims.md").write_text(claims_table(found) + "\n", encoding="utf-8")
    claims = [claim for outcome in found.values() for claim in outcome.claims]
    measured = [claim for claim in claims if claim.is_real]
    drawn = [claim for claim in claims if not claim.is_real]
    click.echo(
        f"{len(measured)} claims on real or synthetic data of the papers: {verdict_counts(measured)}; "
        f"{len(drawn)} on stand-ins: {verdict_counts(drawn)}. Wrote {out}/."
    )


def _show(show: Callable[[str], None], head: str, what: str) -> None:
    show(f"{head} · {what}")
