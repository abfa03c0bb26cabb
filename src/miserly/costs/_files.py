"""Price files: CSV lines, dataframes and TOML become the fields of a `CostTable`."""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from miserly.costs._column_file import column_fields

COLUMNS = ("feature", "cost", "group", "group_cost")
ENTRIES = ("acquisitions", "features", "unit", "evaluation")


def read_csv(path: str | Path) -> list[dict[str, Any]]:
    """The lines of a price file with a header."""
    with Path(path).open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file, skipinitialspace=True)
        _check_columns(reader.fieldnames or [], str(path))
        return list(reader)


def read_frame(frame: Any) -> list[dict[str, Any]]:
    """The lines of a dataframe of any kind that narwhals knows."""
    import narwhals as nw

    native = nw.from_native(frame, eager_only=True)
    _check_columns(native.columns, "the frame")
    return list(native.iter_rows(named=True))


def read_toml(path: str | Path) -> dict[str, Any]:
    """The fields of a TOML price file."""
    text = Path(path).read_text(encoding="utf-8")
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"Cost file '{path}' is not TOML: {error}.") from None
    if isinstance(content.get("columns"), dict):
        return column_fields(content, text, str(path))
    unknown = sorted(set(content) - set(ENTRIES))
    if unknown:
        raise ValueError(
            f"Cost file '{path}' has unknown entries {unknown}; it knows acquisitions, features, unit, evaluation."
        )
    for part in ("acquisitions", "features"):
        if not isinstance(content.get(part), dict):
            raise ValueError(f"Cost file '{path}' has no [{part}] table. Add one.")
    return {
        "features": tuple(content["features"]),
        "needs": content["features"],
        "prices": content["acquisitions"],
        "unit": content.get("unit", "units"),
        "evaluation": content.get("evaluation", 0.0),
    }


def as_toml(fields: Mapping[str, Any]) -> str:
    """The fields of a table as a TOML price file. JSON's strings, numbers and lists are TOML's too."""
    lines = [f"unit = {json.dumps(fields['unit'])}", f"evaluation = {json.dumps(fields['evaluation'])}"]
    for title, entries in (("acquisitions", fields["prices"]), ("features", fields["needs"])):
        lines += ["", f"[{title}]", *(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in entries.items())]
    return "\n".join(lines) + "\n"


def from_records(lines: Iterable[Mapping[str, Any]], where: str) -> dict[str, Any]:
    """The fields of a table from its lines: `feature`, `cost`, and perhaps `group` and `group_cost`."""
    needs: dict[str, tuple[str, ...]] = {}
    prices: dict[str, Any] = {}
    groups: dict[str, Any] = {}
    for number, line in enumerate(lines, start=2):
        place = f"Cost file '{where}', line {number}"
        if None in line:
            raise ValueError(f"{place}: more cells than the header has columns. Decimals are written with a point.")
        feature = _text(line["feature"])
        if not feature:
            raise ValueError(f"{place}: the feature has no name.")
        if feature in needs:
            raise ValueError(f"{place}: {feature!r} stands twice. Remove one.")
        prices[feature] = _cell(line.get("cost"), f"{place}: the cost of {feature!r}")
        needs[feature] = (feature,)
        group, group_cost = _text(line.get("group")), _text(line.get("group_cost"))
        if group_cost and not group:
            raise ValueError(f"{place}: a group_cost without a group. Name the group of {feature!r}.")
        if group:
            needs[feature] = (group, feature)
            if group_cost:
                price = _cell(group_cost, f"{place}: the cost of group {group!r}")
                if groups.setdefault(group, price) != price:
                    raise ValueError(
                        f"{place}: group {group!r} costs {price:g} here and {groups[group]:g} before. Write one price."
                    )
    for group in {g for wanted in needs.values() for g in wanted[:-1]}:
        if group in prices:
            raise ValueError(f"Cost file '{where}': {group!r} is a group and a feature. Rename the group.")
        if group not in groups:
            raise ValueError(f"Cost file '{where}': group {group!r} has no group_cost. Write it on one of its lines.")
    return {"features": tuple(needs), "needs": needs, "prices": prices | groups}


def _text(value: Any) -> str:
    """A cell as text; missing values of any kind are empty."""
    return "" if value is None or value != value else str(value).strip()


def _check_columns(columns: Iterable[str], where: str) -> None:
    have = list(columns)
    if "feature" not in have or "cost" not in have:
        raise ValueError(f"Cost file '{where}' needs the columns feature,cost[,group,group_cost]; it has {have}.")
    unknown = [c for c in have if c not in COLUMNS]
    if unknown:
        raise ValueError(f"Cost file '{where}' has unknown columns {unknown}; it knows {list(COLUMNS)}.")


def _cell(value: Any, what: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{what} is {value!r}, not a number. Write its price.") from None
