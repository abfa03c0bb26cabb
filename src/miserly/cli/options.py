"""Options that several commands share, and how they print."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import click

from miserly.cli.registry import get_method


class OutFile(click.Path):
    """A file to write: that its folder is there is asked before the work, not after it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        folder = path.resolve().parent
        if path.exists() and not path.is_file():  # a device or a pipe
            return path
        if not folder.is_dir():
            self.fail(f"Cannot write '{path}': the folder '{folder}' does not exist.", param, ctx)
        if not os.access(folder, os.W_OK):
            self.fail(f"Cannot write '{path}': no right to write in the folder '{folder}'.", param, ctx)
        return path


class Budget(click.ParamType):
    """An amount in the unit of the prices, or amounts by currency: `50`, `usd=900,minutes=60,rounds=2`."""

    name = "AMOUNT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            if "=" not in value:
                return float(value)
            pairs = (part.split("=") for part in value.split(","))
            return {currency.strip(): float(amount) for currency, amount in pairs}
        except ValueError:
            self.fail(f"It is a number, or CURRENCY=NUMBER, as in usd=900,minutes=60; got {value!r}.", param, ctx)


BUDGET = Budget()
OUT_FILE = OutFile(dir_okay=False, path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
TASKS = ("auto", "regression", "classification", "ranking")


def _read_config(context: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
    if path is not None:
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise click.BadParameter(f"'{path}' is not TOML: {error}.") from None
        known = {p.name for p in context.command.params}
        given = {key.replace("-", "_"): value for key, value in content.items()}
        unknown = sorted(set(given) - known)
        if unknown:
            raise click.BadParameter(f"'{path}' sets unknown options: {', '.join(unknown)}.")
        context.default_map = {**(context.default_map or {}), **given}
    return path


config_option = click.option(
    "--config", type=FILE, is_eager=True, callback=_read_config, help="TOML file of these options."
)


def training(method: str) -> Callable[..., Any]:
    """The options of commands that train, by this method unless another is named."""

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in _training_options(method):
            command = option(command)
        return command

    return decorated


def _training_options(method: str) -> tuple[Callable[..., Any], ...]:
    return (
        click.option("--method", default=method, show_default=True, help="`miserly methods` lists them."),
        config_option,
        click.option(
            "--task",
            type=click.Choice(TASKS),
            default="auto",
            help="auto: rows with query ids are ranked, few whole labels are classes.",
        ),
        click.option("--seed", "random_state", type=int, default=None, help="Of every random draw; 0 unless given."),
        click.option("--subsample", type=float, default=None, help="Share of rows for each round."),
        click.option(
            "--charge",
            type=click.Choice(("learner", "path")),
            default=None,
            help="A row pays for all features of the model, or for the splits on its own way.",
        ),
        click.option(
            "--l2-regularization",
            type=float,
            default=None,
            help="Shrinks the values of leaves, small ones most: 10 for few rows.",
        ),
        click.option("--min-samples-leaf", type=int, default=None, help="Least rows in a leaf."),
        click.option("--max-depth", type=int, default=None, help="Levels of splits."),
        click.option("--learning-rate", type=float, default=None, help="Step of each round."),
        click.option("--n-estimators", type=int, default=None, help="Rounds of boosting; 200 unless given."),
        click.option("--n-jobs", type=int, default=None, help="Threads; all cores unless given."),
        click.option(
            "--costs", required=True, type=FILE, help="Prices: .toml, or .csv with feature,cost[,group,group_cost]."
        ),
    )


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON only.")


def load_model(path: Path) -> Any:
    """A plan or a menu, by what the file holds."""
    from zipfile import BadZipFile, ZipFile

    from miserly.plan import load_menu, load_plan

    try:
        with ZipFile(path) as archive:
            is_menu = "menu.json" in archive.namelist()
    except BadZipFile:
        is_menu = False
    return load_menu(path) if is_menu else load_plan(path)


def task_of(table: Any, task: str) -> str:
    """The task, by the label where the user leaves it open: ranking with query ids, classes if labels are few."""
    if task != "auto":
        return task
    y = table.y
    few = y.dtype.kind not in "fiu" or (y.dtype.kind in "iu" and len(set(y.tolist())) <= 20)
    return "ranking" if table.qid is not None else "classification" if few else "regression"


def with_schema(model: Any, table: Any) -> Any:
    """The model with a plan that reads rows in the words of the table."""
    if table.schema is not None:
        model.plan_ = replace(model.plan_, schema=table.schema)
    return model


def make_model(table: Any, costs: Any, task: str, method: str, **params: Any) -> Any:
    """A model of this method for the label's kind; what is not given is left to the method's own defaults."""
    task = task_of(table, task)
    given = {name: value for name, value in params.items() if value is not None}
    if method == "greedy-miser":
        given = {"n_estimators": 200, "random_state": 0} | given
    chosen = get_method(method, task)
    words = [] if table.schema is None else [n for n, c in table.schema.categories.items() if len(c) > 2]
    if words and chosen.is_linear:
        raise click.UsageError(
            f"{method} is linear and cannot read words as numbers: {', '.join(words[:5])}. "
            "Use a method of trees (greedy-miser), or --drop these columns."
        )
    return chosen.make(task, costs=costs.bind(table.features), **given)


def takes(function: Callable[..., Any], name: str) -> bool:
    """Whether a function has a parameter of that name."""
    return name in signature(function).parameters


def print_json(content: Any) -> None:
    """Print plain data."""
    click.echo(json.dumps(content, indent=2, default=_plain))


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
