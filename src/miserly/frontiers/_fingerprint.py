"""What a sweep was made from, in words short enough to compare and to show."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Mapping
from typing import Any

import joblib
import numpy as np

from miserly import __version__
from miserly.frontiers._job import Job

BLOCK = 1 << 24


def fingerprint(job: Job, swept: Iterable[str]) -> dict[str, str]:
    """Data, estimator, parameters that are not swept, metric, version: equal exactly if the points are the same."""
    swept = sorted(swept)
    function = getattr(job.metric.function, "func", job.metric.function)
    found = {
        "the version of Miserly": __version__,
        "the estimator": f"{type(job.model).__module__}.{type(job.model).__qualname__}",
        "the metric": f"{job.metric.name} ({function.__module__}.{getattr(function, '__qualname__', '')})",
        "the swept parameter": ", ".join(swept),
    }
    for name, value in sorted(job.model.get_params(deep=True).items()):
        if name not in swept and name.rpartition("__")[2] != "n_jobs":
            found[f"{name}="] = described(name, value)
    found["the folds"] = str(len(job.folds))
    for what, data in (("train", job.train), ("validation", job.validation), ("test", job.test)):
        for part, values in zip(("X", "y", "qid"), data or (None, None, None)):
            found[f"{part} of {what}"] = digest(values)
    for what, prices in job.prices.items():
        whole = {name: prices[name] for name in prices} if isinstance(prices, Mapping) else {"": prices}
        found |= {f"prices of {what} {name}".rstrip(): digest(values) for name, values in whole.items()}
    return found


def key(params: Mapping[str, Any]) -> str:
    """A name for a point of a grid, for its files."""
    text = repr(sorted((name, described(name, value)) for name, value in params.items()))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def described(name: str, value: Any) -> str:
    """A parameter: its value if it is plain, its kind and a hash otherwise."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, np.ndarray):
        return digest(value)
    kind = type(value).__qualname__
    if hasattr(value, "get_params") and not any(name.endswith("_") for name in vars(value)):
        return kind  # not fitted: its parameters tell the rest
    try:
        return f"{kind} #{joblib.hash(value)[:12]}"
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"store= must recognise every parameter in another process, {name}={value!r} cannot be: {error}. "
            "Define it in a module, or sweep without a store."
        ) from error


def digest(data: Any) -> str:
    """The kind, size and hash of a matrix, a list or a frame; how it lies in memory does not matter."""
    if data is None:
        return "none"
    names = getattr(data, "column_names", None) or getattr(data, "columns", None)
    if names is not None:
        columns = [
            f"{name!r} {_categories(data[name])} {digest(np.asarray(data[name]))}" for name in dict.fromkeys(names)
        ]
        return f"{type(data).__name__} of {len(columns)} columns #{_hash(['; '.join(columns).encode()])}"
    array = np.asarray(data)
    size = " × ".join(map(str, array.shape))
    if array.dtype.hasobject:
        return f"{array.dtype} {size} #{joblib.hash(array.tolist())[:12]}"
    rows = max(1, BLOCK // max(1, array[:1].nbytes)) if array.ndim else 1
    blocks = (array[i : i + rows].tobytes() for i in range(0, len(array), rows)) if array.ndim else [array.tobytes()]
    return f"{array.dtype} {size} #{_hash(blocks)}"


def _categories(column: Any) -> str:
    declared = getattr(getattr(column, "dtype", None), "categories", None)
    return "" if declared is None else joblib.hash(list(declared))


def _hash(blocks: Iterable[bytes]) -> str:
    """Of all blocks together."""
    h = hashlib.blake2b(digest_size=6)
    for block in blocks:
        h.update(block)
    return h.hexdigest()
