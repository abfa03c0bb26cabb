"""The user's constraints, in scikit-learn's forms, as the engine takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from miserly.boosting import Constraints


def constraints_of(model: Any, features: Sequence[str], n_outputs: int) -> Constraints | None:
    """What `monotonic_cst` and `interaction_cst` say; None if they say nothing."""
    signs = _signs(model.monotonic_cst, features)
    if signs and n_outputs > 1:
        raise ValueError(
            "monotonic_cst is for one score per row: numbers, ranks or two classes, not for more classes. Leave it out."
        )
    named = {name for name, sign in zip(features, signs) if sign} & set(getattr(model, "categories_", {}))
    if named:
        raise ValueError(f"monotonic_cst constrains {sorted(named)[0]!r}, whose categories have no order. Give it 0.")
    groups = _groups(model.interaction_cst, features)
    return Constraints(signs, groups) if signs or groups else None


def _signs(given: Any, features: Sequence[str]) -> tuple[int, ...]:
    if given is None:
        return ()
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in features]
        if unknown:
            raise ValueError(
                f"monotonic_cst names {unknown[0]!r}, which is no feature. The features: {[*features][:8]}."
            )
        given = [given.get(name, 0) for name in features]
    signs = np.asarray(given)
    if signs.shape != (len(features),) or not np.isin(signs, (-1, 0, 1)).all():
        raise ValueError(
            f"monotonic_cst has -1, 0 or 1 for each of the {len(features)} features, or is a dict, got {given!r}."
        )
    return tuple(int(sign) for sign in signs) if signs.any() else ()


def _groups(given: Any, features: Sequence[str]) -> tuple[frozenset[int], ...]:
    every = range(len(features))
    if given is None:
        return ()
    if isinstance(given, str):
        if given not in ("no_interactions", "pairwise"):
            raise ValueError(f"interaction_cst is 'no_interactions', 'pairwise' or a list of groups, got {given!r}.")
        return tuple(frozenset(group) for group in combinations(every, 1 if given == "no_interactions" else 2))
    number = {name: k for k, name in enumerate(features)}
    try:
        groups = [frozenset(number[f] if isinstance(f, str) else int(f) for f in group) for group in given]
    except (TypeError, KeyError, ValueError):
        raise ValueError(
            f"interaction_cst is a list of groups of features, by name or number, got {given!r}."
        ) from None
    if any(f not in every for group in groups for f in group):
        raise ValueError(f"interaction_cst names features by numbers from 0 to {len(features) - 1}, got {given!r}.")
    rest = frozenset(every).difference(*groups)
    return (*groups, rest) if rest else tuple(groups)
