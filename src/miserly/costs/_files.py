"""Price files: CSV lines, dataframes and TOML become the fields of a `CostTable`."""

from __future__ import annotations

import csv
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from miserly.costs._column_file import column_fields
from miserly.costs._row_prices import LinearPrice, with_price_needs

SIGN = re.compile(r"\s+([+-])\s+")
COLUMNS = ("feature", "cost", "group", "group_cost")
ENTRIES = ("acquisitions", "features", "unit", "evaluation", "exchange", "missing")


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
        raise ValueError(f"Cost file '{path}' has unknown entries {unknown}; it knows {', '.join(ENTRIES)}.")
    for part in ("acquisitions", "features"):
        if not isinstance(content.get(part), dict):
            raise ValueError(f"Cost file '{path}' has no [{part}] table. Add one.")
    return {
        "features": tuple(content["features"]),
        "needs": content["features"],
        "prices": content["acquisitions"],
        "unit": content.get("unit", "units"),
        "evaluation": content.get("evaluation", 0.0),
        "exchange": content.get("exchange", {}),
        "missing": content.get("missing", {}),
    }


def as_toml(fields: Mapping[str, Any]) -> str:
    """The fields of a table as a TOML price file. JSON's strings, numbers and lists are TOML's too."""
    lines = [f"unit = {json.dumps(fields['unit'])}", f"evaluation = {json.dumps(fields['evaluation'])}"]
    prices = {**fields["prices"], **fields.get("row_prices", {}), **fields.get("amounts", {})}
    for title, entries in (
        ("acquisitions", prices),
        ("features", fields["needs"]),
        ("exchange", fields.get("exchange", {})),
        ("missing", fields.get("missing", {})),
    ):
        if entries or title in ("acquisitions", "features"):
            lines += ["", f"[{title}]", *(f"{json.dumps(k)} = {_as_toml_value(v)}" for k, v in entries.items())]
    return "\n".join(lines) + "\n"


def _as_toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_as_toml_value(v)}" for k, v in value.items()) + " }"
    return json.dumps(value)


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
                        f"{place}: group {group!r} costs {price} here and {groups[group]} before. Write one price."
                    )
    for group in {g for wanted in needs.values() for g in wanted[:-1]}:
        if group in prices:
            raise ValueError(f"Cost file '{where}': {group!r} is a group and a feature. Rename the group.")
        if group not in groups:
            raise ValueError(f"Cost file '{where}': group {group!r} has no group_cost. Write it on one of its lines.")
    for feature in [name for name, wanted in needs.items() if len(wanted) > 1 and prices[name] == 0]:
        needs[feature] = needs[feature][:1]  # it comes with its group: there is nothing of its own to buy
        del prices[feature]
    everything = prices | groups
    return {"features": tuple(needs), "needs": with_price_needs(needs, everything), "prices": everything}


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


def _cell(value: Any, what: str) -> Any:
    """A number; `0.01 + 2e-5*tokens`, linear in features; or amounts by currency, as in `usd: 800; minutes: 45`."""
    if isinstance(value, str) and (":" in value or ";" in value):
        parts = [part.partition(":") for part in value.split(";")]
        amounts = {currency.strip(): _cell(amount.strip(), what) for currency, _, amount in parts}
        if len(amounts) < len(parts) or not all(amounts):
            raise ValueError(f"{what} is {value!r}: each amount has its own currency, as in 'usd: 800; minutes: 45'.")
        return amounts
    if isinstance(value, str) and "*" in value:
        return _linear(value, what)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{what} is {value!r}, not a number. Write its price.") from None


def _linear(text: str, what: str) -> LinearPrice:
    """A sum of a number and of numbers times features, with a blank on both sides of each sign."""
    base, per = 0.0, dict[str, float]()
    signs, terms = ["+", *SIGN.findall(text)], SIGN.split(text)[::2]
    for sign, term in zip(signs, terms):
        number, star, feature = (part.strip() for part in term.partition("*"))
        try:
            value = float(number) if sign == "+" else -float(number)
        except ValueError:
            raise ValueError(
                f"{what} is {text!r}: write a number, or a sum as in '0.01 + 2e-5*tokens', with blanks around signs."
            ) from None
        if star and feature in per:
            raise ValueError(f"{what} is {text!r}: {feature!r} stands twice. Write one number for it.")
        if star:
            per[feature] = value
        else:
            base += value
    return LinearPrice(base, per)
