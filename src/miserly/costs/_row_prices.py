"""Prices that depend on the row: linear in features that are known before the purchase, or a small learned tree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from miserly.costs._tree_price import TreePrice

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LinearPrice:
    """A price that is linear in features which are known before the purchase: so much, and so much for each unit.

    Parameters
    ----------
    base : float
        What the acquisition costs where all these features are zero.
    per : mapping of str to float, default={}
        What each unit of a feature adds. Without any, the price is the constant `base`.
    mean : float, default=None
        The mean price of the training rows, which `fit` fills in. It stands for the price wherever no row is at hand,
        and until the features are known. By default `base`, at least 0.

    Examples
    --------
    >>> import miserly as ms
    >>> price = ms.LinearPrice(0.01, {"tokens": 2e-5})
    >>> price.at({"tokens": 1000})
    0.03
    """

    base: float
    per: Mapping[str, float] = field(default_factory=dict)
    mean: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.per, Mapping):
            raise ValueError(f"A linear price takes {{feature: price of a unit}}, got {self.per!r}.")
        per = {str(name): _finite(f"the price of a unit of {name!r}", value) for name, value in self.per.items()}
        object.__setattr__(self, "base", _finite("the base of a linear price", self.base))
        object.__setattr__(self, "per", MappingProxyType(per))
        if self.mean is not None:
            mean = _finite("the mean of a linear price", self.mean)
            if mean < 0:
                raise ValueError(f"The mean of a linear price must not be negative, got {mean:g}.")
            object.__setattr__(self, "mean", mean)

    def __hash__(self) -> int:
        return hash((self.base, tuple(self.per.items()), self.mean))

    def __reduce__(self) -> tuple[Any, ...]:
        return (LinearPrice, (self.base, dict(self.per), self.mean))

    def __str__(self) -> str:
        return " + ".join([f"{self.base:g}", *(f"{value:g} × {name}" for name, value in self.per.items())])

    @property
    def features(self) -> tuple[str, ...]:
        """The features that it depends on."""
        return tuple(self.per)

    @property
    def expected(self) -> float:
        """What it is taken for as long as the row is not known."""
        return max(self.base, 0.0) if self.mean is None else self.mean

    def at(self, row: Mapping[str, float]) -> float:
        """The price for a row.

        Parameters
        ----------
        row : mapping of str to float
            The row's values; they may hold other features too.
        """
        return float(self.of([np.float64(row[name]) for name in self.per]))

    def of(self, columns: Sequence[Any]) -> Any:
        """The price for each row, given the columns of `features`. One row and many give the same bits."""
        price = self.base
        for value, column in zip(self.per.values(), columns):
            price = price + value * column
        return price

    def scaled(self, factor: float) -> LinearPrice:
        """The same price in another unit."""
        per = {name: value * factor for name, value in self.per.items()}
        return LinearPrice(self.base * factor, per, None if self.mean is None else self.mean * factor)

    def renamed(self, names: Mapping[str, str]) -> LinearPrice:
        """The same price where features have other names."""
        return LinearPrice(self.base, {names.get(n, n): v for n, v in self.per.items()}, self.mean)

    def expecting(self, prices: Floats) -> LinearPrice:
        """With the mean over training rows."""
        return replace(self, mean=math.fsum(prices) / len(prices))

    def cautious(self) -> LinearPrice:
        """The same: it is known before it is paid."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """Plain data, which `read_price` takes."""
        return {"base": self.base, "per": dict(self.per)} | ({} if self.mean is None else {"mean": self.mean})


RowPrice = LinearPrice | TreePrice


def read_price(what: str, price: Any) -> float | RowPrice:
    """A constant or a price by row from what the user or a file gives; `what` names it in errors."""
    if isinstance(price, Mapping) and "tree" in price:
        return TreePrice.from_dict(price)
    if isinstance(price, Mapping):
        unknown = sorted(set(map(str, price)) - {"base", "per", "mean"})
        if unknown:
            raise ValueError(f"{what} has the unknown entry {unknown[0]!r}. A linear price has base and per.")
        price = LinearPrice(price.get("base", 0.0), price.get("per", {}), price.get("mean"))
    if isinstance(price, TreePrice):
        return price
    if isinstance(price, LinearPrice):
        return price if price.features else checked_price(what, price.base)
    return checked_price(what, price)


def is_row_price(price: Any) -> bool:
    """Whether plain data spell a price by row."""
    return isinstance(price, Mapping) and bool(price) and {"base", "per", "tree"} & set(price) != set()


def summed(parts: Iterable[tuple[float, float | RowPrice]]) -> float | RowPrice:
    """The sum of prices, each at a rate."""
    listed = list(parts)
    if all(isinstance(price, float) for _, price in listed):
        return math.fsum(rate * price for rate, price in listed)  # type: ignore[operator]
    base: list[float] = []
    mean: list[float] = []
    per: dict[str, list[float]] = {}
    for rate, price in listed:
        if isinstance(price, TreePrice):
            raise ValueError("A learned price is in one unit: a table with an exchange between currencies has none.")
        linear = LinearPrice(price) if isinstance(price, float) else price
        assert isinstance(linear, LinearPrice)
        base.append(rate * linear.base)
        mean.append(rate * linear.expected)
        for name, value in linear.per.items():
            per.setdefault(name, []).append(rate * value)
    known = all(getattr(price, "mean", 0.0) is not None for _, price in listed)
    return LinearPrice(math.fsum(base), {n: math.fsum(v) for n, v in per.items()}, math.fsum(mean) if known else None)


def checked_price(what: str, price: Any) -> float:
    """A number, finite and not negative."""
    try:
        number = float(price)
    except OverflowError:
        number = math.inf
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be a number, got {price!r}.") from None
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{what} must be finite and not negative, got {number:g}. Give its real price.")
    return number


def check_row_prices(needs: Mapping[str, Sequence[str]], rules: Mapping[str, RowPrice]) -> None:
    """Refuse prices that depend on what is not known before the purchase."""
    users: dict[str, list[str]] = {a: [] for a in rules}
    for feature, wanted in needs.items():
        for a in wanted:
            if a in users:
                users[a].append(feature)
    for a, rule in rules.items():
        for name in rule.features:
            if name not in needs:
                raise ValueError(
                    f"The price of {a!r} depends on {name!r}, which is not a feature. It depends on features of the "
                    f"table: {', '.join(map(repr, list(needs)[:5]))}."
                )
            if a in needs[name]:
                raise ValueError(
                    f"The price of {a!r} depends on {name!r}, which needs {a!r} itself: a circle. A price depends on "
                    "features that are known before the purchase."
                )
    before = {a: {b for name in rule.features for b in needs[name]} for a, rule in rules.items()}
    try:
        tuple(TopologicalSorter(before).static_order())
    except CycleError as error:
        circle = " → ".join(repr(a) for a in error.args[1])
        raise ValueError(f"Prices depend on each other in a circle: {circle}. Buy one before the other.") from None
    for a, rule in rules.items():
        for feature in users[a]:
            for name in rule.features:
                late = [b for b in needs[name] if b not in needs[feature]]
                if late:
                    raise ValueError(
                        f"The price of {a!r} depends on {name!r}, which must be bought before; but {feature!r} needs "
                        f"{a!r} and not {late[0]!r}, so {name!r} may come later. Add {late[0]!r} to the needs of "
                        f"{feature!r}."
                    )


def with_price_needs(needs: Mapping[str, Sequence[str]], prices: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Needs to which is added what prices depend on, for tables that have no way to say it."""
    looked_at = {str(a): _features_of(price) for a, price in prices.items()}
    found = {f: tuple(wanted) for f, wanted in needs.items()}
    changed = any(looked_at.values())
    while changed:
        changed = False
        for feature, wanted in found.items():
            first = [b for a in wanted for name in looked_at.get(a, ()) for b in found.get(name, ())]
            more = tuple(dict.fromkeys((*first, *wanted)))
            if set(more) != set(wanted):
                found[feature], changed = more, True
    return found


def _features_of(price: Any) -> tuple[str, ...]:
    """The features that a price, as a user writes it, depends on."""
    if isinstance(price, RowPrice):
        return price.features
    if not isinstance(price, Mapping):
        return ()
    if is_row_price(price):
        per = price.get("per", {})
        return tuple(map(str, per)) if isinstance(per, Mapping) else ()
    return tuple(name for part in price.values() for name in _features_of(part))


def _finite(what: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{what} must be a number, got {value!r}.") from None
    if not math.isfinite(number):
        raise ValueError(f"{what} must be finite, got {number:g}.")
    return number
