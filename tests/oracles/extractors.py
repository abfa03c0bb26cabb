"""Extractors that read a row of a matrix, one for each acquisition, and tell what they were asked for."""

import asyncio
import threading
from dataclasses import replace

from miserly.costs import set_bits
from miserly.runtime import extractor


class Row:
    """A row that notes which features were read."""

    def __init__(self, features, values):
        self.values = dict(zip(features, map(float, values)))
        self.read = []

    def __getitem__(self, feature):
        self.read.append(feature)
        return self.values[feature]


def rows_of(plan, X):
    return [Row(plan.costs.features, x) for x in X]


def extractors_of(costs, is_async=False, many=False, break_up=None, **options):
    """One extractor for each acquisition; features that need several, or none, are derived by one without.

    `break_up(name, row)` is called first: it may raise or wait.
    """
    found = []
    alone = {a: [] for a in costs.acquisitions}
    for feature, mask in zip(costs.features, costs.feature_masks):
        needs = tuple(costs.acquisitions[a] for a in set_bits(mask))
        if len(needs) == 1:
            alone[needs[0]].append(feature)
        else:
            plain = not needs
            found.append(
                _reading(None, f"derive_{feature}", [feature], needs, is_async and not plain, many, break_up, options)
            )
    return [*found, *(_reading(a, a, fs, (), is_async, many, break_up, options) for a, fs in alone.items())]


def _reading(acquisition, name, features, needs, is_async, many, break_up, options):
    def one(row):
        if break_up is not None:
            break_up(name, row)
        return {f: row[f] for f in features}

    def plain(row, *_):
        return [one(r) for r in row] if many else one(row)

    async def later(row, *_):
        await asyncio.sleep(0)
        return plain(row)

    function = later if is_async else plain
    function.__name__ = name
    if not needs and acquisition is None:
        options = {}
    return extractor(acquisition, yields=features, needs=needs, many=many, **options)(function)


def own_threads():
    """The runtime's threads that are alive."""
    return [t.name for t in threading.enumerate() if t.name.startswith("miserly-")]


def of_documents(extractors, many=False):
    """The same for documents, which arrive as pairs with their query."""
    for e in extractors:

        def read(pairs, *more, inner=e.function):
            return inner([p.document for p in pairs] if many else pairs.document, *more)

        read.__name__ = e.function.__name__
        yield replace(e, function=read)
