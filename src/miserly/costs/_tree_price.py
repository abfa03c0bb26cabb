"""A price that a small tree estimates from features that are known before the purchase."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

PARTS = ("column", "threshold", "left", "missing_right", "value", "upper")


@dataclass(frozen=True)
class TreePrice:
    """What a small tree makes of features that are known before the purchase: an estimate of a measured price.

    Parameters
    ----------
    features : tuple of str
        The features that it looks at.
    column : tuple of int
        By place of the tree: which of the features is compared. All places but leaves lead to `left` and `left + 1`.
    threshold : tuple of float
        Values up to it go left.
    left : tuple of int
        The place to the left; a leaf has its own.
    missing_right : tuple of bool
        Where missing values go.
    value, upper : tuple of float
        At leaves, the mean of the prices of the training rows there, and their upper quantile.
    mean : float
        The mean over all training rows.
    """

    features: tuple[str, ...]
    column: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    missing_right: tuple[bool, ...]
    value: tuple[float, ...]
    upper: tuple[float, ...]
    mean: float

    def __post_init__(self) -> None:
        n = len(self.left)
        if not n or any(len(getattr(self, name)) != n for name in PARTS):
            raise ValueError("A learned price has one entry of each kind for each place of its tree.")
        inner = [i for i in range(n) if self.left[i] != i]
        if any(not i < self.left[i] < n - 1 or not 0 <= self.column[i] < len(self.features) for i in inner):
            raise ValueError("The places of a learned price lead to later ones, and ask its own features.")
        numbers = [*self.value, *self.upper, self.mean]
        if not all(math.isfinite(v) and v >= 0 for v in numbers) or not all(map(math.isfinite, self.threshold)):
            raise ValueError("A learned price is finite and not negative.")

    def __str__(self) -> str:
        return f"about {self.mean:g}, by {', '.join(self.features)}"

    @property
    def expected(self) -> float:
        """What it is taken for as long as the row is not known."""
        return self.mean

    def at(self, row: Mapping[str, float]) -> float:
        """The estimate for a row."""
        return float(self.of([np.array([row[name]], np.float64) for name in self.features])[0])

    def leaves(self, columns: Sequence[Any]) -> Any:
        """The leaf of each row, given the columns of `features`."""
        values = np.column_stack([np.asarray(column, np.float64) for column in columns])
        column, left = np.array(self.column), np.array(self.left)
        threshold, missing_right = np.array(self.threshold), np.array(self.missing_right)
        place = np.zeros(len(values), np.intp)
        while True:
            going = np.flatnonzero(left[place] != place)
            if not len(going):
                return place
            at = place[going]
            here = values[going, column[at]]
            place[going] = left[at] + np.where(np.isnan(here), missing_right[at], here > threshold[at])

    def of(self, columns: Sequence[Any]) -> Any:
        """The estimate for each row, given the columns of `features`."""
        return np.array(self.value)[self.leaves(columns)]

    def scaled(self, factor: float) -> TreePrice:
        """The same price in another unit."""
        value, upper = (tuple(v * factor for v in part) for part in (self.value, self.upper))
        return replace(self, value=value, upper=upper, mean=self.mean * factor)

    def renamed(self, names: Mapping[str, str]) -> TreePrice:
        """The same price where features have other names."""
        return replace(self, features=tuple(names.get(n, n) for n in self.features))

    def expecting(self, prices: Any) -> TreePrice:
        """The same: it knows its mean."""
        return self

    def cautious(self) -> TreePrice:
        """The upper quantiles in place of the means."""
        return replace(self, value=self.upper)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        parts = {name: list(getattr(self, name)) for name in PARTS}
        return {"tree": {"features": list(self.features), **parts}, "mean": self.mean}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> TreePrice:
        """A learned price from plain data."""
        tree = fields["tree"]
        kinds = (str, int, float, int, bool, float, float)
        try:
            if set(tree) != {"features", *PARTS} or set(fields) != {"tree", "mean"}:
                raise ValueError("it has other entries")
            parts: dict[str, Any] = {
                name: tuple(kind(v) for v in tree[name]) for kind, name in zip(kinds, ("features", *PARTS))
            }
            return cls(**parts, mean=float(fields["mean"]))
        except (TypeError, KeyError, OverflowError) as error:
            raise ValueError(f"A learned price is not of its form: {error}.") from None
