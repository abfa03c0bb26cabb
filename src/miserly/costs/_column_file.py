"""Price files by column, as `miserly init` writes them: `[columns]` with price and group, and `[groups]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from miserly.costs._row_prices import is_row_price, with_price_needs

ENTRIES = ("columns", "groups", "table", "unit", "evaluation", "exchange")
KEYS = ("price", "group", "unit", "type", "missing")
UNFILLED = "?"
NOT_ORDERED = "not_ordered"


def column_fields(content: Mapping[str, Any], text: str, path: str) -> dict[str, Any]:
    """The fields of a cost table; everything that is wrong with the file is in one error."""
    wrong = [f"unknown entry [{name}]: the file has {', '.join(ENTRIES)}." for name in content if name not in ENTRIES]
    columns, groups = content["columns"], content.get("groups", {})
    needs: dict[str, tuple[str, ...]] = {}
    prices: dict[str, Any] = {}
    for name, entry in columns.items():
        place = f"line {_line_of(text, name)}, column {name!r}"
        entry = entry if isinstance(entry, Mapping) else {"price": entry}
        unknown = sorted(set(entry) - set(KEYS))
        if unknown:
            wrong.append(f"{place}: unknown key {unknown[0]!r}. It knows {', '.join(KEYS)}.")
        price, group = entry.get("price", UNFILLED), entry.get("group", "")
        if price == UNFILLED:
            wrong.append(f"{place}: it has no price yet. Write a number in place of {UNFILLED!r}.")
        elif not _is_price(price):
            wrong.append(f"{place}: the price {price!r} is not a number of 0 or more.")
        if group and group not in groups:
            wrong.append(f"{place}: the group {group!r} has no price. Add `{group} = …` to [groups].")
        if group and group in columns:
            wrong.append(f"{place}: {group!r} is a group and a column. Rename the group.")
        if group and price == 0:  # it comes with its group: there is nothing of its own to buy
            needs[name] = (group,)
        else:
            needs[name], prices[name] = ((group, name) if group else (name,)), price
        if entry.get("missing", NOT_ORDERED) not in ("", NOT_ORDERED):
            wrong.append(f"{place}: missing is {entry['missing']!r}; it knows {NOT_ORDERED!r}. Else remove it.")
    wrong += [
        f"line {_line_of(text, name)}, group {name!r}: the price {price!r} is not a number of 0 or more."
        for name, price in groups.items()
        if not _is_price(price)
    ]
    if wrong:
        start = f"Cost file '{path}'"
        raise ValueError(f"{start}, {wrong[0]}" if len(wrong) == 1 else "\n  ".join((f"{start} has problems:", *wrong)))
    marked = [name for name, entry in columns.items() if isinstance(entry, Mapping) and entry.get("missing")]
    used = {name for wanted in needs.values() for name in wanted}
    prices |= {name: price for name, price in groups.items() if name in used}
    return {
        "features": tuple(needs),
        "needs": with_price_needs(needs, prices),
        "prices": prices,
        "unit": content.get("unit", "units"),
        "evaluation": content.get("evaluation", 0.0),
        "exchange": content.get("exchange", {}),
        "missing": dict.fromkeys(marked, NOT_ORDERED),
    }


def _is_price(price: Any) -> bool:
    """A number, one that is linear in features, or amounts by currency, which the table itself checks."""
    if is_row_price(price):
        return True
    if isinstance(price, Mapping):
        return all(_is_price(part) for part in price.values())
    return isinstance(price, int | float) and not isinstance(price, bool) and 0 <= price < float("inf")


def _line_of(text: str, name: str) -> int:
    """The line on which a name is given its value."""
    found = re.search(rf"""^\s*(?:"{re.escape(name)}"|'{re.escape(name)}'|{re.escape(name)})\s*=""", text, re.MULTILINE)
    return text.count("\n", 0, found.start() + 1) + 1 if found else 1
