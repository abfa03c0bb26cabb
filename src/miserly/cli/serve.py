"""`miserly serve`: a plan behind HTTP."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import click

from miserly.cli.modules import load_name
from miserly.cli.options import FILE, config_option

NAME = "MODULE:NAME"


@click.command(context_settings={"auto_envvar_prefix": "MISERLY_SERVE"})
@click.argument("plan", type=FILE)
@click.option("--extractors", metavar=NAME, default=None, help="A list of extractors, or a function that gives one.")
@click.option("--read-row", metavar=NAME, default=None, help="A function from a row's JSON to what extractors take.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0: one that is free.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes on one socket.")
@click.option("--budget", type=click.FloatRange(0), default=None, help="For requests that do not say.")
@click.option("--deadline-ms", type=click.FloatRange(0), default=None, help="For requests that do not say.")
@click.option("--max-in-flight", type=click.IntRange(1), default=256, show_default=True, help="The rest get a 503.")
@click.option("--max-documents", type=click.IntRange(1), default=1000, show_default=True, help="In one list.")
@click.option("--max-body", type=click.IntRange(1), default=1 << 20, show_default=True, help="Bytes of a request.")
@click.option("--max-connections", type=click.IntRange(1), default=4096, show_default=True, help="The rest are closed.")
@click.option(
    "--body-seconds", type=click.FloatRange(0.1), default=10.0, show_default=True, help="For a whole request."
)
@click.option("--stop-within", type=click.FloatRange(1), default=20.0, show_default=True, help="Seconds after SIGTERM.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="A name for the Host header besides localhost.")
@click.option("--canary", type=FILE, default=None, help="JSON lines: rows with values that a new plan must give.")
@click.option("--route", multiple=True, metavar="FILE:PERCENT", help="A challenger, and its share of requests.")
@click.option("--shadow", multiple=True, type=FILE, help="A plan that runs beside and is only compared.")
@click.option("--spend-cap", multiple=True, metavar="50USD/day", help="The most that calls may cost in a period.")
@click.option("--spend-store", metavar="FILE|URL", default=None, help="Where it is counted. [default: PLAN.spending]")
@click.option("--access-log", metavar="FILE", default=None, help="JSON lines, one for each request; - is stdout.")
@click.option(
    "--traces-per-second", type=click.FloatRange(0), default=100.0, show_default=True, help="At most; inf: all."
)
@config_option
def serve(plan: Path, extractors: str | None, read_row: str | None, config: Path | None, **options: Any) -> None:
    """Answer HTTP requests by PLAN, calling your extractors as it asks for them.

    NAME stands in a module or in a file (file.py:name). Without extractors, requests bring their features. A new plan
    file at the same place takes over without a stop (SIGHUP: at once); SIGTERM ends it when all is answered.

    Every option can also stand in the file --config, or in the environment: MISERLY_SERVE_PORT is --port. The command
    line counts first, then the environment, then the file.
    """
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the server is there to act on it
    try:
        from miserly.serve import serve as run
    except ImportError as error:
        raise ImportError(f"The server needs more: pip install 'miserly[serve]' ({error}).") from None
    run(plan, _extractors(extractors), read_row=load_name(read_row) if read_row else None, **options)


def _extractors(where: str | None) -> Any:
    if where is None:
        return None
    found = load_name(where)
    return found() if callable(found) else found
