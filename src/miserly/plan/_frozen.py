"""Data that are checked and made read-only when they are built; copies and pickles are built again."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Frozen:
    """A frozen dataclass whose copies go through its checks again."""

    def __reduce__(self) -> tuple[Any, ...]:
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        return _rebuilt, (type(self), {name: getattr(self, name) for name in names})


def frozen(values: ArrayLike, dtype: Any) -> NDArray[Any]:
    """A read-only copy."""
    array = np.array(values, dtype=dtype)
    array.flags.writeable = False
    return array


def known(what: str, word: str, words: Any) -> None:
    """Refuse a word that is not one of a literal's."""
    if word not in get_args(words):
        raise ValueError(f"{what} is one of {', '.join(get_args(words))}, got {word!r}.")


def _rebuilt(kind: type[Any], values: dict[str, Any]) -> Any:
    return kind(**values)
