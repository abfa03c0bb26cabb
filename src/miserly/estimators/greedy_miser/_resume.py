"""Going on with a fit: the rounds that are done, by this model or by one that was killed, and what their rows own."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from miserly.boosting import BackendOfRows, BinnedDataset, Boosted, Checkpoint, Loss, ModelPricing, RowPricing
from miserly.costs import CostTable, set_bits
from miserly.estimators._base import PlanEstimator, dense_blocks
from miserly.estimators.greedy_miser._validation import add_round
from miserly.kernels.trees import buy_paths
from miserly.plan import Trees, stack_trees

MAY_CHANGE = ("n_estimators", "warm_start", "n_jobs", "n_iter_no_change", "costs")  # costs count by their content


def progress_of(
    model: PlanEstimator, loss: Loss, costs: CostTable, shape: tuple[int, int], path: str | Path | None
) -> Checkpoint:
    """What is done already; with a path, the file in which each round is kept."""
    params = model.get_params(deep=False)
    if path is None:
        return Checkpoint(_earlier(model, loss, params))
    same = sorted((name, value) for name, value in params.items() if name not in MAY_CHANGE)
    about = repr((type(model).__name__, same, (type(loss).__name__, loss.n_outputs), costs.to_dict(), shape))
    progress = Checkpoint(None, path, hashlib.sha256(about.encode()).hexdigest())
    kept = progress.load() if params["warm_start"] else None
    earlier = _earlier(model, loss, params)
    own = earlier is not None and (kept is None or len(earlier.rounds) > len(kept.rounds))
    progress.last = earlier if own else kept
    return progress


def _earlier(model: PlanEstimator, loss: Loss, params: dict[str, Any]) -> Boosted | None:
    """The model's own fit to go on from."""
    earlier: Boosted | None = getattr(model, "_boosted", None) if params["warm_start"] else None
    if earlier is None:
        return None
    if params["n_estimators"] < earlier.n_tried:
        raise ValueError(
            f"n_estimators={params['n_estimators']} is less than the {earlier.n_tried} rounds done already: with "
            "warm_start=True it counts all rounds. Raise it, or set warm_start=False to start again."
        )
    if len(earlier.constant) != loss.n_outputs or _all_trees(earlier).n_features > model.n_features_in_:
        raise ValueError(
            "warm_start=True goes on with the earlier fit, which had other features or classes. Set it to False."
        )
    return earlier


def resume(earlier: Boosted, X: Any, backend: Any, pricing: ModelPricing | RowPricing, costs: CostTable) -> None:
    """Scores of the earlier rounds; what they paid is not paid again."""
    trees = _all_trees(earlier)
    if isinstance(pricing, ModelPricing):
        pricing.own(a for f in trees.used for a in set_bits(costs.feature_masks[f]))
    if isinstance(X, (BinnedDataset, BackendOfRows)):
        by_path = isinstance(pricing, RowPricing)
        needs = [tuple(set_bits(mask)) for mask in costs.feature_masks] if by_path else []
        pairs = [pair for this in earlier.rounds for pair in zip(this.outputs, this.tables)]
        backend.replay(earlier.constant, pairs, needs)
        return
    scores = np.repeat(earlier.constant[:, None], X.shape[0], axis=1)
    for rows, block in dense_blocks(X):
        for this in earlier.rounds:
            add_round(this, block, scores[:, rows])
    by_path = isinstance(pricing, RowPricing)
    backend.resume(scores, _owners_by_path(trees, X, costs) if by_path else None)


def _all_trees(boosted: Boosted) -> Trees:
    return stack_trees([table for this in boosted.rounds for table in this.tables])


def _owners_by_path(trees: Trees, X: Any, costs: CostTable) -> np.ndarray:
    """What each row bought on its way through some trees: row × word of 64 acquisitions."""
    needs = costs.needs_words
    bits = np.zeros((X.shape[0], needs.shape[1]), np.uint64)
    for rows, block in dense_blocks(X):
        numbers, learners = np.arange(len(block)), np.arange(len(trees), dtype=np.int32)
        buy_paths(np.ascontiguousarray(block), numbers, trees.table, learners, needs, bits[rows])
    return bits
