"""Options about tables that several commands share; tables and prices are read with all mistakes in one report."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

TEXT_OPTIONS = ("sep", "decimal", "quote", "encoding", "sheet")
ROLES = ("label", "qid", "id", "group", "time")


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say how a table is read. What is not given is taken from [table] of the price file, or found."""
    for option in (
        click.option("--sheet", default=None, help="Sheet of an Excel file; the first unless given."),
        click.option("--encoding", default=None, help="As utf-8 or cp1252; found unless given."),
        click.option("--quote", default=None, metavar="CHAR", help="Character around cells; found unless given."),
        click.option("--decimal", type=click.Choice((".", ",")), default=None, help="Found unless given."),
        click.option("--sep", default=None, metavar="CHAR", help="Separator of cells; found unless given."),
        click.option(
            "--limits",
            type=click.Choice(("value", "missing", "error")),
            default=None,
            help="What cells such as >15 are: their number (the default), missing, or a mistake.",
        ),
        click.option(
            "--not-ordered",
            multiple=True,
            metavar="COLUMN",
            help='Missing where nobody bought it (missing = "not_ordered" in the price file). Repeatable.',
        ),
        click.option("--not-missing", multiple=True, metavar="WORD", help="A word, not a missing mark. Repeatable."),
        click.option("--missing", multiple=True, metavar="WORD", help="One more missing mark. Repeatable."),
        click.option(
            "--type",
            "types",
            multiple=True,
            metavar="COLUMN=TYPE",
            help="number, category, boolean, date or date:%d/%m/%Y. Repeatable.",
        ),
        click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out. Repeatable, or a,b,c."),
        click.option("--time", default=None, metavar="COLUMN", help="Split by time: the latest rows are validation."),
        click.option("--group", default=None, metavar="COLUMN", help="Rows of one group stay together in a split."),
        click.option("--id", default=None, metavar="COLUMN", help="Names each row; predictions copy it."),
        click.option("--qid", default=None, metavar="COLUMN", help="Column of query ids, for ranking."),
        click.option("--label", default=None, metavar="COLUMN", help="Column to predict (not for LETOR files)."),
    ):
        command = option(command)
    return command


@dataclass(frozen=True)
class TableArguments:
    """How tables are read, as the options and the price file say it."""

    roles: Mapping[str, str | None]
    drop: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    not_missing: tuple[str, ...] = ()
    limits: str = "value"
    text: Mapping[str, str | None] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    not_ordered: tuple[str, ...] = ()

    @property
    def label(self) -> str | None:
        """The column to predict."""
        return self.roles.get("label")


def table_arguments(options: dict[str, Any], costs: Path | None = None) -> TableArguments:
    """Take the options of `table_options` out of a command's own; the price file fills what they leave."""
    given = {name: options.pop(name) for name in (*ROLES, *TEXT_OPTIONS, "limits")}
    drop = tuple(name.strip() for entry in options.pop("drop") for name in entry.split(",") if name.strip())
    types = dict(_pair(entry) for entry in options.pop("types"))
    missing, not_missing, not_ordered = (options.pop(name) for name in ("missing", "not_missing", "not_ordered"))
    kept = _from_price_file(costs)
    section, columns = kept.get("table", {}), kept.get("columns", {})
    known = {*ROLES, *TEXT_OPTIONS, "limits", "drop", "missing", "not_missing"}
    unknown = sorted(set(section) - known)
    if unknown:
        raise ValueError(f"'{costs}', [table]: unknown entry {unknown[0]!r}. It knows {', '.join(sorted(known))}.")
    given |= {name: section[name] for name in given if given[name] is None and section.get(name)}
    entries = {name: entry for name, entry in columns.items() if isinstance(entry, dict)}
    found_types = {name: entry["type"] for name, entry in entries.items() if entry.get("type")}
    return TableArguments(
        roles={role: given[role] for role in ROLES},
        drop=tuple(dict.fromkeys((*section.get("drop", ()), *drop))),
        types={name: kind for name, kind in (found_types | types).items() if name not in drop},
        missing=(*section.get("missing", ()), *missing),
        not_missing=(*section.get("not_missing", ()), *not_missing),
        limits=given["limits"] or "value",
        text={name: given[name] for name in TEXT_OPTIONS},
        units={name: entry["unit"] for name, entry in entries.items() if entry.get("unit")},
        not_ordered=not_ordered,
    )


def options_of_price_file(costs: Path) -> TableArguments:
    """How tables are read by the price file alone."""
    several = dict.fromkeys(("drop", "types", "missing", "not_missing", "not_ordered"), ())
    return table_arguments({**dict.fromkeys((*ROLES, *TEXT_OPTIONS, "limits")), **several}, costs)


def _pair(entry: str) -> tuple[str, str]:
    name, equals, kind = entry.rpartition("=")
    if not equals:
        raise click.BadParameter(f"--type is COLUMN=TYPE, as in sex=category, got {entry!r}.")
    return name, kind


