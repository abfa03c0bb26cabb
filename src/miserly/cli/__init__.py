"""The command line: a thin shell, one file per command. Heavy packages are loaded inside the commands."""

from miserly.cli.main import main

__all__ = ["main"]
