"""How rows are divided for cross-validation: classes keep their shares, the rows of a query stay together."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

Fold = tuple[np.ndarray, np.ndarray]


def divide(y: np.ndarray, qid: Any, n_folds: int, seed: int, by_class: bool) -> list[Fold]:
    """Row numbers to fit on and to score, for each fold; none if there are too few rows or queries.

    A class with fewer rows than folds is in every training part, and scored there for lack of others.
    """
    if qid is not None:
        n_folds = min(n_folds, len(np.unique(qid)))
        split = GroupKFold(n_folds, shuffle=True, random_state=seed) if n_folds > 1 else None
        return [] if split is None else list(split.split(y, groups=qid))
    if not by_class:
        n_folds = min(n_folds, len(y))
        return list(KFold(n_folds, shuffle=True, random_state=seed).split(y)) if n_folds > 1 else []
    _, number = np.unique(y, return_inverse=True)
    counts = np.bincount(number)
    n_folds = int(min(n_folds, max(2, counts.min())))
    if counts.min() >= n_folds:
        return list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(y, number))
    fold = np.random.default_rng(seed).permutation(len(y)) % n_folds
    rare = np.isin(number, np.flatnonzero(counts < n_folds))
    return [
        (np.flatnonzero((fold != k) | rare), np.flatnonzero(fold == k)) for k in range(n_folds) if (fold == k).any()
    ]