def _from_price_file(costs: Path | None) -> dict[str, Any]:
    if costs is None or costs.suffix != ".toml":
        return {}
    try:
        return tomllib.loads(costs.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return {}  # reading the prices says so


def scan_options(arguments: TableArguments) -> tuple[Any, Any, tuple[Any, Any, Any]]:
    """The roles of columns, what is known about the file, and the rules of its cells."""
    from miserly.datasets import FileFormat, Roles

    names = {name: arguments.roles.get(name) for name in ROLES}
    text = {("separator" if name == "sep" else name): value for name, value in arguments.text.items()}
    if text.get("separator") in ("\\t", "tab"):
        text["separator"] = "\t"
    rules = (arguments.missing, arguments.not_missing, arguments.limits)
    return Roles(**names, drop=arguments.drop), FileFormat(**text), rules


def scan(path: Path, arguments: TableArguments, **more: Any) -> Any:
    """A table with its problems."""
    from miserly.datasets import scan_table

    roles, form, rules = scan_options(arguments)
    types = {} if "schema" in more else arguments.types
    found = scan_table(path, roles, form, types=types, rules=rules, **more)
    if arguments.units and found.table.schema is not None and "schema" not in more:
        columns = tuple(replace(c, unit=arguments.units.get(c.name, c.unit)) for c in found.table.schema.columns)
        found.table = replace(found.table, schema=replace(found.table.schema, columns=columns))
    return found


def read_inputs(costs: Path, train: Path, others: tuple[Path | None, ...], arguments: TableArguments) -> list[Any]:
    """Prices, the training table and others with the same columns (None for those not given), or one report of all
    that is wrong with them. Nothing is compiled before."""
    from miserly.costs import CostTable
    from miserly.datasets import TableError, is_letor, read_table

    prices, wrong = None, []
    try:
        prices = CostTable.from_file(costs)
        if arguments.not_ordered:
            marks = dict.fromkeys(arguments.not_ordered, "not_ordered")
            prices = replace(prices, missing={**prices.missing, **marks})
    except ValueError as error:
        wrong.append(str(error))
    if is_letor(train):
        if prices is None:
            raise ValueError(wrong[0])
        named: Any = {role: name for role, name in arguments.roles.items() if name is not None}
        return [prices, *(p and read_table(p, features=prices.features, **named) for p in (train, *others))]
    first = scan(train, arguments)
    problems = [*first.problems, *_label_problems(first, arguments)]
    if prices is not None:
        meant = str(arguments.label).lower() if arguments.label not in first.raw.columns else None
        problems += [p for p in _price_problems(first, prices, costs) if p.where.lower() != f"column '{meant}'"]
    tables: list[Any] = [first.table]
    for path in others:
        if path is None:
            tables.append(None)
            continue
        schema = first.table.schema
        other = scan(path, arguments, schema=schema)
        problems += other.problems
        problems += _label_problems(other, arguments)
        problems += _class_problems(first, other)
        tables.append(other.table)
    if problems:
        wrong.append(str(TableError(problems)))
    if wrong:
        raise ValueError("\n".join(wrong))
    return [prices, *tables]


def _label_problems(found: Any, arguments: TableArguments) -> list[Any]:
    from miserly.datasets import TableProblem, did_you_mean

    label, path = arguments.label, found.raw.path
    if label is None:
        hint = f"It has: {', '.join(list(found.raw.columns)[:40])}."
        return [TableProblem(path, "", "Which column is to be predicted is not said.", f"Give --label COLUMN. {hint}")]
    if label not in found.raw.columns:
        if any(repr(label) in problem.what for problem in found.problems):
            return []
        what = f"There is no column {label!r} for the label."
        return [TableProblem(path, "", what, did_you_mean(label, found.raw.columns))]
    y = found.table.y
    if y is not None and len(y) > 1 and len(set(y.tolist())) == 1:
        what = f"All {len(y)} labels are {y[0]!s}: there is nothing to learn."
        return [TableProblem(path, f"column {label!r}", what, "Add rows with another label, or name another column.")]
    return []


def _class_problems(first: Any, other: Any) -> list[Any]:
    """Labels in words that the training table has not."""
    from miserly.datasets import TableProblem

    y, known = other.table.y, first.table.y
    if y is None or known is None or "U" not in (y.dtype.kind, known.dtype.kind):
        return []
    new = sorted(set(map(str, y.tolist())) - set(map(str, known.tolist())))
    what = f"The label {', '.join(map(repr, new[:3]))} is in no row of '{first.raw.path}'."
    remedy = "Add such rows there, or remove them here."
    return [TableProblem(other.raw.path, "", what, remedy)] if new else []


def _price_problems(found: Any, prices: Any, costs: Path) -> list[Any]:
    """Columns without a price, and prices without a column."""
    from miserly.datasets import TableProblem, did_you_mean

    if prices.each is not None or not prices.named:
        return []
    features, path = found.table.features, found.raw.path
    problems = []
    for name in (f for f in features if f not in prices.needs):
        if name in found.texts:
            n = len(found.table.schema[name].categories)
            what = f"No price in '{costs}', and {n} different words: an identifier or free text?"
            remedy = f"Give --id {name} or --drop {name}; to use it, add its price."
        else:
            what = f"No price in '{costs}'."
            remedy = f"Add one there, or leave the column out: --drop {name}."
        problems.append(TableProblem(path, f"column {name!r}", what, remedy))
    aside = {*arguments_of(found), *found.raw.columns} - set(features)
    for name in (f for f in prices.features if f not in features):
        if name in aside:
            what, remedy = f"'{name}' has a price but is no feature here.", "Remove its line, or the option."
        else:
            what, remedy = f"'{name}' has a price, but '{path}' has no such column.", did_you_mean(name, features)
        problems.append(TableProblem(str(costs), "", what, remedy))
    return problems


def arguments_of(found: Any) -> set[str]:
    """The columns that a scan left aside."""
    schema = found.table.schema
    return {name for name in (schema.id, schema.label, schema.qid, *schema.drop) if name is not None}


def show_notes(path: Path, table: Any, quiet: bool = False) -> None:
    """Say on stderr what was found in a file."""
    if not quiet:
        for note in getattr(table, "notes", ()):
            click.echo(f"{path}: {note}", err=True)
