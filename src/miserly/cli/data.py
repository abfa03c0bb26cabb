"""`miserly data`: write one of the built-in data sets as files."""

from __future__ import annotations

from pathlib import Path

import click

HOSPITAL = "hospital"


@click.command()
@click.argument("name", required=False)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("."), help="Folder to write to.")
@click.option("-n", "n", type=click.IntRange(min=1), default=None, help="Rows, or queries where there are queries.")
@click.option("--seed", type=int, default=0, show_default=True)
def data(name: str | None, out: Path, n: int | None, seed: int) -> None:
    """Write train.csv, validation.csv, test.csv and costs.toml of data set NAME (without NAME: list them).

    hospital is a raw table instead, patients.csv: words, dates, identifiers, decimal commas, and no prices.
    """
    from miserly.datasets import NAMES, hospital_csv, load, write_csv
    from miserly.files import write_whole

    if name is None:
        click.echo("\n".join((*NAMES, HOSPITAL)))
        return
    if name == HOSPITAL:
        out.mkdir(parents=True, exist_ok=True)
        for number, file in enumerate(("patients.csv", "new.csv")):
            write_whole(out / file, hospital_csv(n or 800, seed + number))
        click.echo(
            f"{n or 800} patients in patients.csv, as a hospital would write them, and others in new.csv, in {out}"
        )
        return
    whole = load(name, n, seed)
    out.mkdir(parents=True, exist_ok=True)
    for part, rows in zip(("train", "validation", "test"), whole.split(0.6, 0.2, 0.2, seed=seed)):
        header, columns = [*rows.costs.features, "label"], [*rows.X.T, rows.y]
        if rows.qid is not None:
            header, columns = ["qid", *header], [rows.qid, *columns]
        write_csv(out / f"{part}.csv", header, columns)
    whole.costs.to_toml(out / "costs.toml")
    click.echo(
        f"{len(whole.y)} rows, {whole.X.shape[1]} features: train, validation, test .csv and costs.toml in {out}"
    )
