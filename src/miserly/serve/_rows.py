"""Rows that come with all their features: for a server without extractors. They are checked before they are read, so
that a bad row is the client's mistake and not a failure of the server's."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from miserly.plan import Plan
from miserly.runtime import did_you_mean
from miserly.serve._messages import RefusedError

LARGEST = int(sys.float_info.max)


class RowCheck:
    """What a plan may look at: features by name, each with a number, null for a missing value, or a category."""

    def __init__(self, plan: Plan) -> None:
        self._known = frozenset(plan.costs.features)
        self._used = frozenset(plan.costs.features[f] for f in plan.used_features)
        self._can_miss = plan.can_miss
        self._schema = plan.schema
        self._aside = frozenset(() if plan.schema is None else (plan.schema.id, plan.schema.label, *plan.schema.drop))

    def row(self, row: Any, where: str = "row") -> Mapping[str, Any]:
        """A whole row: every feature that the plan may look at is there."""
        if not isinstance(row, dict):
            raise RefusedError(
                f"Expected an object of features, got {type(row).__name__}.",
                where,
                'This server reads rows as features: {"age": 0.5, "pulse": null}.',
            )
        found: Mapping[str, Any] = row
        if not self._aside.isdisjoint(row):  # the identifier, the label: known columns that are no features
            found = {name: value for name, value in row.items() if name not in self._aside}
        self.features(found, where)
        if not self._used <= found.keys():
            lost = sorted(self._used - found.keys())
            raise RefusedError(
                f"The row lacks {len(lost)} features that the plan may look at, such as {lost[0]!r}.",
                where,
                "Send a number for each." + (" A missing value is null." if self._can_miss else ""),
            )
        return found

    def features(self, features: Mapping[str, Any], where: str = "features") -> None:
        """Some features: each is one that the plan knows, and has a value that it can read."""
        if not features.keys() <= self._known:
            name = next(name for name in features if name not in self._known)
            remedy = f"GET /v1/plan lists its features.{did_you_mean(name, self._known)}"
            raise RefusedError(f"The plan knows no feature {name!r}.", f"{where}.{name}", remedy)
        for name, value in features.items():
            if type(value) is not float:
                self._odd(name, value, where)

    def _odd(self, name: str, value: Any, where: str) -> None:
        """A value that is no fraction."""
        if type(value) is int:
            if not -LARGEST <= value <= LARGEST:
                raise RefusedError("The number is too large.", f"{where}.{name}", "Send one that a double can hold.")
            return
        if value is None:
            if not self._can_miss:
                raise RefusedError(f"{name!r} is null.", f"{where}.{name}", "This plan is linear: it needs a number.")
        elif self._schema is None or not isinstance(value, str | bool):
            kind = "number" if self._schema is None else self._schema[name].kind
            raise RefusedError(
                f"Expected a {kind} or null, got {type(value).__name__}.", f"{where}.{name}", f"Send a {kind} or null."
            )
        else:
            try:
                self._schema.number(name, value)
            except ValueError as error:
                text, _, remedy = str(error).partition(". ")
                raise RefusedError(f"{text}.", f"{where}.{name}", remedy) from None
