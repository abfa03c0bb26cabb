"""Feast: a feature view is an acquisition, and its online store is read only when a plan asks for it.

Only Feast's own interface is used (`get_online_features`, `get_feature_view`), so nothing of it is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from miserly.costs import CostTable
from miserly.runtime import Cache, Extractor, Pair, extractor

Entity = Callable[[Any], Mapping[str, Any]]


def feast_costs(store: Any, prices: Mapping[str, float], unit: str = "ms", full_names: bool = False) -> CostTable:
    """Prices of feature views as a cost table: whoever wants a feature pays for its view, once per row.

    Parameters
    ----------
    store : feast.FeatureStore
        Knows the views.
    prices : mapping
        What a read of each view costs, by its name.
    unit : str, default="ms"
        The unit of prices.
    full_names : bool, default=False
        Whether features are called `view__feature`, as Feast's `full_feature_names` does.

    Returns
    -------
    CostTable
        The features in the order of the views and of their fields.

    Examples
    --------
    >>> from miserly.integrations import feast_costs
    >>> costs = feast_costs(store, {"patients": 0.5, "labs": 12.0})  # doctest: +SKIP
    """
    needs: dict[str, tuple[str, ...]] = {}
    for view in prices:
        for name in _named(store, view, full_names):
            if name in needs:
                raise ValueError(f"Two views have a feature {name!r}. Use full_names=True.")
            needs[name] = (view,)
    return CostTable(tuple(needs), prices=dict(prices), needs=needs, unit=unit)


def feast_extractors(
    store: Any,
    views: Sequence[str],
    entity: Entity | Sequence[str],
    *,
    full_names: bool = False,
    timeout: float | None = 1.0,
    retries: int = 0,
    workers: int = 8,
    cache: Cache | None = None,
) -> list[Extractor]:
    """Extractors that read feature views from the online store, each when the plan buys it.

    Parameters
    ----------
    store : feast.FeatureStore
        What is read.
    views : sequence of str
        The names of the feature views; each is an acquisition.
    entity : callable or sequence of str
        Gives the entity keys of a row, such as `{"patient_id": 7}`, or the names of the row's values that are keys.
    full_names : bool, default=False
        Whether features are called `view__feature`.
    timeout : float or None, default=1.0
        Seconds for a read.
    retries : int, default=0
        How often a failed read is repeated, 0 or more.
    workers : int, default=8
        Reads at once for each view, 1 or more.
    cache : Cache or None, default=None
        Keeps what was read; rows are read one by one then, and otherwise together.

    Returns
    -------
    list of Extractor
        One for each view.

    Examples
    --------
    >>> from miserly.integrations import feast_extractors
    >>> readers = feast_extractors(store, ["patients", "labs"], entity=["patient_id"])  # doctest: +SKIP
    """
    keys = entity if callable(entity) else _by_names(tuple(entity))
    made = []
    for view in views:
        names = _named(store, view, full_names)
        fields = [f"{view}:{field}" for field in _fields(store, view)]
        make = extractor(view, yields=names, many=True, timeout=timeout, retries=retries, workers=workers, cache=cache)
        made.append(make(_reader(store, view, fields, names, keys)))
    return made


def _reader(store: Any, view: str, fields: list[str], names: list[str], keys: Entity) -> Callable[[list[Any]], Any]:
    def read(rows: list[Any]) -> list[dict[str, Any]]:
        asked = [dict(keys(row.document if type(row) is Pair else row)) for row in rows]
        answer = store.get_online_features(features=fields, entity_rows=asked, full_feature_names=True)
        found = answer.to_dict()
        columns = {name: found[field.replace(":", "__")] for name, field in zip(names, fields)}
        return [{name: values[i] for name, values in columns.items()} for i in range(len(rows))]

    read.__name__ = view
    return read


def _by_names(names: tuple[str, ...]) -> Entity:
    return lambda row: {name: row[name] for name in names}


def _fields(store: Any, view: str) -> list[str]:
    return [field.name for field in store.get_feature_view(view).features]


def _named(store: Any, view: str, full_names: bool) -> list[str]:
    return [f"{view}__{name}" if full_names else name for name in _fields(store, view)]
