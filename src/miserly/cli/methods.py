"""`miserly methods`: what `--method` takes."""

from __future__ import annotations

import click

from miserly.cli.options import json_option, print_json
from miserly.cli.registry import METHODS


@click.command()
@json_option
def methods(as_json: bool) -> None:
    """List the methods that --method of `fit` and `frontier` takes, with the tasks that each can do."""
    if as_json:
        print_json({name: {"about": m.about, "tasks": list(m.classes)} for name, m in METHODS.items()})
        return
    width = max(map(len, METHODS))
    for name, method in METHODS.items():
        click.echo(f"{name:<{width}}  {method.about} ({', '.join(method.classes)})")
