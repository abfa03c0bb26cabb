"""Training and validation rows of one table: at random and stratified, by whole groups, or by time."""

from __future__ import annotations

import numpy as np

from miserly.datasets._tables import Table


def split_table(table: Table, share: float = 0.25, seed: int = 0, stratify: bool = True) -> tuple[Table, Table]:
    """Split a table into training and validation rows.

    With times, the latest rows are validation rows; with query ids or groups, whole queries or groups are; otherwise
    rows are drawn at random, from each label its share if `stratify`.

    Parameters
    ----------
    table : Table
        The rows.
    share : float, default=0.25
        The share of validation rows, above 0 and below 1.
    seed : int, default=0
        Seed of the draw.
    stratify : bool, default=True
        Whether validation rows have the labels in the same shares, for classes.

    Returns
    -------
    tuple of two Tables
        Training rows and validation rows, each in the order of the table.

    Examples
    --------
    >>> table = Table(np.zeros((8, 1)), ("a",), np.array([0, 1] * 4), None)
    >>> train, validation = split_table(table)
    >>> len(train.y), sorted(validation.y.tolist())
    (6, [0, 1])
    """
    if not 0 < share < 1:
        raise ValueError(f"The share of validation rows is above 0 and below 1, got {share!r}.")
    n_rows = len(table.X)
    rng = np.random.default_rng(seed)
    if table.times is not None:
        held = _latest(table.times, share)
    elif table.qid is not None or table.groups is not None:
        held = _whole_groups(np.asarray(table.qid if table.groups is None else table.groups), share, rng)
    elif stratify and table.y is not None:
        held = _stratified(table.y, share, rng)
    else:
        held = rng.permutation(n_rows) < round(share * n_rows)
    if not held.any() or held.all():
        raise ValueError(
            f"{n_rows} rows cannot be split into training and validation rows this way: one part is empty. "
            "Give a file of validation rows, or more data."
        )
    return table.take(~held), table.take(held)


def _latest(times: np.ndarray, share: float) -> np.ndarray:
    """Rows after the time that leaves about this share behind it; rows of one time stay together."""
    known = np.where(np.isnan(times), -np.inf, times)
    cut = np.sort(known)[int((1 - share) * len(known))]
    late = known >= cut
    return late if not late.all() else known > cut


def _whole_groups(groups: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    distinct, place, counts = np.unique(groups, return_inverse=True, return_counts=True)
    order = rng.permutation(len(distinct))
    before = np.cumsum(counts[order]) - counts[order]
    chosen = np.zeros(len(distinct), bool)
    chosen[order] = before < share * len(place) - 0.5 * counts[order]
    if not chosen.any():
        chosen[order[0]] = len(distinct) > 1
    return np.asarray(chosen[place])


def _stratified(y: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """The rows of each label at evenly spaced places of a random order, so that rare labels are on both sides."""
    order = rng.permutation(len(y))
    by_label = order[np.argsort(y[order], kind="stable")]
    held = np.zeros(len(y), bool)
    steps = np.arange(1, len(y) + 1)
    held[by_label] = np.floor(steps * share + 0.5) > np.floor((steps - 1) * share + 0.5)
    return held
