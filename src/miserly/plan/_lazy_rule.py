"""When a lazy plan stops, and how it chooses what to buy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Keep = Literal["class", "order"]


@dataclass(frozen=True)
class Lazy:
    """What a lazy plan keeps, and how it chooses what to buy.

    Parameters
    ----------
    keep : {"class", "order"}
        What is the same as if everything were bought: the class of each row, or the first `k` rows of each query in
        their order.
    k : int, default=10
        How many rows of a query, 1 or more. Only "order" reads it.
    adaptive : bool, default=True
        Whether a row buys next what may narrow its answer most for its price, or what the trees ask for in their order.
    confidence : float, default=inf
        Rows stop when their most probable class has this probability by what is known: then the class may change.

    Examples
    --------
    >>> Lazy("order", k=5)
    Lazy(keep='order', k=5, adaptive=True, confidence=inf)
    """

    keep: Keep
    k: int = 10
    adaptive: bool = True
    confidence: float = math.inf

    def __post_init__(self) -> None:
        if self.keep not in ("class", "order"):
            raise ValueError(f"A lazy plan keeps the 'class' or the 'order', got {self.keep!r}.")
        if not 1 <= self.k < 1 << 31:
            raise ValueError(f"k is a number of rows, 1 or more, got {self.k}.")
        if math.isnan(self.confidence) or self.confidence <= 0.0:
            raise ValueError(f"confidence is a probability above 0, got {self.confidence:g}.")


def write_lazy(rule: Lazy) -> dict[str, Any]:
    """The rule for the header of a plan file, which has no infinity."""
    confidence = rule.confidence if rule.confidence < math.inf else None
    return {"keep": rule.keep, "k": rule.k, "adaptive": rule.adaptive, "confidence": confidence}


def read_lazy(header: Mapping[str, Any]) -> Lazy:
    """The rule of a plan file."""
    if set(header) != {"keep", "k", "adaptive", "confidence"}:
        raise ValueError("the lazy rule is not complete")
    keep, k, adaptive, confidence = (header[name] for name in ("keep", "k", "adaptive", "confidence"))
    if not (isinstance(keep, str) and type(k) is int and type(adaptive) is bool):
        raise ValueError("the lazy rule holds values of other kinds")
    return Lazy(keep, k, adaptive, math.inf if confidence is None else float(confidence))  # type: ignore[arg-type]
