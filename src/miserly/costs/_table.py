"""The price table: features need acquisitions, acquisitions have prices, each is paid once per row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from miserly import _display
from miserly.costs import _currencies as currencies
from miserly.costs import _files as files
from miserly.costs._column_file import NOT_ORDERED
from miserly.costs._ledger import set_bits
from miserly.costs._row_prices import RowPrice, check_row_prices, checked_price, with_price_needs
from miserly.files import write_whole


class MeasuredPrices(Protocol):
    """What extractors took (see `miserly.runtime.Profile`)."""

    @property
    def needs(self) -> Mapping[str, tuple[str, ...]]: ...

    def seconds(self, clock: Any, statistic: str) -> dict[str, float]: ...


@dataclass(frozen=True)
class CostTable:
    """The bipartite relation *feature needs acquisitions*, with one price per acquisition.

    A price per feature is one acquisition each; a group is an acquisition that several features share; a derived
    feature needs the acquisitions of what it is derived from. `evaluation` is the price of running one weak learner
    (one number, or one per learner), also paid once per row.

    Parameters
    ----------
    features : sequence of str
        The features, in the order of the columns unless `named`.
    needs : mapping of str to sequence of str
        The acquisitions that each feature needs; an empty list is a free feature.
    prices : mapping of str to float, LinearPrice or mapping
        The price of each acquisition for one row, 0 or more. There is no default price. A `LinearPrice` depends on the
        row; a mapping has an amount in each currency, as in `{"usd": 800, "minutes": 45}`. The attribute has one
        number for each, in `unit`: the expected price.
    evaluation : float or tuple of float, default=0.0
        The price of evaluating one learner, the same for all or one for each, 0 or more.
    unit : str, default="units"
        What prices are measured in.
    named : bool, default=True
        Whether features are found by name; otherwise by the order of the columns.
    each : float, default=None
        One price for every feature of whatever data come; see `CostTable.uniform`.
    exchange : mapping of str to float, default={}
        What a unit of each currency is worth in `unit`. Required for all currencies that prices have.
    row_prices : mapping of str to LinearPrice, default={}
        The prices that depend on the row, by acquisition. Filled in from `prices`.
    amounts : mapping of str to mapping, default={}
        The amounts in each currency, by acquisition. Filled in from `prices`.
    upper : mapping of str to float, default={}
        For prices that were measured on training rows, their upper quantile: what `strict=True` decides by.
    missing : mapping of str to "not_ordered", default={}
        Features and acquisitions whose missing values say that nobody bought them, as in logs of what was ordered.
        Models learn a purchase from the rows that have it, and are measured where their purchases were logged.

    Examples
    --------
    >>> needs = {"tsh": ["draw", "tsh"], "t3": ["draw", "t3"]}
    >>> costs = CostTable(["tsh", "t3"], needs, {"draw": 2, "tsh": 20, "t3": 9})
    >>> costs.price(["tsh", "t3"])
    31.0
    """

    features: tuple[str, ...]
    needs: Mapping[str, tuple[str, ...]]
    prices: Mapping[str, float]
    evaluation: float | tuple[float, ...] = 0.0
    unit: str = "units"
    named: bool = True
    each: float | None = None
    exchange: Mapping[str, float] = field(default_factory=dict)
    row_prices: Mapping[str, RowPrice] = field(default_factory=dict)
    amounts: Mapping[str, Mapping[str, float | RowPrice]] = field(default_factory=dict)
    upper: Mapping[str, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = {**dict(self.prices), **dict(self.row_prices), **dict(self.amounts)}
        exchange, prices, rules, amounts = currencies.read_prices(given, self.exchange)
        upper = {str(a): checked_price(f"the upper price of {a!r}", p) for a, p in dict(self.upper).items()}
        upper = {a: p for a, p in upper.items() if a in prices and a not in rules}
        features = tuple(str(f) for f in self.features)
        if len(set(features)) < len(features):
            twice = sorted(f for f, n in Counter(features).items() if n > 1)
            raise ValueError(f"A feature is priced once, but {_some(twice)} stands twice. Remove the second line.")
        wants = {str(f): _names(f, a) for f, a in dict(self.needs).items()}
        _same_features(features, wants)
        needs = {f: tuple(dict.fromkeys(str(a) for a in wants[f])) for f in features}
        for feature, wanted in needs.items():
            unknown = [a for a in wanted if a not in prices]
            if unknown:
                raise ValueError(
                    f"Feature {feature!r} needs {_some(unknown)}, which has no price. Add it to the acquisitions."
                )
        evaluation: float | tuple[float, ...]
        if np.ndim(self.evaluation) == 0:
            evaluation = checked_price("the price of an evaluation", self.evaluation)
        else:
            evaluation = tuple(checked_price("the price of an evaluation", e) for e in np.asarray(self.evaluation))
        check_row_prices(needs, rules)
        missing = self._checked_missing(features, prices)
        for name, value in (("features", features), ("needs", MappingProxyType(needs))):
            object.__setattr__(self, name, value)
        own = (prices, exchange, rules, amounts, upper, missing)
        names = ("prices", "exchange", "row_prices", "amounts", "upper", "missing")
        tables: dict[str, dict[str, Any]] = dict(zip(names, own))
        for name, table in tables.items():
            object.__setattr__(self, name, MappingProxyType(table))
        if exchange and self.unit == "units":
            object.__setattr__(self, "unit", next((c for c, rate in exchange.items() if rate == 1.0), "units"))
        object.__setattr__(self, "evaluation", evaluation)

    def _checked_missing(self, features: tuple[str, ...], prices: Mapping[str, Any]) -> dict[str, str]:
        """What `missing` says of features and acquisitions that the table has."""
        missing = {str(name): str(kind) for name, kind in dict(self.missing).items()}
        for name, kind in missing.items():
            if kind != NOT_ORDERED:
                raise ValueError(f"missing of {name!r} is {kind!r}; it knows {NOT_ORDERED!r}. Else leave it out.")
            if self.each is None and name not in features and name not in prices:
                raise ValueError(f"missing names {name!r}, which is no feature and no acquisition of the table.")
        return missing

    # ---- making one -------------------------------------------------------------------------------------------

    @classmethod
    def per_feature(
        cls,
        prices: Mapping[str, Any] | ArrayLike,
        *,
        evaluation: float | Sequence[float] = 0.0,
        unit: str = "units",
        exchange: Mapping[str, float] | None = None,
        missing: Mapping[str, str] | None = None,
    ) -> CostTable:
        """One price per feature: a dict of names, or an array in the order of the columns. A feature on which the price
        of another depends is needed by that other."""
        named = hasattr(prices, "items")
        if named:
            table = {str(name): price for name, price in prices.items()}  # type: ignore[union-attr]
        else:
            table = {f"x{i}": price for i, price in enumerate(np.asarray(prices).ravel())}
        return cls(
            features=tuple(table),
            needs=with_price_needs({f: (f,) for f in table}, table),
            prices=table,
            evaluation=evaluation,  # type: ignore[arg-type]
            unit=unit,
            named=named,
            exchange=exchange or {},
            missing=missing or {},
        )

    @classmethod
    def uniform(cls, price: float = 1.0, *, evaluation: float = 0.0, unit: str = "features") -> CostTable:
        """The same price for every feature; it sizes itself to the data at fit."""
        checked_price("the uniform price", price)
        return cls(features=(), needs={}, prices={}, evaluation=evaluation, unit=unit, each=price)

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        *,
        evaluation: float = 0.0,
        unit: str = "units",
        exchange: Mapping[str, float] | None = None,
    ) -> CostTable:
        """Read `feature,cost[,group,group_cost]`; with a group, `cost` is the price beyond the group's own. A cost is a
        number, `0.01 + 2e-5*tokens`, or `usd: 800; minutes: 45` with an `exchange`."""
        fields = files.from_records(files.read_csv(path), str(path))
        return cls(**fields, evaluation=evaluation, unit=unit, exchange=exchange or {})

    @classmethod
    def from_frame(
        cls, frame: Any, *, evaluation: float = 0.0, unit: str = "units", exchange: Mapping[str, float] | None = None
    ) -> CostTable:
        """Read a dataframe (pandas, polars, pyarrow) with the columns of `from_csv`."""
        fields = files.from_records(files.read_frame(frame), "the frame")
        return cls(**fields, evaluation=evaluation, unit=unit, exchange=exchange or {})

    @classmethod
    def from_toml(cls, path: str | Path) -> CostTable:
        """Read `unit`, `evaluation`, the `[acquisitions]` price table, `[features]`: what each needs, and `[exchange]`,
        if prices have currencies."""
        return cls(**files.read_toml(path))

    @classmethod
    def from_profile(
        cls, profile: MeasuredPrices, *, clock: str = "cpu", statistic: str = "mean", evaluation: float = 0.0
    ) -> CostTable:
        """Prices in milliseconds as measured on a sample of rows (`miserly.runtime.profile`)."""
        prices = {name: 1e3 * seconds for name, seconds in profile.seconds(clock, statistic).items()}
        needs = dict(profile.needs)
        return cls(features=tuple(needs), needs=needs, prices=prices, evaluation=evaluation, unit="ms")

    @classmethod
    def from_file(cls, path: str | Path) -> CostTable:
        """Read a `.toml` or a `.csv` file of prices."""
        return cls.from_toml(path) if Path(path).suffix == ".toml" else cls.from_csv(path)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as a plan file keeps it; `CostTable(**d)` gives the table back."""
        evaluation = list(self.evaluation) if isinstance(self.evaluation, tuple) else self.evaluation
        return {
            "features": list(self.features),
            "needs": {f: list(a) for f, a in self.needs.items()},
            "prices": dict(self.prices),
            "evaluation": evaluation,
            "unit": self.unit,
            "named": self.named,
            "each": self.each,
            **currencies.as_plain(self.exchange, self.row_prices, self.amounts),
            **({"upper": dict(self.upper)} if self.upper else {}),
            **({"missing": dict(self.missing)} if self.missing else {}),
        }

    def to_toml(self, path: str | Path) -> None:
        """Write the file that `from_toml` reads."""
        write_whole(path, files.as_toml(self.to_dict()))

    def _repr_html_(self) -> str:
        needed = {name: [f for f, needs in self.needs.items() if name in needs] for name in self.acquisitions}
        rows = [
            {"acquisition": name, f"price ({self.unit})": price, "for": needed[name]}
            for name, price in self.prices.items()
        ]
        largest = sorted(self.prices.items(), key=lambda pair: -pair[1])
        return _display.bars(largest, f"prices in {self.unit}") + _display.table(rows, repr(self)[1:-1])

    def __repr__(self) -> str:
        if self.each is not None:
            return f"CostTable.uniform({self.each:g})"
        return f"<CostTable: {len(self.features)} features, {len(self.prices)} acquisitions, in {self.unit}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (self.to_dict(),))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CostTable) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        prices, needs = tuple(self.specs.items()), tuple(self.needs[f] for f in self.features)
        prices = tuple((a, tuple(p.items()) if isinstance(p, Mapping) else p) for a, p in prices)
        exchange = tuple(self.exchange.items())
        return (
            self.features,
            needs,
            prices,
            self.evaluation,
            self.unit,
            self.named,
            self.each,
            exchange,
            *self.upper.items(),
            *sorted(self.missing.items()),
        )

    # ---- asking it --------------------------------------------------------------------------------------------

    @property
    def specs(self) -> dict[str, Any]:
        """The price of each acquisition as the user gives it: a number, a price by row, or amounts by currency."""
        return {a: self.amounts.get(a, self.row_prices.get(a, p)) for a, p in self.prices.items()}

    @property
    def acquisitions(self) -> tuple[str, ...]:
        """The names of what is paid for, in the order of their numbers."""
        return tuple(self.prices)

    def price_of(self, acquisitions: int | Iterable[str | int], owned: int | Iterable[str | int] = 0) -> float:
        """What a set of acquisitions costs a row that owns others: the only sum of prices outside the ledger.

        Parameters
        ----------
        acquisitions : int or iterable of str or int
            The acquisitions by name or by number, each paid once; or their numbers as the bits of an integer.
        owned : int or iterable of str or int, default=0
            What the row owns already and does not pay for.

        Returns
        -------
        float
            The exactly rounded sum, which does not depend on any order.

        Examples
        --------
        >>> costs = CostTable.per_feature({"age": 1.0, "crp": 12.5})
        >>> costs.price_of(["age", "crp"], owned=["age"])
        12.5
        """
        return math.fsum(self.price_list[a] for a in set_bits(self.bits(acquisitions) & ~self.bits(owned)))

    def bits(self, acquisitions: int | Iterable[str | int]) -> int:
        """Acquisitions, by name or number, as the bits of an integer."""
        if isinstance(acquisitions, int):
            return acquisitions
        found = 0
        for name in (acquisitions,) if isinstance(acquisitions, str) else acquisitions:
            if isinstance(name, str) and name not in self._number:
                raise KeyError(f"No acquisition is called {name!r}. There are: {_some(self.acquisitions)}.")
            found |= 1 << (self._number[name] if isinstance(name, str) else int(name))
        return found

    def price(self, features: Iterable[str]) -> float:
        """What a set of features costs a row that owns nothing: the union of their acquisitions."""
        wanted = 0
        for feature in (features,) if isinstance(features, str) else features:
            wanted |= self._mask_of(feature)
        return self.price_of(wanted)

    def marginal(self, owned: Iterable[str] = ()) -> dict[str, float]:
        """What each feature would cost a row that owns these acquisitions already."""
        have = self.bits(owned)
        return {f: self.price_of(m, have) for f, m in self._masks.items()}

    def restrict(self, features: Iterable[str]) -> CostTable:
        """The table of these features alone, with only the acquisitions that they need."""
        kept = tuple(str(f) for f in features)
        for feature in kept:
            self._mask_of(feature)
        needs = {f: self.needs[f] for f in kept}
        wanted = {a for acquisitions in needs.values() for a in acquisitions}
        prices = {a: p for a, p in self.specs.items() if a in wanted}
        missing = {name: kind for name, kind in self.missing.items() if name in needs or name in wanted}
        return replace(self, features=kept, needs=needs, prices=prices, row_prices={}, amounts={}, missing=missing)

    def scaled(self, factor: float) -> CostTable:
        """All prices times a factor: another unit."""
        evaluation = tuple(e * factor for e in self.evaluation) if isinstance(self.evaluation, tuple) else None
        return replace(
            self,
            **currencies.scaled(self.specs, self.exchange, factor),
            upper={a: p * factor for a, p in self.upper.items()},
            evaluation=self.evaluation * factor if evaluation is None else evaluation,  # type: ignore[operator]
            each=None if self.each is None else self.each * factor,
        )

    def changed(self, change: Callable[[RowPrice], RowPrice]) -> CostTable:
        """The table with a change of every price that depends on the row."""
        return replace(self, prices=currencies.mapped(self.specs, change), row_prices={}, amounts={})

    def cautious(self) -> CostTable:
        """The table with the upper quantile of each measured price in its place."""
        prices = currencies.mapped(self.specs | dict(self.upper), lambda price: price.cautious())
        return replace(self, prices=prices, row_prices={}, amounts={}, upper={})

    def bind(self, columns: Sequence[str] | SupportsIndex, owner: str = "X") -> CostTable:
        """The table in the order of a data set's columns (their names, or their number); refuses a mismatch, in words
        about their `owner`."""
        if isinstance(columns, SupportsIndex):
            names, n_columns = None, columns.__index__()
        else:
            names, n_columns = tuple(str(c) for c in columns), len(columns)
        if self.each is not None:
            made = names or tuple(f"x{i}" for i in range(n_columns))
            needs, prices = {f: (f,) for f in made}, dict.fromkeys(made, self.each)
            named = names is not None
            return replace(self, features=made, needs=needs, prices=prices, each=None, named=named)
        if names is None or not self.named:
            if n_columns != len(self.features):
                raise ValueError(
                    f"The cost table prices {len(self.features)} features, {owner} has {n_columns} columns. "
                    "Give one price per column, in the order of the columns."
                )
            return self if names is None else self._renamed(names)
        missing = [f for f in names if f not in self.needs]
        if missing:
            raise ValueError(
                f"The cost table prices {len(self.features)} features, {owner} has {n_columns}: "
                f"missing {_some(missing)}. Add a price for each; there is no default price."
            )
        known = set(names)
        extra = [f for f in self.features if f not in known]
        if extra:
            raise ValueError(
                f"The cost table prices {_some(extra)}, which {owner} has not. "
                "Check the names, or use costs.restrict(names)."
            )
        return self if names == self.features else replace(self, features=names)

    def describe(self) -> str:
        """The table in words: each acquisition, its price, and the features that it serves."""
        if self.each is not None:
            return f"every feature costs {self.each:g} {self.unit}; evaluation {self.evaluation_text}"
        served: dict[str, list[str]] = {a: [] for a in self.prices}
        for feature, wanted in self.needs.items():
            for acquisition in wanted:
                served[acquisition].append(feature)
        width = max((len(a) for a in self.prices), default=0)
        lines = [
            f"{len(self.features)} features, {len(self.prices)} acquisitions, "
            f"{self.price_of(self.acquisitions):g} {self.unit} in all; evaluation {self.evaluation_text}"
        ]
        for acquisition, price in sorted(self.prices.items(), key=lambda item: item[1]):
            lines.append(f"  {acquisition:<{width}}  {price:>10g}  {_some(served[acquisition], 6)}")
        return "\n".join(lines)

    @property
    def evaluation_text(self) -> str:
        """The price of an evaluation in words: always shown, since it is zero unless given."""
        if isinstance(self.evaluation, tuple):
            return f"{min(self.evaluation):g} to {max(self.evaluation):g} per learner"
        return f"{self.evaluation:g} per learner"

    # ---- numbers for the kernels and the ledger ---------------------------------------------------------------

    @cached_property
    def price_list(self) -> tuple[float, ...]:
        """The price of each acquisition, by number."""
        return tuple(self.prices.values())

    @cached_property
    def feature_masks(self) -> tuple[int, ...]:
        """The acquisitions that each feature needs, as the bits of an integer."""
        return tuple(self._masks[f] for f in self.features)

    @cached_property
    def not_ordered(self) -> dict[int, tuple[int, ...]]:
        """The acquisitions, by number, whose missing values say that nobody bought them, and the features of each."""
        masks, found = self.feature_masks, {}
        marked = [f in self.missing or any(a in self.missing for a in self.needs[f]) for f in self.features]
        for a in range(len(self.prices)):
            served = tuple(f for f, mask in enumerate(masks) if mask >> a & 1)
            if served and all(marked[f] for f in served):
                found[a] = served
        return found

    @cached_property
    def needs_words(self) -> NDArray[np.uint64]:
        """The acquisitions that each feature needs as 64-bit words, for the kernels."""
        n_words = max(1, -(-len(self.prices) // 64))
        raw = b"".join(mask.to_bytes(n_words * 8, "little") for mask in self.feature_masks)
        return np.frombuffer(raw, "<u8").reshape(-1, n_words)

    def evaluation_prices(self, n_learners: int) -> tuple[float, ...]:
        """The price of each of a dictionary's learners."""
        if not isinstance(self.evaluation, tuple):
            return (self.evaluation,) * n_learners
        if len(self.evaluation) != n_learners:
            raise ValueError(
                f"The cost table has {len(self.evaluation)} evaluation prices, the dictionary {n_learners} learners. "
                "Give one price for all, or one for each learner."
            )
        return self.evaluation

    @cached_property
    def _number(self) -> dict[str, int]:
        return {a: i for i, a in enumerate(self.prices)}

    @cached_property
    def _masks(self) -> dict[str, int]:
        return {f: sum(1 << self._number[a] for a in wanted) for f, wanted in self.needs.items()}

    def _mask_of(self, feature: str) -> int:
        if self.each is not None:
            raise KeyError("A uniform cost table has no features before it is bound to data: costs.bind(names) first.")
        if feature not in self._masks:
            raise KeyError(f"The cost table has no feature {feature!r}. It prices: {_some(self.features)}.")
        return self._masks[feature]

    def _renamed(self, names: tuple[str, ...]) -> CostTable:
        """Put column names in place of the invented ones; one-to-one acquisitions take the name too."""
        own = {
            a: new
            for old, new in zip(self.features, names)
            for a in self.needs[old]
            if a == old and (self.needs[old] == (old,) or self.row_prices)
        }
        taken = set(self.prices) - set(own)
        clash = [name for name in own.values() if name in taken]
        if clash:
            raise ValueError(f"The column {clash[0]!r} has the name of a shared acquisition. Rename one of them.")
        renamed = currencies.renamed(self.specs, dict(zip(self.features, names)))
        return replace(
            self,
            features=names,
            needs={new: tuple(own.get(a, a) for a in self.needs[old]) for old, new in zip(self.features, names)},
            prices={own.get(a, a): p for a, p in renamed.items()},
            row_prices={},
            amounts={},
            upper={own.get(a, a): p for a, p in self.upper.items()},
            missing={{**dict(zip(self.features, names)), **own}.get(a, a): kind for a, kind in self.missing.items()},
            named=True,
        )


def _rebuild(fields: dict[str, Any]) -> CostTable:
    return CostTable(**fields)


def _names(feature: str, needs: Any) -> tuple[str, ...]:
    if isinstance(needs, str):
        return (needs,)
    if not isinstance(needs, Iterable):
        raise ValueError(
            f"Feature {feature!r} needs a list of acquisitions, got {needs!r}. Prices are given by `prices`."
        )
    return tuple(needs)


def _same_features(features: tuple[str, ...], needs: Mapping[str, Any]) -> None:
    lost = [f for f in features if f not in needs]
    if lost:
        raise ValueError(f"No needs are given for {_some(lost)}. Add what each needs (an empty list if it is free).")
    known = set(features)
    extra = [f for f in needs if f not in known]
    if extra:
        raise ValueError(f"Needs are given for {_some(extra)}, which the features do not list.")


def _some(names: Sequence[str], limit: int = 5) -> str:
    shown = ", ".join(repr(n) for n in list(names)[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
