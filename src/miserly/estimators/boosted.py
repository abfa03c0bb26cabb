"""Boosted trees as estimators: from data to a chain of open gates, one node per round.

What is bought, and how it is charged, is the business of those who build on this.
"""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, column_or_1d

from miserly.boosting import (
    BackendLostError,
    BackendOfRows,
    BinnedData,
    BinnedDataset,
    Boosted,
    LambdaRankLoss,
    Limits,
    LocalBackend,
    LogLoss,
    Loss,
    PathShop,
    Progress,
    RowsLostError,
    Settings,
    Shop,
    SoftmaxLoss,
    SquaredHingeLoss,
    SquaredLoss,
    backend_for,
    bin_data,
    boost,
    fetched,
    is_elsewhere,
)
from miserly.costs import CostTable, set_bits
from miserly.estimators import constraints
from miserly.estimators.base import PlanClassifier, PlanEstimator, PlanRegressor, dense_blocks, row_weights
from miserly.estimators.categories import as_codes, find_categories
from miserly.estimators.validation import Validation, add_round
from miserly.kernels.threads import threads
from miserly.kernels.trees import buy_paths
from miserly.metrics import get_metric
from miserly.plan import EXIT, Node, Plan, Trees, stack_trees
from miserly.solvers import platt

logger = logging.getLogger(__name__)
LOSS = constraints.has_methods("constant", "gradients", "value")


@dataclass(frozen=True)
class Purchase:
    """What boosting bought: in which round, for which feature, at what price per row.

    `gain` is the mean squared error of the gradients that the split removed (before the learning rate): what its price
    was weighed against.
    """

    round: int
    feature: str
    acquisitions: tuple[str, ...]
    price: float
    gain: float


