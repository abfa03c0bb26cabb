"""The `miserly` command: what its subcommands are, and how mistakes end."""

from __future__ import annotations

import sys

import click

from miserly.cli.certify import certify
from miserly.cli.compare import compare
from miserly.cli.data import data
from miserly.cli.demo import demo
from miserly.cli.explain import explain
from miserly.cli.fit import fit
from miserly.cli.frontier import frontier
from miserly.cli.import_model import import_model
from miserly.cli.init import init
from miserly.cli.methods import methods
from miserly.cli.monitor import monitor
from miserly.cli.next import next_purchase
from miserly.cli.predict import predict
from miserly.cli.profile import profile
from miserly.cli.report import report
from miserly.cli.reproduce import reproduce
from miserly.cli.serve import serve
from miserly.cli.warmup import warmup


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="miserly")
def cli() -> None:
    """Machine learning under a test-time budget: predictors that know what their inputs cost."""


COMMANDS = (
    init,
    demo,
    data,
    methods,
    fit,
    frontier,
    compare,
    import_model,
    predict,
    next_purchase,
    explain,
    certify,
    report,
    profile,
    serve,
    monitor,
    reproduce,
    warmup,
)
for command in COMMANDS:
    cli.add_command(command)


def main() -> None:
    """Run a command: 0 done, 1 a mistake in the input, 2 in the command line, 130 interrupted."""
    try:
        cli.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        sys.exit(130)
    except (ValueError, OSError, KeyError, ImportError) as error:
        text = error.args[0] if isinstance(error, KeyError) and error.args else error
        click.echo(f"Error: {text}", err=True)
        sys.exit(1)
