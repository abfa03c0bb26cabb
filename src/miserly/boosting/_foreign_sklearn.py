"""Trees, forests, boosting, linear models and support vector machines of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from miserly._typing import Array, Floats
from miserly.boosting._foreign import NO_LINK, ImportedModel, Question, Splits, Table
from miserly.boosting._importing import _float32_limit, _float64_limit
from miserly.plan import Dictionary, PolynomialKernels, RBFKernels


def classes_of(model: Any) -> Array | None:
    return np.asarray(model.classes_) if hasattr(model, "classes_") else None


def names_of(model: Any) -> Sequence[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def one_question(model: Any, n: int) -> None:
    if n > 1:
        raise ValueError(f"{type(model).__name__} answers {n} questions at once. Give one for each.")


# ---- trees ---------------------------------------------------------------------------------------------------------


def _tree_splits(tree: Any) -> Splits:
    inner = tree.tree_
    leaf = inner.children_left < 0
    limit = np.array([np.inf if end else _float32_limit(t, strict=False) for end, t in zip(leaf, inner.threshold)])
    missing_left = getattr(inner, "missing_go_to_left", np.zeros(inner.node_count, bool)).astype(bool)
    left, right = (np.where(leaf, 0, way) for way in (inner.children_left, inner.children_right))
    return Splits(leaf, inner.feature, limit, left, right, ~missing_left, inner.weighted_n_node_samples)


def _number_table(tree: Any, factor: float) -> Table:
    return _tree_splits(tree).tables(tree.tree_.value[:, 0, 0] * factor)[0]


def read_forest(model: Any) -> ImportedModel:
    check_is_fitted(model)
    members = getattr(model, "estimators_", None) or [model]
    classes, factor = classes_of(model), 1.0 / len(members)
    one_question(model, model.n_outputs_)
    tables: list[Table] = []
    for tree in members:
        values = tree.tree_.value[:, 0, :]
        if classes is not None:
            values = values / np.maximum(values.sum(axis=1, keepdims=True), 1e-300)
        tables += _tree_splits(tree).tables(*(values * factor).T)
    n_outputs = 1 if classes is None else len(classes)
    outputs, link = np.arange(len(tables)) % n_outputs, "identity" if classes is None else "shares"
    return ImportedModel(link, classes, names_of(model), model.n_features_in_, np.zeros(n_outputs), tables, outputs, 1)


def gradient_boosting(model: Any) -> ImportedModel:
    check_is_fitted(model)
    if model.init_ != "zero" and type(model.init_).__name__ not in ("DummyClassifier", "DummyRegressor"):
        raise ValueError(
            f"This boosting starts from a {type(model.init_).__name__}, which is no tree. Train it with init=None."
        )
    stages = model.estimators_
    tables = [_number_table(tree, model.learning_rate) for tree in stages.ravel()]
    n_outputs, origin = stages.shape[1], np.zeros((1, model.n_features_in_))
    base = np.asarray(model._raw_predict_init(origin), np.float64).ravel()
    classes = classes_of(model)
    link = "identity" if classes is None else "softmax" if n_outputs > 1 else "logistic"
    return ImportedModel(
        link,
        classes,
        names_of(model),
        model.n_features_in_,
        base,
        tables,
        np.arange(len(tables)) % n_outputs,
        len(stages),
        2.0 if model.loss == "exponential" else 1.0,
    )


def hist_boosting(model: Any) -> ImportedModel:
    check_is_fitted(model)
    loss = type(model._loss).__name__
    base = np.atleast_1d(np.squeeze(np.asarray(model._baseline_prediction, np.float64)))
    classes, columns = classes_of(model), _HistogramColumns(model)
    tables = [columns.table(predictor) for stage in model._predictors for predictor in stage]
    link = "exp" if loss in ("HalfPoissonLoss", "HalfGammaLoss") else "identity"
    if classes is not None:
        link = "softmax" if len(base) > 1 else "logistic"
    return ImportedModel(
        link,
        classes,
        names_of(model),
        columns.n_features,
        base,
        tables,
        np.arange(len(tables)) % len(base),
        len(model._predictors),
        categories=columns.words,
    )


class _HistogramColumns:
    """Which column of the user's table a histogram tree means, and which values are its categories: words by their
    places in `words`, numbers as they are."""

    def __init__(self, model: Any) -> None:
        self.n_features = int(model.n_features_in_)
        self.words: dict[int, Sequence[Any]] = {}
        self._origin, self._values = np.arange(self.n_features), {}
        if model._preprocessor is None:
            return
        of_user = np.asarray(model.is_categorical_, bool)
        self._origin = np.r_[np.flatnonzero(of_user), np.flatnonzero(~of_user)]
        encoder = model._preprocessor.named_transformers_["encoder"]
        known = model._bin_mapper.bin_thresholds_
        for place, words in enumerate(encoder.categories_):
            column = int(self._origin[place])
            plain = [w for w in words.tolist() if not (w is None or w != w)]
            if all(isinstance(w, int | float) for w in plain):
                values = {code: float(w) for code, w in enumerate(plain)}
            else:
                self.words[column] = plain
                values = {code: float(code) for code in range(len(plain))}
            self._values[place] = {code: values[code] for code in map(int, known[place]) if code in values}

    def table(self, predictor: Any) -> Table:
        nodes = predictor.nodes
        leaf = nodes["is_leaf"].astype(bool)
        limit = np.where(leaf, np.inf, [_float64_limit(t, strict=False) for t in nodes["num_threshold"]])
        missing_right = ~nodes["missing_go_to_left"].astype(bool)
        feature = nodes["feature_idx"].astype(int)
        questions = {
            node: self._question(int(feature[node]), predictor, nodes[node], bool(missing_right[node]))
            for node in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~leaf).tolist()
        }
        feature = np.where(leaf, 0, self._origin[np.where(leaf, 0, feature)])
        left, right = (np.where(leaf, 0, nodes[way].astype(int)) for way in ("left", "right"))
        tree = Splits(leaf, feature, limit, left, right, missing_right, nodes["count"].astype(float), questions)
        return tree.tables(nodes["value"])[0]

    def _question(self, place: int, predictor: Any, node: Any, nan_right: bool) -> Question:
        """Known categories go as the tree says, others as missing values do."""
        bits = predictor.raw_left_cat_bitsets[node["bitset_idx"]]
        right = {v: not bits[code >> 5] >> (code & 31) & 1 for code, v in self._values[place].items()}
        edges = [edge for v in right for edge in (float(np.nextafter(v, -np.inf)), v)]
        return Question.of(edges, lambda x: bool(right.get(x, nan_right)), nan_right)


# ---- linear models -------------------------------------------------------------------------------------------------


def read_linear(model: Any) -> ImportedModel:
    """Linear, logistic and generalised linear models. Those without probabilities get some: of two classes the
    logistic function of the decision, of more their softmax."""
    check_is_fitted(model)
    coef = model.coef_.toarray() if issparse(model.coef_) else np.asarray(model.coef_, np.float64)
    weights = np.atleast_2d(coef).T
    bias = np.broadcast_to(np.asarray(model.intercept_, np.float64), weights.shape[1]).copy()
    classes = classes_of(model)
    link = "identity"
    if classes is not None:
        one_by_one = getattr(model, "multi_class", "auto") == "ovr" or getattr(model, "solver", "") == "liblinear"
        one_by_one = one_by_one or getattr(model, "loss", "") == "log_loss"  # of stochastic gradient descent
        link = "logistic" if weights.shape[1] == 1 or one_by_one else "softmax"
        if getattr(model, "loss", "") == "modified_huber":
            raise ValueError(f"A model with the loss modified_huber cannot be imported. {NO_LINK}")
        if len(classes) != (2 if weights.shape[1] == 1 else max(3, weights.shape[1])):
            raise ValueError(f"{type(model).__name__} answers several questions at once. Give one for each.")
    else:
        one_question(model, weights.shape[1])
        link = _link_of_numbers(model)
    return ImportedModel(link, classes, names_of(model), model.n_features_in_, bias, weights=weights)


def _link_of_numbers(model: Any) -> str:
    loss = getattr(model, "_base_loss", None)
    name = "IdentityLink" if loss is None else type(loss.link).__name__
    links = {"IdentityLink": "identity", "LogLink": "exp"}
    if name not in links:
        raise ValueError(f"A {type(model).__name__} with {name} cannot be imported. {NO_LINK}")
    return links[name]


# ---- support vector machines ---------------------------------------------------------------------------------------


def read_svm(model: Any) -> ImportedModel:
    """Machines for classes vote pair by pair, as LibSVM does; those for numbers are one sum. With `probability=True`
    the log-odds of each pair stand beside its vote."""
    check_is_fitted(model)
    classes = classes_of(model)
    vectors, dual = (m.toarray() if issparse(m) else np.asarray(m) for m in (model.support_vectors_, model.dual_coef_))
    kernels = None if model.kernel == "linear" else _kernels_of(model, vectors)
    link, bias = "identity", np.array(model.intercept_, np.float64)
    coef = dual.T.astype(np.float64)
    if classes is not None and len(classes) > 2:
        if getattr(model, "break_ties", False):
            raise ValueError("A machine with break_ties=True cannot be imported: a plan's ties go to the first class.")
        link, coef = "vote", _by_pairs(dual, model.n_support_)
    elif classes is not None:
        link, coef, bias = "vote", -coef, -bias  # LibSVM's positive side is the first class
    if len(getattr(model, "_probA", ())) and classes is not None:
        link, a, b = "platt", np.asarray(model._probA), np.asarray(model._probB)
        coef, bias = np.c_[coef, -coef * a], np.r_[bias, -(bias * a + b)]
    weights = coef if kernels is not None else vectors.T @ coef
    return ImportedModel(link, classes, names_of(model), model.n_features_in_, bias, weights=weights, kernels=kernels)


def _kernels_of(model: Any, vectors: Floats) -> Dictionary:
    columns, gamma = np.arange(model.n_features_in_), float(model._gamma)
    if model.kernel == "rbf":
        return RBFKernels(columns, vectors, gamma=gamma)  # type: ignore[arg-type]
    if model.kernel == "poly":
        return PolynomialKernels(columns, vectors, gamma=gamma, coef0=float(model.coef0), degree=int(model.degree))  # type: ignore[arg-type]
    raise ValueError(f"A machine with the kernel {model.kernel!r} cannot be imported: a plan has linear, rbf and poly.")


def _by_pairs(dual: Floats, counts: Sequence[int]) -> Floats:
    """LibSVM's coefficients (other classes × vectors) as vectors × pairs of classes; vectors come class by class."""
    n, ends = len(counts), np.cumsum([0, *counts])
    coef = np.zeros((dual.shape[1], n * (n - 1) // 2))
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n)]
    for p, (a, b) in enumerate(pairs):
        coef[ends[a] : ends[a + 1], p] = dual[b - 1, ends[a] : ends[a + 1]]
        coef[ends[b] : ends[b + 1], p] = dual[a, ends[b] : ends[b + 1]]
    return coef