class BoostedEstimator(PlanEstimator):
    """What every boosted estimator does; the parameters are its subclasses'. As it stands it is blind to cost."""

    tradeoff: float = 0.0
    charge: str = "learner"
    repeat_price: float = 0.0
    purchases: str = "every_round"
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
        "loss": [constraints.one_of("auto"), LOSS],
    }

    def prepare(self, X: Any) -> BinnedData:
        """Put the data in bins once, for several fits: `fit(X, y, binned=model.prepare(X))`."""
        if is_elsewhere(X):
            raise ValueError("Data elsewhere are put in bins there, by each fit. Sweep over arrays, or fit one by one.")
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
    ) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """As for all estimators; data in bins stay there, and for data elsewhere their backend stands, with y that of
        the labels that there are (their range, for numbers)."""
        backend = backend_for(X) if backend is None else backend
        if backend is not None:
            self._validate_params()
            backend.take(X, y, qid, sample_weight, numeric=y_numeric)
            self._name_features(backend.shape[1], backend.features)
            self.categories_ = backend.categories
            return backend, backend.labels, None
        if not isinstance(X, BinnedDataset):
            return super()._fit_data(X, y, sample_weight, y_numeric=y_numeric, keep_rows=keep_rows)
        self._validate_params()
        if X.max_bins != self.max_bins:
            raise ValueError(
                f"The data are in at most {X.max_bins} bins, max_bins is {self.max_bins}. Set it to {X.max_bins}, or "
                "put the data in bins anew."
            )
        self._name_features(X.shape[1], X.features if X.named else None)
        self.categories_ = {}
        y = check_array(y, ensure_2d=False, dtype="numeric" if y_numeric else None)
        if y.shape != (len(X),):
            raise ValueError(f"y has the shape {y.shape}, X {len(X)} rows. Give one label per row.")
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
        progress = self._progress(loss, costs, X.shape, checkpoint)
        seed = int(check_random_state(self.random_state).randint(2**31)) if self._draws else 0
        limits = Limits(self.max_depth, self.max_leaf_nodes, self.min_samples_leaf)
        shrink = self.l2_regularization
        lazy = self.purchases == "lazy"
        settings = Settings(self.n_estimators, self.learning_rate, limits, self.max_features, seed, shrink, lazy)
        with threads(self.n_jobs, X.shape[0] * X.shape[1]):
            if progress.last is not None and watch is not None:
                stops = [watch(this, progress.last.constant) for this in progress.last.rounds]
                if any(stops):
                    settings = replace(settings, n_estimators=progress.last.n_tried)
            if isinstance(X, BackendOfRows):
                if binned is not None:
                    raise ValueError("Data elsewhere are put in bins there: give no `binned`.")
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
        progress: Progress,
    ) -> Boosted:
        """All rounds. If rows are lost on the way, they are fetched again and the round in work is repeated."""
        while True:
            try:
                shop = self._open_shop(costs, backend)
                if progress.last is not None:
                    self._resume(progress.last, X, backend, shop, costs)
                return boost(backend, shop, settings, n_outputs, watch, progress.last, self._draws, progress)
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

    def _progress(self, loss: Loss, costs: CostTable, shape: tuple[int, int], path: str | Path | None) -> Progress:
        """What is done already: by this model, or by one that was killed and kept its rounds in a file."""
        if path is None:
            return Progress(self._earlier(loss))
        aside = ("n_estimators", "warm_start", "n_jobs", "n_iter_no_change", "costs")
        params = {name: value for name, value in self.get_params(deep=False).items() if name not in aside}
        names = loss.__class__.__name__, loss.n_outputs
        about = repr((type(self).__name__, sorted(params.items(), key=lambda item: item[0]), names, costs, shape))
        progress = Progress(None, path, hashlib.sha256(about.encode()).hexdigest())
        kept = progress.load() if self.warm_start else None
        earlier = self._earlier(loss)
        own = earlier is not None and (kept is None or len(earlier.rounds) > len(kept.rounds))
        progress.last = earlier if own else kept
        return progress

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

    def _open_shop(self, costs: CostTable, backend: LocalBackend) -> Shop | PathShop:
        if self.charge == "path":
            return PathShop(costs, self.tradeoff, backend, self.repeat_price)
        return Shop(costs, self.tradeoff, self.repeat_price)

    def _check_settings(self, costs: CostTable, watch: Validation | None) -> None:
        if isinstance(costs.evaluation, tuple):
            raise ValueError("Boosting grows its own trees: give one evaluation price for all, not one per learner.")
        if self.n_iter_no_change is not None and watch is None:
            raise ValueError("n_iter_no_change stops on a validation set: give eval_set=(X, y) to fit.")

    def _earlier(self, loss: Loss) -> Boosted | None:
        """The fit to go on from."""
        earlier: Boosted | None = getattr(self, "_boosted", None) if self.warm_start else None
        if earlier is None:
            return None
        if self.n_estimators < earlier.n_tried:
            raise ValueError(
                f"n_estimators={self.n_estimators} is less than the {earlier.n_tried} rounds done already: with "
                "warm_start=True it counts all rounds. Raise it, or set warm_start=False to begin anew."
            )
        trees = stack_trees([table for this in earlier.rounds for table in this.tables])
        if len(earlier.constant) != loss.n_outputs or trees.n_features > self.n_features_in_:
            raise ValueError(
                "warm_start=True goes on with the earlier fit, which had other features or classes. Set it to False."
            )
        return earlier

    def _resume(self, earlier: Boosted, X: Any, backend: Any, shop: Shop | PathShop, costs: CostTable) -> None:
        """Scores of the earlier rounds; what they paid is not paid again."""
        trees = stack_trees([table for this in earlier.rounds for table in this.tables])
        if isinstance(X, (BinnedDataset, BackendOfRows)):
            by_path = isinstance(shop, PathShop)
            needs = [tuple(set_bits(mask)) for mask in costs.feature_masks] if by_path else []
            pairs = [pair for this in earlier.rounds for pair in zip(this.outputs, this.tables)]
            backend.replay(earlier.constant, pairs, needs)
            if isinstance(shop, Shop):
                shop.own(a for f in trees.used for a in set_bits(costs.feature_masks[f]))
            return
        scores = np.repeat(earlier.constant[:, None], X.shape[0], axis=1)
        for rows, block in dense_blocks(X):
            for this in earlier.rounds:
                add_round(this, block, scores[:, rows])
        if isinstance(shop, Shop):
            shop.own(a for f in trees.used for a in set_bits(costs.feature_masks[f]))
            backend.resume(scores, {})
        else:
            backend.resume(scores, _owned_by_path(trees, X, costs))

    def _watch(self, eval_set: Any, loss: Loss) -> Validation | None:
        if eval_set is None:
            return None
        X, y, _ = self._eval_data(eval_set, parts=("X", "y"))
        target = self._target(y)
        return Validation(X, target, lambda scores: loss.value(target, scores), self.n_iter_no_change)

    def _eval_data(self, eval_set: Any, parts: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        if not isinstance(eval_set, tuple) or len(eval_set) != len(parts):
            raise ValueError(f"eval_set is validation data: ({', '.join(parts)}).")
        eval_set = tuple(map(fetched, eval_set))
        named = hasattr(eval_set[0], "columns") or isinstance(eval_set[0], BinnedDataset)
        if hasattr(self, "feature_names_in_") and not named:
            raise ValueError(
                "The training data have feature names, the X of eval_set has none. Give it as a frame with the same "
                "columns, so that they cannot be mixed up."
            )
        X, *columns = self._checked(eval_set[0]), *(column_or_1d(part) for part in eval_set[1:])
        if any(len(column) != X.shape[0] for column in columns):
            raise ValueError(f"eval_set has {X.shape[0]} rows in X and {len(columns[0])} in y. Give one label per row.")
        if columns[0].dtype.kind == "f" and not np.isfinite(columns[0]).all():
            raise ValueError("eval_set holds NaN or infinity in y. Remove such rows.")
        return X, columns[0], columns[1] if len(columns) > 1 else None

    def _target(self, y: np.ndarray) -> np.ndarray:
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
        """A chain of open gates, one node per round, so that it can stop after any; scores are scale · s + offset."""
        n_outputs = len(boosted.constant)
        factor = np.ones(n_outputs) if scale is None else np.asarray(scale)
        losses = [boosted.start_loss, *boosted.losses]
        nodes = []
        n_learners = 0
        for number, this in enumerate(boosted.rounds):
            weights = np.zeros((len(this.outputs), n_outputs))
            weights[np.arange(len(this.outputs)), this.outputs] = factor[list(this.outputs)]
            nodes.append(
                Node(
                    learners=np.arange(n_learners, n_learners + len(this.outputs), dtype=np.int32),
                    weights=weights,
                    bias=np.zeros(n_outputs),
                    outputs=tuple(range(n_outputs)),
                    passed=number + 1 if number + 1 < len(boosted.rounds) else EXIT,
                    gain=losses[number] - losses[number + 1],
                )
            )
            n_learners += len(this.outputs)
        return Plan(
            costs=costs,
            dictionary=stack_trees([table for this in boosted.rounds for table in this.tables]),
            nodes=tuple(nodes),
            prior=factor * boosted.constant + (0.0 if offset is None else np.asarray(offset)),
            link=link,
            classes=classes,
            roots=(0,) if nodes else (),
            charge=self.charge,  # type: ignore[arg-type]
            notes={
                "estimator": type(self).__name__,
                "tradeoff": float(self.tradeoff),
                "path": [asdict(purchase) for purchase in _path(boosted, costs)],
                **self._category_notes(),
            },
        )


class BoostedRegressor(PlanRegressor, BoostedEstimator):
    """Boosted trees for numbers; squared loss unless `loss` is one of your own."""

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
    ) -> Any:
        """Learn. `eval_set=(X, y)` is watched, and stops with `n_iter_no_change`.

        A `backend` holds the rows elsewhere; for Dask collections it is found. A file as `checkpoint` keeps the rounds
        that are done: with `warm_start=True` a killed fit goes on from it.
        """
        keep_rows = binned is not None
        X, y, weight = self._fit_data(X, y, sample_weight, y_numeric=True, keep_rows=keep_rows, backend=backend)
        loss, target = self._loss_and_target(y)
        boosted, costs = self._boost(X, target, loss, weight, self._watch(eval_set, loss), binned, checkpoint)
        self.plan_ = self._plan(boosted, costs)
        return self

    def _loss_and_target(self, y: np.ndarray) -> tuple[Loss, np.ndarray]:
        return (SquaredLoss() if isinstance(self.loss, str) else self.loss), self._target(y)


