"""Which raw columns each output of a fitted transformer needs: by what scikit-learn's own transformers are known to do,
and by probing for the rest."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

Needs = list[frozenset[str]]
SAMPLE_ROWS = 256  # rows on which an unknown transformer is probed: enough to see rare branches, few enough to be quick
N_PROBES = 3  # permutations of a column; one may leave rare values where they are


@dataclass(frozen=True)
class Traced:
    """What each output needs, and which outputs were found by probing only."""

    needs: tuple[frozenset[str], ...]
    probed: frozenset[int] = frozenset()


class CannotKnowError(ValueError):
    """A transformer whose needs cannot be found."""


def trace_needs(transformer: Any, X: Any, names: Sequence[str]) -> Traced:
    """The needs of every output of a fitted transformer, on rows like these."""
    n_rows = X.shape[0]
    sample = X if n_rows <= SAMPLE_ROWS else _safe_indexing(X, np.linspace(0, n_rows - 1, SAMPLE_ROWS).astype(int))
    tracer = _Tracer()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # probes hold values that no data have, such as unknown categories
        needs = tracer.outputs(transformer, sample, [frozenset((name,)) for name in names])
    return Traced(tuple(needs), frozenset(j for j, key in enumerate(needs) if key in tracer.probed))


class _Tracer:
    """Follows columns through nested transformers; remembers which sets of columns came out of a probe."""

    def __init__(self) -> None:
        self.probed: set[frozenset[str]] = set()

    def outputs(self, transformer: Any, X: Any, needs: Needs) -> Needs:
        """The needs of a transformer's outputs, given those of its inputs."""
        if transformer is None or transformer == "passthrough":
            return needs
        if transformer == "drop":
            return []
        for kind in type(transformer).__mro__:
            rule = RULES.get(kind.__name__)
            if rule is not None:
                found = rule(self, transformer, X, needs)
                if found is not None and len(found) == _width(transformer.transform(X)):
                    return found
        return self.probe(transformer, X, needs)

    def probe(self, transformer: Any, X: Any, needs: Needs) -> Needs:
        """Change one input at a time and see which outputs change."""
        plain = _dense(transformer.transform(X))
        if not _same(plain, _dense(transformer.transform(X))).all():
            raise CannotKnowError(f"{type(transformer).__name__} gives other outputs for the same rows.")
        rng = np.random.default_rng(0)
        found: list[set[str]] = [set() for _ in range(plain.shape[1])]
        for i, need in enumerate(needs):
            for changed in _changes(X, i, rng):
                try:
                    other = _dense(transformer.transform(changed))
                except (ValueError, TypeError):  # it refuses this change: another one may do
                    continue
                for j in np.flatnonzero(~_same(plain, other).all(axis=0)):
                    found[j] |= need
        result = [frozenset(need) for need in found]
        self.probed |= {need for need in result if need not in needs}
        lost = [j for j, need in enumerate(result) if not need and len(np.unique(plain[:, j].astype(str))) > 1]
        if lost:
            raise CannotKnowError(
                f"Output {lost[0]} of {type(transformer).__name__} changes with no column that was tried."
            )
        return result


def _changes(X: Any, column: int, rng: np.random.Generator) -> list[Any]:
    """Copies of X with one column permuted, and with it missing."""
    copies = []
    for probe in range(N_PROBES + 1):
        order = rng.permutation(X.shape[0])
        if hasattr(X, "columns"):
            copy = X.copy() if hasattr(X, "iloc") else X.clone()
            if not hasattr(X, "iloc"):
                continue
            values = copy.iloc[:, column]
            copy.isetitem(column, values.iloc[order].to_numpy() if probe < N_PROBES else [None] * len(values))
        else:
            copy = np.array(_dense(X))
            if probe == N_PROBES and copy.dtype.kind not in "fO":
                continue
            copy[:, column] = copy[order, column] if probe < N_PROBES else np.nan
        copies.append(copy)
    return copies


def _pipeline(tracer: _Tracer, t: Any, X: Any, needs: Needs) -> Needs:
    for _, step in t.steps:
        needs = tracer.outputs(step, X, needs)
        X = X if step in (None, "passthrough") else step.transform(X)
    return needs


def _column_transformer(tracer: _Tracer, t: Any, X: Any, needs: Needs) -> Needs:
    n_outputs = max((s.stop for s in t.output_indices_.values()), default=0)
    result: Needs = [frozenset()] * n_outputs
    names = [str(c) for c in X.columns] if hasattr(X, "columns") else None
    for name, step, columns in t.transformers_:
        where = t.output_indices_[name]
        if where.start == where.stop:
            continue
        chosen = _numbers(columns, len(needs), names)
        part = _safe_indexing(X, chosen, axis=1)
        if isinstance(columns, str | int | np.integer):  # a vector, as text transformers take it
            result[where] = [needs[chosen[0]]] * (where.stop - where.start)
        else:
            result[where] = tracer.outputs(step, part, [needs[i] for i in chosen])
    return result


