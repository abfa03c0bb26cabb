"""What need not be bought because the caller has it already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from miserly.plan import Plan
from miserly.runtime._extractor import Extractor


class Given(NamedTuple):
    """Values that the caller gives, the acquisitions that are owned by that, and the extractors that may still run."""

    values: Mapping[str, float]
    owned: tuple[str, ...]
    running: frozenset[str]


NOTHING_GIVEN = Given({}, (), frozenset())


def spared(
    plan: Plan, extractors: Iterable[Extractor], behind: Mapping[str, tuple[set[str], set[str]]], given: frozenset[str]
) -> tuple[int, frozenset[str]]:
    """The acquisitions that nobody need buy when some features are given, and the extractors that may run all the same.

    An acquisition is owned if every feature that it serves is given, with all that this one needs besides, and if no
    extractor that may still run takes its result. `behind` names the extractors and acquisitions behind each extractor.
    """
    masks = {plan.costs.features[f]: plan.costs.feature_masks[f] for f in plan.used_features}
    bit = {name: 1 << i for i, name in enumerate(plan.costs.acquisitions)}
    owned, last = sum({bit[a] for f in masks for a in plan.costs.needs[f]}), -1
    running: set[str] = set()
    while owned != last:
        last = owned
        for name, mask in masks.items():
            if name not in given or mask & ~owned:
                owned &= ~mask
        covered = {name for name, mask in masks.items() if name in given and not mask & ~owned}
        for e in extractors:
            is_spared = bit[e.acquisition] & owned if e.acquisition else True
            if not is_spared or any(f in masks and f not in covered for f in e.yields):
                running |= behind[e.name][0]
                for a in behind[e.name][1]:
                    owned &= ~bit.get(a, 0)
    return owned, frozenset(running)
