"""A transformer and an estimator with prices: what a row pays is counted in raw columns."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from miserly.costs import CostTable
from miserly.estimators.pipeline._needs import CannotKnowError, Traced, trace_needs


def _estimator_has(name: str) -> Any:
    return lambda self: hasattr(getattr(self, "estimator_", self.estimator), name)


class PricedPipeline(BaseEstimator):
    """A scikit-learn transformer before an estimator of this library, with the prices of the *raw* columns.

    Each output of the transformer needs the acquisitions of the raw columns that it is made from: a one-hot column
    those of its word, a product those of both factors, a principal component those of all columns. scikit-learn's own
    transformers are known; others are probed: one raw column at a time is changed, and outputs that change need it.

    Parameters
    ----------
    preprocessing : transformer
        A scikit-learn transformer or pipeline of transformers: `ColumnTransformer`, `FeatureUnion`, encoders, imputers,
        scalers, `PolynomialFeatures`, `PCA`, or one of your own.
    estimator : estimator
        An estimator of this library. Its `costs` price the raw columns, by name, or in their order for arrays.
    needs : mapping of str to sequence of str, default=None
        The raw columns of outputs, by name, where they cannot be known; they take the place of what was found.

    Attributes
    ----------
    needs_ : dict
        The raw columns that each output needs.
    probed_ : list of str
        Outputs whose needs were found by probing: look at them once, and confirm them by `needs`.
    costs_ : CostTable
        The prices of the outputs.
    preprocessing_ : transformer
        The fitted transformer.
    estimator_ : estimator
        The fitted estimator.
    plan_ : Plan
        The plan over the transformer's outputs, priced in raw acquisitions.
    feature_names_in_ : ndarray of str
        The raw columns.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from miserly.estimators import GreedyMiserRegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> costs = CostTable.per_feature({"a": 1, "b": 2, "c": 50})
    >>> model = GreedyMiserRegressor(costs, n_estimators=10)
    >>> p = PricedPipeline(PolynomialFeatures(2, include_bias=False), model).fit(X, X[:, 0] * X[:, 1])
    >>> p.needs_["a b"], p.predict_cost(X)[0]
    (('a', 'b'), np.float64(3.0))
    """

    def __init__(self, preprocessing: Any, estimator: Any, needs: Mapping[str, Sequence[str]] | None = None) -> None:
        self.preprocessing = preprocessing
        self.estimator = estimator
        self.needs = needs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags = inner.target_tags
        tags.input_tags = get_tags(self.preprocessing).input_tags
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    @property
    def cost_axis(self) -> str:
        """The parameter that trades quality for cost."""
        return f"estimator__{self.estimator.cost_axis}"

    def suggest_grid(self, y: Any, n_points: int = 8) -> Any:
        """Values of the cost axis for these labels, as the estimator suggests them."""
        return self.estimator.suggest_grid(y, n_points)

    def fit(self, X: Any, y: Any, **fit_params: Any) -> PricedPipeline:
        """Fit the transformer, carry the prices through it, and fit the estimator.

        Parameters
        ----------
        X : data frame or array of shape (n_rows, n_raw_columns)
            Raw columns.
        y : array-like of shape (n_rows,)
            Labels.
        **fit_params : dict
            For the estimator's fit; the rows of an `eval_set` are transformed too.

        Returns
        -------
        PricedPipeline
            Itself.
        """
        raw = self._raw_costs(X)
        self.feature_names_in_ = np.array(raw.features, object)
        self.n_features_in_ = len(raw.features)
        self.preprocessing_ = clone(self.preprocessing)
        Z = _as_array(self.preprocessing_.fit_transform(X, y))
        names = self._output_names(Z.shape[1])
        self.costs_ = self._carried(X, raw, names)
        self.estimator_ = clone(self.estimator).set_params(costs=self.costs_)
        if fit_params.get("eval_set") is not None:
            X_val, *rest = fit_params["eval_set"]
            fit_params = {**fit_params, "eval_set": (self.transform(X_val), *rest)}
        self.estimator_.fit(Z, y, **fit_params)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The outputs of the transformer, which the plan reads."""
        check_is_fitted(self, "preprocessing_")
        return _as_array(self.preprocessing_.transform(X))

    def predict(self, X: Any, budget: float | None = None, confidence: float | None = None) -> np.ndarray:
        """Predictions; with a budget in the prices of raw columns, what does not fit is not bought."""
        return self._fitted().predict(self.transform(X), budget=budget, confidence=confidence)

    @available_if(_estimator_has("predict_proba"))
    def predict_proba(self, X: Any, budget: float | None = None, confidence: float | None = None) -> np.ndarray:
        """Probability of each class, in the order of `classes_`."""
        return self._fitted().predict_proba(self.transform(X), budget=budget, confidence=confidence)

    @available_if(_estimator_has("decision_function"))
    def decision_function(self, X: Any, budget: float | None = None) -> np.ndarray:
        """Raw scores."""
        return self._fitted().decision_function(self.transform(X), budget=budget)

    def predict_cost(
        self, X: Any, budget: float | None = None, charge: Any = None, confidence: float | None = None
    ) -> np.ndarray:
        """What each row pays for raw columns."""
        return self._fitted().predict_cost(self.transform(X), budget=budget, charge=charge, confidence=confidence)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The estimator's own score: accuracy, or R²."""
        return float(self._fitted().score(self.transform(X), y, sample_weight))

    @property
    def classes_(self) -> np.ndarray:
        """The classes, for classifiers."""
        return np.asarray(self._fitted().classes_)

    @property
    def plan_(self) -> Any:
        """The plan over the outputs of the transformer."""
        return self._fitted().plan_

    @property
    def selected_features_(self) -> list[str]:
        """The raw columns that the model may look at."""
        used = {name for output in self._fitted().selected_features_ for name in self.needs_[output]}
        return [name for name in self.feature_names_in_ if name in used]

    def _fitted(self) -> Any:
        check_is_fitted(self)
        return self.estimator_

    def _raw_costs(self, X: Any) -> CostTable:
        """The prices in the order of the raw columns; frames by name, arrays by number."""
        costs = self.estimator.costs
        if costs is None:
            raise ValueError("The estimator has no costs. Give it the prices of the raw columns: costs=CostTable(...).")
        if costs.missing:
            raise ValueError(
                "A transformer may fill in values that nobody ordered (missing='not_ordered'). Use an estimator "
                "without a pipeline, such as AutoMiserClassifier."
            )
        if hasattr(X, "columns"):
            bound: CostTable = costs.bind([str(name) for name in X.columns])
            return bound
        X = X if hasattr(X, "shape") else np.asarray(X)
        return costs.bind(X.shape[1])

    def _output_names(self, n_outputs: int) -> list[str]:
        try:
            inputs = getattr(self.preprocessing_, "feature_names_in_", self.feature_names_in_)
            names = [str(name) for name in self.preprocessing_.get_feature_names_out(inputs)]
        except (AttributeError, ValueError, TypeError):
            names = []
        if len(names) != n_outputs or len(set(names)) < n_outputs:
            names = [f"output {j}" for j in range(n_outputs)]
        return names

    def _carried(self, X: Any, raw: CostTable, names: list[str]) -> CostTable:
        """The prices of the outputs: of each, the acquisitions of the raw columns that it needs."""
        needs = self._found_needs(X, raw, names)
        self.needs_ = {name: tuple(f for f in raw.features if f in need) for name, need in needs.items()}
        wanted = {
            name: tuple(dict.fromkeys(a for feature in columns for a in raw.needs[feature]))
            for name, columns in self.needs_.items()
        }
        return CostTable(
            features=tuple(names),
            needs=wanted,
            prices=raw.prices,
            evaluation=raw.evaluation,
            unit=raw.unit,
            named=False,
        )

    def _found_needs(self, X: Any, raw: CostTable, names: list[str]) -> dict[str, frozenset[str]]:
        given = {str(name): frozenset(map(str, columns)) for name, columns in (self.needs or {}).items()}
        for name, columns in given.items():
            if name not in names:
                raise ValueError(f"needs names {name!r}, which is no output. The outputs are: {', '.join(names[:20])}.")
            if unknown := sorted(columns - set(raw.features)):
                raise ValueError(f"needs of {name!r}: there is no raw column {unknown[0]!r}.")
        try:
            traced = trace_needs(self.preprocessing_, X, raw.features)
        except CannotKnowError as error:
            if set(names) <= set(given):
                traced = Traced(tuple(given[name] for name in names))
            else:
                first = next(name for name in names if name not in given)
                raise ValueError(
                    f"{error} What the outputs need cannot be found: give needs={{{first!r}: [raw columns], …}} for "
                    f"all {len(names)} outputs."
                ) from None
        found = {name: given.get(name, need) for name, need in zip(names, traced.needs)}
        self.probed_ = [names[j] for j in sorted(traced.probed) if names[j] not in given]
        if self.probed_:
            shown = "; ".join(f"{name!r} needs {', '.join(sorted(found[name]))}" for name in self.probed_[:3])
            warnings.warn(
                f"What {len(self.probed_)} outputs need was found by probing: {shown}. Look at needs_, and confirm it "
                "by needs=pipeline.needs_.",
                stacklevel=3,
            )
        return found


def _as_array(Z: Any) -> Any:
    """The outputs as numbers; sparse ones stay sparse."""
    if issparse(Z):
        return Z.tocsc()
    array = np.asarray(Z)
    if array.ndim == 1:
        array = array[:, None]
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
