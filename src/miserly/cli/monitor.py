"""`miserly monitor`: whether a plan in use does what was promised."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from miserly.cli.options import FILE, json_option, load_model, print_json
from miserly.cli.tables import show_notes, table_options

DRIFTED = 3  # the exit code for alerts; 1 and 2 are mistakes
LOGS = (".jsonl", ".ndjson", ".log")


@click.command()
@click.argument("plan", type=FILE)
@click.argument("records", type=FILE)
@click.option("--outcomes", type=FILE, default=None, help="CSV with request_id and outcome, for a log.")
@click.option("--budget", type=float, default=None, help="Most that a row may cost, for a table.")
@table_options
@json_option
def monitor(
    plan: Path, records: Path, outcomes: Path | None, budget: float | None, as_json: bool, **options: Any
) -> None:
    """Compare RECORDS with what PLAN, or a menu, was made for and has promised.

    RECORDS is the access log of `miserly serve` (.jsonl, .ndjson, .log), or a table of rows with their features and,
    in the label's column, outcomes. Says what drifted. The exit code is 0 if nothing did, 3 if something did, 1 for a
    mistake.
    """
    from miserly.runtime import compare_log, compare_rows

    model = load_model(plan)
    if records.suffix in LOGS:
        found = compare_log(model, _lines(records), _outcomes(outcomes))
    elif outcomes is not None:
        raise click.UsageError("--outcomes belongs to a log; a table has them in the label's column.")
    else:
        from miserly.cli.predict import rows_of

        rows, _ = rows_of(model, records, options, with_label=True)
        show_notes(records, rows, quiet=as_json)
        found = compare_rows(model, rows.X, rows.y, rows.qid, budget)
    if as_json:
        print_json([asdict(finding) for finding in found])
    else:
        for finding in found:
            click.echo(f"{'DRIFT' if finding.is_drift else 'ok':<6}{finding.text}")
    if any(finding.is_drift for finding in found):
        raise SystemExit(DRIFTED)


def _lines(path: Path) -> list[dict[str, Any]]:
    lines = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"'{path}', line {number}: {error}. Each line is a JSON object.") from None
        if not isinstance(line, dict):
            raise ValueError(f"'{path}', line {number}: expected a JSON object, got {type(line).__name__}.")
        lines.append(line)
    return lines


def _outcomes(path: Path | None) -> dict[str, Any]:
    """What came true, by request id."""
    if path is None:
        return {}
    import csv

    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if not {"request_id", "outcome"} <= set(reader.fieldnames or ()):
            raise ValueError(f"'{path}' has no columns 'request_id' and 'outcome'. Name them so in the first line.")
        return {row["request_id"]: row["outcome"] for row in reader}
