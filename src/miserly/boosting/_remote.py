"""Data that are not in this process: which backend holds them is found by the package that their type is from.

Backends live in a higher layer and are loaded only when such data are met.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_BACKENDS = {"dask": ("miserly.distributed", "DaskBackend")}


class RowsLostError(ConnectionError):
    """Some rows went with the machine that held them; the backend can be repaired, and the round repeated."""


class BackendLostError(ConnectionError):
    """Where the rows are cannot be reached any more. The rounds that are done are kept: `warm_start` goes on."""


def is_remote(data: Any) -> bool:
    """Whether some backend is for data of this kind."""
    return _package(data) in _BACKENDS


def backend_for(X: Any) -> Any:
    """A new backend for data of this kind; None for what is here."""
    if not is_remote(X):
        return None
    package, name = _BACKENDS[_package(X)]
    try:
        return getattr(import_module(package), name)()
    except ImportError as error:
        extra = _package(X)
        raise ImportError(
            f"Data of {extra} need the extra {extra!r}: pip install 'miserly[{extra}]' ({error})."
        ) from error


def fetch(data: Any) -> Any:
    """The data themselves, computed here if they are remote."""
    return data.compute() if is_remote(data) else data


def _package(data: Any) -> str:
    return type(data).__module__.partition(".")[0]
