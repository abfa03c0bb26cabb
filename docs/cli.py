"""Prints the page of the command line from the commands themselves: `make docs` writes it, a test compares it."""

import click

from miserly.cli.main import cli


def page() -> str:
    """Every command's help as Markdown."""
    parts = ["# The command line", "", "Made from `miserly --help`; `make docs` writes it again.", ""]
    for name, command in sorted(cli.commands.items()):
        parent = click.Context(cli, info_name="miserly", **cli.context_settings, terminal_width=100)
        context = click.Context(command, parent, info_name=name)
        parts += [f"## miserly {name}", "", "```", command.get_help(context), "```", ""]
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
