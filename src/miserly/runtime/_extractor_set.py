"""The extractors of one plan: checked against it once, then asked which of them a purchase takes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from miserly.costs import CostTable, set_bits
from miserly.plan import Plan
from miserly.runtime._extractor import Extractor, Pair
from miserly.runtime._given import Given, spared
from miserly.schema import Schema, nearest_names

REMEMBERED = 1 << 14


class CallBatch(NamedTuple):
    """What one purchase takes: extractors in an order in which they can run, and who yields each feature.

    `columns` has, for each extractor, the columns of the row into which its values go, where all of them arrive now,
    none is a category and each is called for one row; else it is None.
    """

    extractors: tuple[Extractor, ...]
    features: tuple[tuple[str, str], ...]
    columns: tuple[NDArray[np.intp], ...] | None


class ExtractorSet:
    """The extractors that a plan may call, by name.

    Parameters
    ----------
    plan : Plan
        What decides which of them are called.
    extractors : iterable of Extractor
        All that there are; those that the plan never needs are left out.

    Raises
    ------
    ValueError
        If one is missing or doubled, if they need each other in a circle, or if one would run unpaid.
    """

    def __init__(self, plan: Plan, extractors: Iterable[Extractor]) -> None:
        self.plan = plan
        given = list(extractors)
        for other in given:
            if not isinstance(other, Extractor):
                raise TypeError(
                    f"{other!r} is not an extractor. Put @extractor('acquisition', yields=[...]) before it."
                )
        self._by_name = _by_name(given)
        order = in_order(self._by_name)
        self._closure = closures(order)
        costs, used = plan.costs, [plan.costs.features[f] for f in plan.used_features]
        self._yielded_by = _yielded_by(given, used)
        self._check_acquisitions(used)
        self._check_needs(used)
        wanted = {self._yielded_by[f].name for f in used} | {a for f in used for a in costs.needs[f]}
        wanted |= {n for name in wanted for n in self._closure[name][0]}
        self.extractors = tuple(e for e in order if e.name in wanted)
        self.is_plain = all(e.is_plain for e in self.extractors)
        self.price = {e.name: costs.prices.get(e.acquisition, 0.0) if e.acquisition else 0.0 for e in self.extractors}
        self._schema = plan.schema or Schema.of_names(costs.features)
        self._words = {column.name for column in self._schema.columns if column.kind != "number"}
        looked_at = set(used)
        self.places = {e.name: [i for i, f in enumerate(e.yields) if f in looked_at] for e in self.extractors}
        self._wanted = {e.name: [f for f in e.yields if f in looked_at] for e in self.extractors}
        self._batches = lru_cache(REMEMBERED)(self._find_batch)
        self._spared = lru_cache(REMEMBERED)(lambda names: spared(plan, self.extractors, self._closure, names))
        for e in self.batch(0, 0).extractors:
            if not e.is_plain:
                raise ValueError(
                    f"Extractor {e.name!r} yields features that cost nothing: it must be a plain function."
                )

    def batch(self, owned: int, asked: int) -> CallBatch:
        """What must run when a row that owns some acquisitions buys others (none of either: what is free)."""
        return self._batches(owned, asked)

    def _find_batch(self, owned: int, asked: int) -> CallBatch:
        bought = set(self.plan.tables.acquisition_names(asked))
        features = tuple((f, self._yielded_by[f].name) for f in self.plan.tables.arriving(owned, asked))
        names = {n for name in (*bought, *(by for _, by in features)) for n in self._closure[name][0]}
        chosen = tuple(e for e in self.extractors if (e.acquisition in bought if e.acquisition else e.name in names))
        return CallBatch(chosen, features, self._columns(chosen, features))

    def _columns(
        self, extractors: tuple[Extractor, ...], features: tuple[tuple[str, str], ...]
    ) -> tuple[NDArray[np.intp], ...] | None:
        wanted = [self._wanted[e.name] for e in extractors]
        given = {name for names in wanted for name in names}
        is_odd = any(e.many for e in extractors) or given & self._words
        if is_odd or given != {name for name, _ in features}:
            return None
        return tuple(np.array([self.plan.tables.feature_numbers[name] for name in names], np.intp) for names in wanted)

    def values(self, extractor: Extractor, result: Any) -> dict[str, float]:
        """The numbers in an extractor's result that the plan may look at; None is a missing value, categories become
        their codes."""
        return self._numbers(zip(self._wanted[extractor.name], extractor.read(result, self.places[extractor.name])))

    def given(self, features: Mapping[str, Any]) -> Given:
        """What follows from values that the caller has already; those of an acquisition of which not all are given are
        left aside."""
        for name in features:
            if name not in self.plan.tables.feature_numbers:
                hint = did_you_mean(name, self.plan.costs.features)
                raise ValueError(f"The plan knows no feature {name!r}, which was given.{hint}")
        names = frozenset(features)
        owned, running = self._spared(names)
        first = self.plan.tables.known_at_first(owned)
        try:
            values = self._numbers((name, features[name]) for name in first if name in names)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"A feature that was given is no number: {error}.") from None
        return Given(values, self.plan.tables.acquisition_names(owned), running)

    def _numbers(self, named: Iterable[tuple[str, Any]]) -> dict[str, float]:
        words, schema = self._words, self._schema
        return {
            name: schema.number(name, value)
            if name in words or isinstance(value, str)
            else math.nan
            if value is None
            else float(value)
            for name, value in named
        }

    # ---- checks when the runner is made -----------------------------------------------------------------------

    def _check_acquisitions(self, used: list[str]) -> None:
        performed = {e.acquisition for e in self._by_name.values()}
        for feature in used:
            for acquisition in self.plan.costs.needs[feature]:
                if acquisition not in performed:
                    others = sorted(e for e in performed if e) or ["none"]
                    hint = did_you_mean(acquisition, others)
                    raise ValueError(
                        f"The plan may buy {acquisition!r} (for {feature!r}), but no extractor performs it. "
                        f"There are extractors for: {', '.join(others)}.{hint}"
                    )

    def _check_needs(self, used: list[str]) -> None:
        """What runs must be paid: a feature needs all that the extractors behind it need."""
        for feature in used:
            paid = set(self.plan.costs.needs[feature])
            for name in (self._yielded_by[feature].name, *paid):
                unpaid = sorted(self._closure[name][1] - paid)
                if unpaid:
                    raise ValueError(
                        f"Extractor {name!r} takes {unpaid[0]!r}, but feature {feature!r} does not need {unpaid[0]!r} "
                        f"in the cost table, so it would be done unpaid. Add it to the needs of {feature!r}."
                    )


def _by_name(extractors: list[Extractor]) -> dict[str, Extractor]:
    named: dict[str, Extractor] = {}
    for e in extractors:
        if e.name in named:
            raise ValueError(f"Two extractors perform {e.name!r}: keep one.")
        named[e.name] = e
    return named


def in_order(named: Mapping[str, Extractor]) -> list[Extractor]:
    for e in named.values():
        for other in e.needs:
            if other not in named:
                raise ValueError(f"Extractor {e.name!r} needs {other!r}, and there is no extractor of that name.")
    try:
        return [named[name] for name in TopologicalSorter({e.name: e.needs for e in named.values()}).static_order()]
    except CycleError as error:
        raise ValueError(f"Extractors need each other in a circle: {' → '.join(error.args[1])}.") from None


def closures(order: list[Extractor]) -> dict[str, tuple[set[str], set[str]]]:
    """All extractors and all acquisitions behind each extractor, itself included."""
    closures: dict[str, tuple[set[str], set[str]]] = {}
    for e in order:
        names, bought = {e.name}, {e.acquisition} if e.acquisition else set()
        for other in e.needs:
            names |= closures[other][0]
            bought |= closures[other][1]
        closures[e.name] = names, bought
    return closures


def _yielded_by(extractors: list[Extractor], used: list[str]) -> dict[str, Extractor]:
    yielded: dict[str, Extractor] = {}
    for e in extractors:
        for feature in e.yields:
            if feature in yielded:
                raise ValueError(
                    f"Extractors {yielded[feature].name!r} and {e.name!r} both yield {feature!r}: keep one."
                )
            yielded[feature] = e
    for feature in used:
        if feature not in yielded:
            raise ValueError(
                f"The plan looks at {feature!r}, which no extractor yields.{did_you_mean(feature, yielded)}"
            )
    return yielded


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The known names that are nearest to one that is not, as the end of an error; nothing if none is near."""
    near = nearest_names(name, known)
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


