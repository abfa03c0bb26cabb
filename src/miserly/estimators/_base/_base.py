"""What all estimators share: the border where data and prices are checked, and predictions read off the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from inspect import signature
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from miserly.boosting import BinnedDataset
from miserly.costs import CostTable
from miserly.datasets import RowStream
from miserly.estimators._base._categories import as_codes, find_categories
from miserly.estimators._base._prices import TrainingPrices, training_prices
from miserly.estimators._base._target import ClassTarget, NumberTarget, Target
from miserly.estimators.pipeline import refuse_unnamed
from miserly.plan import Charge, Plan, Trees, measured_prices, refuse_missing
from miserly.solvers import LoggedPurchases

BLOCK_CELLS = 1 << 22
MOST_NUMBER, LEAST_RANGE = 1e150, 1e-150  # of what is predicted: sums of squares beyond are infinite or zero
FAR_EXPONENT = 100  # of the largest weight: products of weights beyond are not ordinary numbers
FEWEST_LOGGED = 20  # rows that have all logged purchases, to learn a model from
BACKGROUND_ROWS = 2048  # enough for means and for the shares of rows at splits


class PlanEstimator(BaseEstimator):
    """An estimator whose fitted state is `plan_`. `cost_axis` names the parameter that trades quality for cost;
    `weighs_logged_rows` says that a fit does itself what is to be done where purchases are logged."""

    cost_axis: ClassVar[str]
    weighs_logged_rows: ClassVar[bool] = False
    plan_: Plan
    categories_: dict[str, tuple[Any, ...]]
    numeric_labels: ClassVar[bool]
    _training_prices: TrainingPrices | None = None  # as long as a fit goes on

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "plan_")

    def predict(self, X: Any, budget: Any = None, confidence: float | None = None, strict: bool = False) -> np.ndarray:
        """Predicted numbers or classes.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, BinnedDataset or RowStream
            Rows with the columns of the training data.
        budget : float, mapping or None, default=None
            Most that a row may pay, 0 or more, in all or by currency: what does not fit is skipped, and the row goes on
            with what fits.
        confidence : float or None, default=None
            Probability, 0 to 1, of its best class at which a row stops before its next purchase.
        strict : bool, default=False
            Whether the upper quantile of a measured price has to fit the budget, not only its estimate.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self._by_blocks(X, lambda plan, block: plan.predict(block, budget=budget, strict=strict), confidence)

    def predict_cost(
        self,
        X: Any,
        budget: Any = None,
        charge: Charge | None = None,
        confidence: float | None = None,
        *,
        prices: Any = None,
        strict: bool = False,
        currency: str | None = None,
    ) -> np.ndarray:
        """What each row pays.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, BinnedDataset or RowStream
            Rows with the columns of the training data.
        budget : float, mapping or None, default=None
            Most that a row may pay, 0 or more, in all or by currency: what does not fit is skipped, and the row goes on
            with what fits.
        charge : {"learner", "path"} or None, default=None
            Whether a tree costs all that it looks at, or only what is on a row's path; None is the plan's own.
        confidence : float or None, default=None
            Probability, 0 to 1, of its best class at which a row stops before its next purchase.
        prices : frame, mapping, array of shape (n_rows, n_acquisitions) or None, default=None
            What each acquisition really cost each row, by name or in the order of `costs.acquisitions`: then the result
            is what each row really paid for what it bought.
        strict : bool, default=False
            Whether the upper quantile of a measured price has to fit the budget, not only its estimate.
        currency : str or None, default=None
            Count only this currency, or the `"rounds"` of orders; None counts all.

        Returns
        -------
        ndarray of shape (n_rows,)
            In the unit of the cost table.
        """
        if prices is not None:
            plan = self._fitted_plan() if confidence is None else self._fitted_plan().stopping(confidence)
            return plan.predict_cost(self._dense(X), None, budget, charge, prices=prices, strict=strict)
        how: dict[str, Any] = {"budget": budget, "charge": charge, "strict": strict, "currency": currency}
        return self._by_blocks(X, lambda plan, block: plan.predict_cost(block, **how), confidence)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Predictions after each stage, one array per stage."""
        plan = self._fitted_plan()
        return (plan.read(stage.z) for stage in plan.stages(self._dense(X)))

    def staged_cost(self, X: Any) -> Iterator[np.ndarray]:
        """What each row has paid after each stage, one array per stage."""
        return (stage.cost for stage in self._fitted_plan().stages(self._dense(X)))

    def _by_blocks(
        self, X: Any, ask: Callable[[Plan, np.ndarray], np.ndarray], confidence: float | None = None
    ) -> np.ndarray:
        """Ask the plan, block by block if X is sparse and no gate compares rows."""
        plan = self._fitted_plan()
        plan = plan if confidence is None else plan.stopping(confidence)
        if isinstance(X, (BinnedDataset, RowStream)):
            return np.concatenate([ask(plan, block) for block in self._streamed(X, plan)])
        X = self._checked(X)
        if not issparse(X) or plan.by_query:
            return ask(plan, X.toarray() if issparse(X) else X)
        return np.concatenate([ask(plan, block) for _, block in dense_blocks(X)])

    def _streamed(self, X: BinnedDataset | RowStream, plan: Plan) -> Iterator[np.ndarray]:
        """The rows of files or of data in bins, a block at a time."""
        if plan.by_query:
            raise ValueError("This plan compares the rows of a query, which blocks would part. Give X as an array.")
        if tuple(plan.costs.features) != X.features and X.named:
            raise ValueError(
                "X has other features than the model was fitted on. Give the same columns in the same order."
            )
        if isinstance(X, RowStream):
            return (block.X for block in X)
        if not isinstance(plan.dictionary, Trees):
            raise ValueError("Only trees can be asked about data in bins. Give the values themselves.")
        trees = plan.dictionary
        for f, threshold, inner in zip(trees.feature, trees.threshold, trees.left != np.arange(len(trees.left))):
            if inner:
                X.data.cut(int(f), float(threshold))
        return (block for _, block in X.blocks(plan.used_features))

    def _name_features(self, n_features: int, names: Sequence[str] | None) -> None:
        """What scikit-learn's checks would have set."""
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = np.array(names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _dense(self, X: Any) -> np.ndarray:
        X = self._checked(X)
        return X.toarray() if issparse(X) else X

    def _fitted_plan(self) -> Plan:
        check_is_fitted(self)
        return self.plan_

    @property
    def selected_features_(self) -> list[str]:
        """The features that the model may look at. With `CostTable.uniform()` this is feature selection."""
        plan = self._fitted_plan()
        return [plan.costs.features[f] for f in plan.used_features]

    def _checked(self, X: Any) -> Any:
        """New data, as the plan reads them; sparse ones stay sparse, those in bins stay there."""
        if isinstance(X, BinnedDataset):
            if X.shape[1] != self.n_features_in_:
                raise ValueError(f"X has {X.shape[1]} features, the model was fitted on {self.n_features_in_}.")
            return X
        return validate_data(self, as_codes(X, self.categories_), reset=False, accept_sparse="csr", **self._numbers)

    def _with_background(self, plan: Plan) -> Plan:
        """The plan with what some training rows say about values that are not bought, if the rows are here."""
        self.__dict__.pop("_training_prices", None)
        sample = self.__dict__.pop("_training_sample", None)
        if sample is None:
            return plan
        return plan.with_background(sample.toarray() if issparse(sample) else sample)

    def _fit_data(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        y_numeric: bool,
        keep_rows: bool = False,
        prices: Any = None,
    ) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Check parameters, data, weights and measured prices; X stays as it is if it is a float array already.

        Rows of weight zero are as if they were not there, unless the caller must `keep_rows`.
        """
        self._validate_params()
        self.__dict__.pop("_training_prices", None)
        self.categories_ = find_categories(X)
        X = as_codes(X, self.categories_)
        labels = np.asarray(y)
        if labels.ndim == 1 and labels.dtype == object:
            refuse_missing(labels, "y", "label")
        X, y = validate_data(self, X, y, accept_sparse="csc", y_numeric=y_numeric, **self._numbers)
        costs: CostTable | None = getattr(self, "costs", None)
        if costs is not None and costs.each is None and not hasattr(self, "feature_names_in_"):
            refuse_unnamed(self)
        if y_numeric:
            check_numbers(y)
        if costs is not None and costs.missing and not self.weighs_logged_rows:
            sample_weight = self._logged_weights(X, y, sample_weight)
        weight = weights = row_weights(sample_weight, X.shape[0])
        present = None
        if weight is not None and not keep_rows and not weight.all():
            present = np.flatnonzero(weight)
            X, y, weight = X[present], y[present], weight[present]
        if costs is not None and (prices is not None or costs.row_prices):
            if present is not None and prices is not None:
                found = measured_prices(self._bound_costs(), prices, len(weights)).items()  # type: ignore[arg-type]
                prices = {self._bound_costs().acquisitions[a]: values[present] for a, values in found}
            self._training_prices = training_prices(self._bound_costs(), X, prices)
        counted = np.arange(X.shape[0]) if weight is None else np.flatnonzero(weight)
        self._training_sample = X[counted[:: max(1, -(-len(counted) // BACKGROUND_ROWS))]]
        return X, y, weight

    def _logged_weights(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """How many rows each stands for on which all purchases were logged; 0 for the others, which cannot say what the
        missing ones would have brought."""
        costs = self._bound_costs()
        if not costs.not_ordered:
            return sample_weight
        if "sample_weight" not in signature(self.fit).parameters or issparse(X):
            raise ValueError(
                f"{type(self).__name__} cannot learn from logged purchases (missing='not_ordered') here: it takes no "
                "weights, or X is sparse. Use AutoMiserClassifier or AutoMiserRegressor with an array or a frame."
            )
        rows = LoggedPurchases.learn(costs, X, y).own
        weights = rows.weights(sum(1 << a for a in costs.not_ordered))
        if np.count_nonzero(weights) < FEWEST_LOGGED:
            raise ValueError(
                f"All purchases together were logged on {np.count_nonzero(weights)} rows, too few to learn from. Leave "
                "some out, or use AutoMiserClassifier or AutoMiserRegressor, which learn each set from the rows that "
                "have it."
            )
        given = row_weights(sample_weight, len(weights))
        return weights if given is None else weights * given

    @property
    def _numbers(self) -> dict[str, Any]:
        """What values may be: NaN is a missing value, for those that can do with it."""
        finite: Any = "allow-nan" if self.__sklearn_tags__().input_tags.allow_nan else True
        return {"dtype": [np.float64, np.float32], "ensure_all_finite": finite}

    def _target_of(self, y: np.ndarray) -> Target:
        """What is predicted: numbers, or the classes in y."""
        raise NotImplementedError

    def _fit_target(self, y: np.ndarray) -> Target:
        """The same, and the classes are remembered."""
        target = self._target_of(y)
        if target.classes is not None:
            self.classes_ = target.classes
        return target

    def _category_notes(self) -> dict[str, Any]:
        """For the plan's notes: which code stands for which category."""
        return {"categories": {f: list(c) for f, c in self.categories_.items()}} if self.categories_ else {}

    def _given_costs(self) -> CostTable:
        """The user's prices; there is no default price."""
        costs: CostTable | None = getattr(self, "costs", None)
        if costs is None:
            raise ValueError(
                f"{type(self).__name__} needs the price of each feature: costs=CostTable.per_feature({{...}}), "
                "CostTable.from_csv(...), or, if all cost the same, costs=CostTable.uniform()."
            )
        return costs

    def _bound_costs(self) -> CostTable:
        """The user's prices in the order of the columns; of those that depend on the row, with their means."""
        priced: TrainingPrices | None = self.__dict__.get("_training_prices")
        if priced is not None:
            return priced.costs
        names = getattr(self, "feature_names_in_", None)
        return self._given_costs().bind(self.n_features_in_ if names is None else [str(n) for n in names])


class PlanRegressor(RegressorMixin, PlanEstimator):
    """A regressor: it predicts numbers."""

    numeric_labels = True

    def _target_of(self, y: np.ndarray) -> Target:
        return NumberTarget()


class PlanClassifier(ClassifierMixin, PlanEstimator):
    """A classifier: labels are part of the plan."""

    classes_: np.ndarray
    numeric_labels = False

    def _target_of(self, y: np.ndarray) -> Target:
        return ClassTarget(self._find_classes(y))

    def predict_proba(self, X: Any, budget: Any = None, confidence: float | None = None) -> np.ndarray:
        """Probability of each class, in the order of `classes_`.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, BinnedDataset or RowStream
            Rows with the columns of the training data.
        budget : float, mapping or None, default=None
            Most that a row may pay, 0 or more, in all or by currency: what does not fit is skipped, and the row goes on
            with what fits.
        confidence : float or None, default=None
            Probability, 0 to 1, of its best class at which a row stops before its next purchase.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        return self._by_blocks(X, lambda plan, block: plan.predict_proba(block, budget=budget), confidence)

    def decision_function(self, X: Any, budget: Any = None, confidence: float | None = None) -> np.ndarray:
        """Raw scores.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, BinnedDataset or RowStream
            Rows with the columns of the training data.
        budget : float, mapping or None, default=None
            Most that a row may pay, 0 or more, in all or by currency: what does not fit is skipped, and the row goes on
            with what fits.
        confidence : float or None, default=None
            Probability, 0 to 1, of its best class at which a row stops before its next purchase.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            One score per row for two classes, one per class otherwise.
        """
        return self._by_blocks(X, lambda plan, block: plan.score(block, budget=budget), confidence)

    def _find_classes(self, y: np.ndarray) -> np.ndarray:
        """The classes in order; an error if there is only one."""
        check_classification_targets(y)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                f"y holds one class only, {classes.tolist()[0]!r} ({type_of_target(y)}): a classifier needs at least "
                "two classes. Give data that has both."
            )
        return classes


def dense_blocks(X: Any) -> Iterator[tuple[slice, np.ndarray]]:
    """A matrix as it is; a sparse one as blocks of rows that are not."""
    if not issparse(X):
        yield slice(0, len(X)), X
        return
    lines, size = X.tocsr(), max(1, BLOCK_CELLS // max(1, X.shape[1]))
    for first in range(0, X.shape[0], size):
        yield slice(first, min(first + size, X.shape[0])), lines[first : first + size].toarray()


def check_numbers(y: np.ndarray) -> None:
    """Refuse numbers to predict whose squares are no ordinary floating-point numbers."""
    low, high = float(np.min(y)), float(np.max(y))
    if max(-low, high) > MOST_NUMBER:
        raise ValueError(
            f"y has numbers beyond {MOST_NUMBER:g}, whose squares cannot be added up. Divide y by something."
        )
    if 0.0 < high - low < LEAST_RANGE:
        raise ValueError(
            f"y varies by {high - low:g} in all, and squares below {LEAST_RANGE:g}² are lost. Multiply y by something."
        )


def row_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Weights of rows, one each, none negative, not all zero."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, np.float64)
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight has the shape {weight.shape}, X {n_rows} rows. Give one weight per row.")
    if not np.isfinite(weight).all() or (weight < 0).any():
        worst = int(np.argmax(~np.isfinite(weight) | (weight < 0)))
        raise ValueError(
            f"sample_weight holds {weight[worst]:g} at row {worst} (from 0). Weights are finite numbers, 0 or more."
        )
    if not weight.any():
        raise ValueError("sample_weight is zero for all rows: nothing is left to learn from.")
    exponent = int(np.frexp(weight.max())[1])
    if abs(exponent) <= FAR_EXPONENT:
        return weight
    scaled = np.ldexp(weight, -exponent)  # only ratios matter, and a power of two keeps them
    return np.where(weight > 0, np.maximum(scaled, np.finfo(np.float64).tiny), 0.0)