def _numbers(columns: Any, n_columns: int, names: list[str] | None) -> list[int]:
    """Places of columns that are given by name, number, slice or mask."""
    if callable(columns):
        raise CannotKnowError("Columns that are chosen by a function are not known.")
    if isinstance(columns, str):
        columns = [columns]
    if isinstance(columns, int | np.integer):
        columns = [int(columns)]
    if isinstance(columns, slice):
        start, stop = (names.index(s) if isinstance(s, str) and names else s for s in (columns.start, columns.stop))
        stop = stop + 1 if isinstance(columns.stop, str) else stop
        return list(range(n_columns))[slice(start, stop, columns.step)]
    values = list(columns)
    if values and isinstance(values[0], bool | np.bool_):
        return [int(i) for i in np.flatnonzero(values)]
    return [names.index(v) if isinstance(v, str) and names is not None else int(v) for v in values]


def _union(tracer: _Tracer, t: Any, X: Any, needs: Needs) -> Needs:
    return [need for _, step in t.transformer_list if step != "drop" for need in tracer.outputs(step, X, needs)]


def _one_to_one(tracer: _Tracer, t: Any, X: Any, needs: Needs) -> Needs:
    return needs


def _everything(tracer: _Tracer, t: Any, X: Any, needs: Needs) -> Needs:
    return [frozenset().union(*needs)] * _width(t.transform(X))


def _one_hot(tracer: _Tracer, t: Any, X: Any, needs: Needs) -> Needs | None:
    counts = getattr(t, "_n_features_outs", None)
    return None if counts is None else _repeated(needs, counts)


def _bins(tracer: _Tracer, t: Any, X: Any, needs: Needs) -> Needs:
    return needs if t.encode == "ordinal" else _repeated(needs, t.n_bins_)


def _target_encoder(tracer: _Tracer, t: Any, X: Any, needs: Needs) -> Needs:
    n_classes = len(t.classes_) if t.target_type_ == "multiclass" else 1
    return _repeated(needs, [n_classes] * len(needs))


def _splines(tracer: _Tracer, t: Any, X: Any, needs: Needs) -> Needs:
    return _repeated(needs, [t.n_features_out_ // len(needs)] * len(needs))


def _imputer(tracer: _Tracer, t: Any, X: Any, needs: Needs) -> Needs:
    empty = [isinstance(s, float) and s != s for s in np.asarray(t.statistics_, object).tolist()]
    kept = [need for need, gone in zip(needs, empty) if t.keep_empty_features or not gone]
    return kept + _indicators(t, needs)


def _joint_imputer(tracer: _Tracer, t: Any, X: Any, needs: Needs) -> Needs:
    whole, extra = frozenset[str]().union(*needs), _indicators(t, needs)
    return [whole] * (_width(t.transform(X)) - len(extra)) + extra


def _indicators(t: Any, needs: Needs) -> Needs:
    indicator = getattr(t, "indicator_", None)
    return [] if indicator is None else [needs[i] for i in indicator.features_]


def _missing_indicator(tracer: _Tracer, t: Any, X: Any, needs: Needs) -> Needs:
    return [needs[i] for i in t.features_]


def _polynomials(tracer: _Tracer, t: Any, X: Any, needs: Needs) -> Needs:
    return [frozenset[str]().union(*(needs[i] for i in np.flatnonzero(powers))) for powers in t.powers_]


def _selection(tracer: _Tracer, t: Any, X: Any, needs: Needs) -> Needs:
    return [needs[i] for i in t.get_support(indices=True)]


def _function(tracer: _Tracer, t: Any, X: Any, needs: Needs) -> Needs | None:
    return needs if t.func is None else None


def _repeated(needs: Needs, counts: Sequence[Any]) -> Needs:
    return [need for need, n in zip(needs, counts) for _ in range(int(n))]


Rule = Callable[[_Tracer, Any, Any, Needs], Needs | None]
RULES: dict[str, Rule] = {
    "Pipeline": _pipeline,
    "ColumnTransformer": _column_transformer,
    "FeatureUnion": _union,
    "OneHotEncoder": _one_hot,
    "KBinsDiscretizer": _bins,
    "TargetEncoder": _target_encoder,
    "SplineTransformer": _splines,
    "SimpleImputer": _imputer,
    "KNNImputer": _joint_imputer,
    "IterativeImputer": _joint_imputer,
    "MissingIndicator": _missing_indicator,
    "PolynomialFeatures": _polynomials,
    "SelectorMixin": _selection,
    "FunctionTransformer": _function,
    **dict.fromkeys(("OrdinalEncoder", "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"), _one_to_one),
    **dict.fromkeys(("PowerTransformer", "QuantileTransformer", "Binarizer"), _one_to_one),
    **dict.fromkeys(
        ("PCA", "IncrementalPCA", "KernelPCA", "TruncatedSVD", "FastICA", "NMF", "Normalizer"), _everything
    ),
}


def _width(Z: Any) -> int:
    return int(Z.shape[1]) if len(Z.shape) > 1 else 1


def _dense(Z: Any) -> np.ndarray:
    Z = Z.toarray() if issparse(Z) else np.asarray(Z)
    return Z.reshape(len(Z), -1)


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where two arrays are equal, missing values included."""
    if a.shape != b.shape:
        return np.zeros(a.shape, bool)
    return np.asarray((a == b) | ((a != a) & (b != b)), bool)
