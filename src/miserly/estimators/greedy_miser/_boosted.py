"""Boosted trees as estimators: from data to a chain of open gates, one node per round.

What is bought, and how it is charged, is the business of those who build on this.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from miserly.boosting import (
    BackendLostError,
    BackendOfRows,
    BinnedData,
    BinnedDataset,
    Boosted,
    Checkpoint,
    EachRowPricing,
    LocalBackend,
    Loss,
    ModelPricing,
    RowPricing,
    RowsLostError,
    Settings,
    TreeLimits,
    backend_for,
    bin_data,
    boost,
    is_remote,
)
from miserly.costs import CostTable
from miserly.estimators._base import (
    PlanEstimator,
    as_codes,
    check_eval_set,
    check_numbers,
    constraints,
    find_categories,
    row_weights,
)
from miserly.estimators.greedy_miser._chain import Purchase, chain, purchases
from miserly.estimators.greedy_miser._constraining import constraints_of
from miserly.estimators.greedy_miser._resume import progress_of, resume
from miserly.estimators.greedy_miser._validation import Validation
from miserly.kernels.threads import threads
from miserly.plan import Plan, stack_trees

logger = logging.getLogger(__name__)
LOSS = constraints.has_methods("constant", "gradients", "value")


class BoostedEstimator(PlanEstimator):
    """What every boosted estimator does; the parameters are its subclasses'. As it stands it is blind to cost."""

    tradeoff: float = 0.0
    charge: str = "learner"
    repeat_price: float = 0.0
    purchases: str = "every_round"
    monotonic_cst: Any = None
    interaction_cst: Any = None
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "costs": constraints.COSTS,
        "n_estimators": [constraints.at_least(1)],
        "learning_rate": [constraints.share()],
        "max_depth": [constraints.at_least(1), None],
        "max_leaf_nodes": [constraints.at_least(2), None],
        "min_samples_leaf": [constraints.at_least(1)],
        "l2_regularization": [constraints.not_negative()],
        "max_bins": [constraints.whole(2, 255)],
        "subsample": [constraints.share()],
        "max_features": [constraints.share()],
        "n_iter_no_change": [constraints.at_least(1), None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": constraints.N_JOBS,
        "loss": [constraints.loss_of("regression"), LOSS],
    }

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        eval_set: Any = None,
        binned: BinnedData | None = None,
        backend: Any = None,
        checkpoint: str | Path | None = None,
        prices: Any = None,
    ) -> Any:
        """Learn. `eval_set=(X, y)` is watched, and stops with `n_iter_no_change`. `prices`, measured on the rows, are a
        frame by acquisition, or an array in the order of `costs.acquisitions`.

        A `backend` holds remote rows; for Dask collections it is found. A file as `checkpoint` keeps the rounds
        that are done: with `warm_start=True` a killed fit goes on from it.
        """
        numeric, keep_rows = not is_classifier(self), binned is not None
        how = {"keep_rows": keep_rows, "backend": backend, "prices": prices}
        X, y, weight = self._fit_data(X, y, sample_weight, y_numeric=numeric, **how)
        self._learn(X, y, weight, eval_set, binned=binned, checkpoint=checkpoint)
        return self

    def _learn(self, X: Any, y: np.ndarray, weight: np.ndarray | None, eval_set: Any, **how: Any) -> None:
        """From checked data to `plan_`; `how` is for `_boost`."""
        raise NotImplementedError

    def prepare(self, X: Any) -> BinnedData:
        """Put the data in bins once, for several fits: `fit(X, y, binned=model.prepare(X))`."""
        if is_remote(X):
            raise ValueError("Remote data are binned by each fit, where they are. Sweep arrays, or fit one by one.")
        if isinstance(X, BinnedDataset):
            return X.data
        X = as_codes(X, find_categories(X))
        X = check_array(X, accept_sparse="csc", dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
        return bin_data(X, self.max_bins, n_jobs=self.n_jobs)

    def _fit_data(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        y_numeric: bool,
        keep_rows: bool = False,
        qid: Any = None,
        backend: Any = None,
        prices: Any = None,
    ) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """As for all estimators; data in bins stay there, and for remote data their backend stands, with y that of
        the labels that there are (their range, for numbers)."""
        backend = backend_for(X) if backend is None else backend
        if backend is not None or isinstance(X, BinnedDataset):
            self.__dict__.pop("_training_prices", None)
            costs: CostTable | None = self.costs
            if costs is not None and costs.missing:
                raise ValueError("Logged purchases are learned from an array or a frame: give X as one.")
            if prices is not None or (costs is not None and costs.row_prices):
                raise ValueError("Prices that depend on the row are learned from an array or a frame: give X as one.")
        if backend is not None:
            self._validate_params()
            backend.take(X, y, qid, sample_weight, numeric=y_numeric)
            self._name_features(backend.shape[1], backend.features)
            self.categories_ = backend.categories
            if y_numeric:
                check_numbers(backend.labels)
            return backend, backend.labels, None
        if not isinstance(X, BinnedDataset):
            return super()._fit_data(X, y, sample_weight, y_numeric=y_numeric, keep_rows=keep_rows, prices=prices)
        self._validate_params()
        if X.max_bins != self.max_bins:
            raise ValueError(
                f"The data are in at most {X.max_bins} bins, max_bins is {self.max_bins}. Set it to {X.max_bins}, or "
                "bin the data again."
            )
        self._name_features(X.shape[1], X.features if X.named else None)
        self.categories_ = {}
        y = check_array(y, ensure_2d=False, dtype="numeric" if y_numeric else None)
        if y.shape != (len(X),):
            raise ValueError(f"y has the shape {y.shape}, X {len(X)} rows. Give one label per row.")
        if y_numeric:
            check_numbers(y)
        return X, y, row_weights(sample_weight, len(X))

    def _boost(
        self,
        X: Any,
        y: np.ndarray,
        loss: Loss,
        weight: np.ndarray | None = None,
        watch: Validation | None = None,
        binned: BinnedData | None = None,
        checkpoint: str | Path | None = None,
    ) -> tuple[Boosted, CostTable]:
        """Grow the trees; an earlier fit is continued if `warm_start` says so."""
        costs = self._bound_costs()
        self._check_settings(costs, watch)
        progress = progress_of(self, loss, costs, X.shape, checkpoint)
        seed = int(check_random_state(self.random_state).randint(2**31)) if self._draws else 0
        limits = TreeLimits(self.max_depth, self.max_leaf_nodes, self.min_samples_leaf)
        shrink = self.l2_regularization
        lazy = self.purchases == "lazy"
        settings = Settings(self.n_estimators, self.learning_rate, limits, self.max_features, seed, shrink, lazy)
        settings = replace(settings, constraints=constraints_of(self, costs.features, loss.n_outputs))
        with threads(self.n_jobs, X.shape[0] * X.shape[1]):
            if progress.last is not None and watch is not None:
                stops = [watch(this, progress.last.constant) for this in progress.last.rounds]
                if any(stops):
                    settings = replace(settings, n_estimators=progress.last.n_tried)
            if isinstance(X, BackendOfRows):
                if binned is not None:
                    raise ValueError("Remote data are binned where they are: give no `binned`.")
                backend: Any = X
                backend.open(loss, getattr(self, "classes_", None), self.max_bins, self.subsample, seed)
                backend.data = self._usable(backend.data, costs)
            else:
                data = self._usable(self._in_bins(X, binned), costs)
                backend = LocalBackend(data, y, loss, weight, self.subsample, seed)
            try:
                boosted = self._rounds(X, backend, costs, settings, loss.n_outputs, watch, progress)
            except BackendLostError:
                self._boosted = progress.last
                raise
            finally:
                if backend is X:
                    backend.close()
        self.validation_loss_ = watch.losses if watch is not None else None
        if watch is not None and self.n_iter_no_change is not None:
            best = watch.best
            boosted = replace(boosted, rounds=boosted.rounds[:best], losses=boosted.losses[:best], n_tried=best)
        self._boosted = boosted
        self.n_iter_ = len(boosted.rounds)
        self.train_loss_ = list(boosted.losses)
        logger.debug("%d rounds", self.n_iter_)
        return boosted, costs

    def _rounds(
        self,
        X: Any,
        backend: Any,
        costs: CostTable,
        settings: Settings,
        n_outputs: int,
        watch: Validation | None,
        progress: Checkpoint,
    ) -> Boosted:
        """All rounds. If rows are lost on the way, they are fetched again and the round in work is repeated."""
        while True:
            try:
                pricing = self._new_pricing(costs, backend)
                if progress.last is not None:
                    resume(progress.last, X, backend, pricing, costs)
                return boost(backend, pricing, settings, n_outputs, watch, progress.last, self._draws, progress)
            except RowsLostError as error:
                logger.warning("%s", error)
                backend.repair()

    def _in_bins(self, X: Any, binned: BinnedData | None) -> BinnedData:
        if isinstance(X, BinnedDataset):
            return X.data
        data = binned if binned is not None else bin_data(X, self.max_bins, n_jobs=self.n_jobs)
        if (data.n_rows, data.n_features) != X.shape:
            raise ValueError(
                f"binned holds {data.n_rows} × {data.n_features} values, X {X.shape}. Prepare it from this X."
            )
        return data

    @property
    def path_(self) -> list[Purchase]:
        """What boosting bought, in order; the plan keeps it, in a file too."""
        notes = self._fitted_plan().notes["path"]
        return [Purchase(**{**purchase, "acquisitions": tuple(purchase["acquisitions"])}) for purchase in notes]

    @property
    def _draws(self) -> bool:
        return self.subsample < 1.0 or self.max_features < 1.0

    def _usable(self, data: BinnedData, costs: CostTable) -> BinnedData:
        """The data with those features that may be used at all."""
        return data

    def _new_pricing(self, costs: CostTable, backend: LocalBackend) -> ModelPricing | RowPricing:
        own = self.__dict__.get("_training_prices")
        if self.charge == "path" and own is not None and own.differ:
            return EachRowPricing(costs, self.tradeoff, backend, own.matrix, self.repeat_price)
        if self.charge == "path":
            return RowPricing(costs, self.tradeoff, backend, self.repeat_price)
        return ModelPricing(costs, self.tradeoff, self.repeat_price)

    def _check_settings(self, costs: CostTable, watch: Validation | None) -> None:
        if isinstance(costs.evaluation, tuple):
            raise ValueError("Boosting grows its own trees: give one evaluation price for all, not one per learner.")
        if self.n_iter_no_change is not None and watch is None:
            raise ValueError("n_iter_no_change stops on a validation set: give eval_set=(X, y) to fit.")

    def _watch(self, eval_set: Any, loss: Loss) -> Validation | None:
        if eval_set is None:
            return None
        X, y, _ = check_eval_set(self, eval_set)
        target = self._as_numbers(y)
        return Validation(X, target, lambda scores: loss.value(target, scores), self.n_iter_no_change)

    def _as_numbers(self, y: np.ndarray) -> np.ndarray:
        """The labels of validation data as numbers."""
        return y.astype(np.float64)

    def _loss_and_target(self, y: np.ndarray) -> tuple[Loss, np.ndarray]:
        raise NotImplementedError

    def _plan(
        self,
        boosted: Boosted,
        costs: CostTable,
        link: Any = "identity",
        classes: np.ndarray | None = None,
        scale: Sequence[float] | None = None,
        offset: Sequence[float] | None = None,
    ) -> Plan:
        """One node per round, so that it can stop after any; scores are scale · s + offset."""
        n_outputs, losses = len(boosted.constant), [boosted.start_loss, *boosted.losses]
        factor = np.ones(n_outputs) if scale is None else np.asarray(scale)
        others = [{"bias": np.zeros(n_outputs), "gain": before - after} for before, after in pairwise(losses)]
        nodes = chain([this.outputs for this in boosted.rounds], np.tile(factor, (len(boosted.rounds), 1)), others)
        return self._with_background(
            Plan(
                costs=costs,
                dictionary=stack_trees([table for this in boosted.rounds for table in this.tables]),
                nodes=nodes,
                prior=factor * boosted.constant + (0.0 if offset is None else np.asarray(offset)),
                link=link,
                classes=classes,
                roots=(0,) if nodes else (),
                charge=self.charge,  # type: ignore[arg-type]
                notes={
                    "estimator": type(self).__name__,
                    "tradeoff": float(self.tradeoff),
                    "path": [asdict(purchase) for purchase in purchases(boosted, costs)],
                    **self._category_notes(),
                },
            )
        )