class BoostedClassifier(PlanClassifier, BoostedEstimator):
    """Boosted trees for classes: logistic loss for two, softmax with one shared purse for more.

    `loss="squared_hinge"` is each class against the rest; its scores become log-odds by Platt's method, on the
    validation data if there are any.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BoostedEstimator._parameter_constraints,
        "loss": [constraints.one_of("auto", "squared_hinge"), LOSS],
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
    ) -> Any:
        """Learn. `eval_set=(X, y)` is watched, and stops with `n_iter_no_change`.

        A `backend` holds the rows elsewhere; for Dask collections it is found. A file as `checkpoint` keeps the rounds
        that are done: with `warm_start=True` a killed fit goes on from it.
        """
        keep_rows = binned is not None
        X, y, weight = self._fit_data(X, y, sample_weight, y_numeric=False, keep_rows=keep_rows, backend=backend)
        self.classes_ = self._find_classes(y)
        loss, target = self._loss_and_target(y)
        watch = self._watch(eval_set, loss)
        if isinstance(loss, SquaredHingeLoss) and watch is None and isinstance(X, BackendOfRows):
            raise ValueError("squared_hinge reads probabilities off the data: on a cluster give eval_set=(X, y).")
        boosted, costs = self._boost(X, target, loss, weight, watch, binned, checkpoint)
        link = "softmax" if len(self.classes_) > 2 else "logistic"
        calibration: tuple[Any, Any] = (None, None)
        if isinstance(loss, SquaredHingeLoss):
            link = "logistic"
            known = Validation(X, target, lambda scores: loss.value(target, scores)) if watch is None else watch
            calibration = self._platt(boosted, known, weight if watch is None else None)
        self.plan_ = self._plan(boosted, costs, link, self.classes_, *calibration)
        return self

    def _platt(self, boosted: Boosted, known: Validation, weight: np.ndarray | None) -> tuple[list[float], list[float]]:
        """Scale and offset that turn each output's margin into log-odds."""
        scores = known.scores_after(boosted)
        positive = [1] if len(scores) == 1 else range(len(scores))
        fits = [platt(z, (known.y == k).astype(float), weight) for z, k in zip(scores, positive)]
        return [a for a, _ in fits], [b for _, b in fits]

    def _target(self, y: np.ndarray) -> np.ndarray:
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"The validation data have classes that the training data have not: {unknown[:5]}.")
        return np.searchsorted(self.classes_, y).astype(np.float64)

    def _loss_and_target(self, y: np.ndarray) -> tuple[Loss, np.ndarray]:
        classes = self._find_classes(y)
        n_classes = len(classes)
        n_outputs = 1 if n_classes == 2 else n_classes
        if self.loss == "squared_hinge":
            loss: Loss = SquaredHingeLoss(n_classes)
        elif isinstance(self.loss, str):
            loss = LogLoss() if n_outputs == 1 else SoftmaxLoss(n_outputs)
        else:
            loss = self.loss
        if loss.n_outputs != n_outputs:
            raise ValueError(
                f"{n_classes} classes need {n_outputs} scores, {type(loss).__name__} gives {loss.n_outputs}."
            )
        return loss, np.searchsorted(classes, y).astype(np.float64)