def readers(costs: CostTable) -> list[Extractor]:
    """Return extractors that read rows which are there already: mappings from feature to value.

    Parameters
    ----------
    costs : CostTable
        One extractor is made for each of its acquisitions, and one for each derived feature.

    Returns
    -------
    list of Extractor
        For rows, and for the documents of a list.

    Examples
    --------
    >>> import miserly as ms
    >>> from miserly.runtime import readers
    >>> age, crp = readers(ms.CostTable.per_feature({"age": 1.0, "crp": 5.0}))
    >>> crp.acquisition, crp({"age": 60.0, "crp": 3.0})
    ('crp', {'crp': 3.0})
    """

    def reading(acquisition: str | None, name: str, features: tuple[str, ...], needs: tuple[str, ...]) -> Extractor:
        def read(row: Any, *_: Any) -> dict[str, Any]:
            known = row.document if type(row) is Pair else row
            return {f: known[f] for f in features}

        read.__name__ = name
        return Extractor(read, acquisition, features, needs, inline=True)

    alone: dict[str, list[str]] = {a: [] for a in costs.acquisitions}
    derived: list[Extractor] = []
    for f, mask in zip(costs.features, costs.feature_masks):
        needs = tuple(costs.acquisitions[a] for a in set_bits(mask))
        if len(needs) == 1:
            alone[needs[0]].append(f)
        else:
            derived.append(reading(None, f"derive {f}", (f,), needs))
    return [*(reading(a, a, tuple(fs), ()) for a, fs in alone.items()), *derived]