class BoostedRanker(PlanRegressor, BoostedEstimator):
    """Boosted trees for graded documents of queries.

    `loss="squared"` fits the grades, as the paper does; "lambdarank" follows LambdaMART's gradients. `metric` is
    watched on `eval_set=(X, y, qid)`, and stops with `n_iter_no_change`.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BoostedEstimator._parameter_constraints,
        "loss": [constraints.one_of("squared", "lambdarank")],
        "metric": [str],
    }

    def fit(
        self,
        X: Any,
        y: Any,
        qid: Any = None,
        sample_weight: Any = None,
        *,
        eval_set: Any = None,
        binned: BinnedData | None = None,
        backend: Any = None,
        checkpoint: str | Path | None = None,
    ) -> Any:
        """Learn to rank; without `qid` all rows are one query. Rows of a query lie together.

        A `backend` holds the rows elsewhere; for Dask collections it is found. A file as `checkpoint` keeps the rounds
        that are done: with `warm_start=True` a killed fit goes on from it.
        """
        X, y, weight = self._fit_data(X, y, sample_weight, y_numeric=True, keep_rows=True, qid=qid, backend=backend)
        far = isinstance(X, BackendOfRows)
        query = np.empty(0) if far else _queries(qid, X.shape[0], "qid")
        if weight is not None and binned is None and not isinstance(X, BinnedDataset):
            present = np.flatnonzero(weight)
            X, y, weight, query = X[present], y[present], weight[present], query[present]
        if self.loss == "lambdarank" and y.min() < 0:
            raise ValueError(f"lambdarank needs grades of 0 or more, got {y.min():g}. Map the labels first.")
        loss: Loss = LambdaRankLoss(query) if self.loss == "lambdarank" else SquaredLoss()
        watch = self._watch(eval_set, loss)
        boosted, costs = self._boost(X, self._target(y), loss, weight, watch, binned, checkpoint)
        sign = -1.0 if get_metric(self.metric).greater_is_better else 1.0
        self.validation_score_ = None if self.validation_loss_ is None else [sign * v for v in self.validation_loss_]
        self.plan_ = self._plan(boosted, costs)
        return self

    def _watch(self, eval_set: Any, loss: Loss) -> Validation | None:
        if eval_set is None:
            return None
        X, y, qid = self._eval_data(eval_set, parts=("X", "y", "qid"))
        query = _queries(qid, X.shape[0], "the qid of eval_set")
        metric = get_metric(self.metric)
        sign = -1.0 if metric.greater_is_better else 1.0
        return Validation(X, y, lambda scores: sign * metric(y, scores[0], qid=query), self.n_iter_no_change)

    def _loss_and_target(self, y: np.ndarray) -> tuple[Loss, np.ndarray]:
        return SquaredLoss(), self._target(y)


def _owned_by_path(trees: Trees, X: Any, costs: CostTable) -> dict[int, np.ndarray]:
    """Which rows bought each acquisition on their way through some trees."""
    needs = costs.needs_words
    bits = np.zeros((X.shape[0], needs.shape[1]), np.uint64)
    for rows, block in dense_blocks(X):
        numbers, learners = np.arange(len(block)), np.arange(len(trees), dtype=np.int32)
        buy_paths(np.ascontiguousarray(block), numbers, trees.table, learners, needs, bits[rows])
    every = np.bitwise_or.reduce(bits, axis=0)
    some = [a for a in range(len(costs.price_list)) if int(every[a // 64]) >> (a % 64) & 1]
    return {a: (bits[:, a // 64] >> np.uint64(a % 64)) & np.uint64(1) == 1 for a in some}


def _queries(qid: Any, n_rows: int, what: str) -> np.ndarray:
    """Query ids, one per row, those of one query together."""
    if qid is None:
        return np.zeros(n_rows, np.intp)
    ids = column_or_1d(qid)
    if len(ids) != n_rows:
        raise ValueError(f"{what} must give one query id per row: {n_rows} rows, got {len(ids)}.")
    if ids.dtype.kind == "f" and np.isnan(ids).any():
        raise ValueError(f"{what} lacks the query id of row {int(np.isnan(ids).argmax())} (from 0). Give one per row.")
    first = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    names, times = np.unique(ids[first], return_counts=True)
    if (times > 1).any():
        raise ValueError(f"{what} comes back to query {names[times > 1][0]!r} after others. Sort the rows by query.")
    return ids


def _path(boosted: Boosted, costs: CostTable) -> list[Purchase]:
    names, prices = costs.acquisitions, costs.price_list
    return [
        Purchase(
            number,
            costs.features[split.feature],
            tuple(names[a] for a in split.bought),
            math.fsum(prices[a] * share for a, share in zip(split.bought, split.shares)),
            split.gain,
        )
        for number, this in enumerate(boosted.rounds)
        for tree in this.trees
        for split in tree.splits
        if split.bought
    ]
