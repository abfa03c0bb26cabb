"""A node of a plan: a sparse linear scorer, how it joins the score so far, and the gate that says who goes on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

EXIT = -1
Combine = Literal["add", "replace", "multiply"]
Activation = Literal["identity", "logistic"]
GateKind = Literal["open", "threshold", "confidence", "proximity", "rank", "capacity"]
QUERY_GATES = ("proximity", "rank", "capacity")


@dataclass(frozen=True)
class Gate:
    """Who goes on to `passed`; the others go to `failed`. Rows not above a threshold, say, may leave there."""

    kind: GateKind = "open"
    value: float = 0.0
    direction: int = 1
    k: int = 0

    def __post_init__(self) -> None:
        if self.kind in QUERY_GATES and self.k < 1:
            raise ValueError(f"A {self.kind} gate keeps at least one document, got k={self.k}.")
        if self.direction not in (1, -1):
            raise ValueError(f"A gate's direction is 1 (above) or -1 (below), got {self.direction}.")

    @property
    def by_query(self) -> bool:
        """Whether it compares the documents of one query, so that it must wait for all of them."""
        return self.kind in QUERY_GATES

    @classmethod
    def above(cls, threshold: float) -> Gate:
        """Passes rows whose routing score is above the threshold."""
        return cls("threshold", float(threshold), 1)

    @classmethod
    def below(cls, threshold: float) -> Gate:
        """Passes rows whose routing score is below the threshold."""
        return cls("threshold", float(threshold), -1)

    @classmethod
    def unless_confident(cls, probability: float) -> Gate:
        """Passes rows whose most probable class has less than this probability."""
        return cls("confidence", float(probability))

    @classmethod
    def near_top(cls, k: int, distance: float) -> Gate:
        """Passes documents that score at most `distance` below the k-th best of their query."""
        return cls("proximity", float(distance), k=k)

    @classmethod
    def top(cls, k: int) -> Gate:
        """Passes the k best documents of each query; ties go to the earlier row."""
        return cls("rank", k=k)

    @classmethod
    def among_seen(cls, k: int) -> Gate:
        """Passes a document that is among the k best of its query's rows up to itself (a heap of fixed capacity)."""
        return cls("capacity", k=k)

    def describe(self) -> str:
        """The gate in words."""
        return {
            "open": "always",
            "threshold": f"score {'>' if self.direction > 0 else '<'} {self.value:.4g}",
            "confidence": f"confidence < {self.value:.4g}",
            "proximity": f"within {self.value:.4g} of the query's number {self.k}",
            "rank": f"among the query's first {self.k}",
            "capacity": f"among the best {self.k} seen so far",
        }[self.kind]


@dataclass(frozen=True, eq=False)
class Node:
    """Scores `outputs` with `weights` over `learners` (one line each), then passes rows through its gate.

    `activation` is applied to the node's own outputs before they `combine` with the score so far; `scale` and `offset`
    calibrate how the score is read as a probability by rows that leave here. A `routing` vector, where it differs from
    the outputs, is what the gate looks at. `tier` ranks rows that leave here below those that leave at a higher tier.
    `gain` is what the node's purchases brought in training, where the learner knows it.
    """

    learners: NDArray[np.int32]
    weights: NDArray[np.float64]
    bias: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))
    outputs: tuple[int, ...] = (0,)
    combine: Combine = "add"
    activation: Activation = "identity"
    scale: NDArray[np.float64] | None = None
    offset: NDArray[np.float64] | None = None
    routing: NDArray[np.float64] | None = None
    routing_bias: float = 0.0
    gate: Gate = Gate()
    passed: int = EXIT
    failed: int = EXIT
    tier: int = 0
    gain: float = math.nan

    def __post_init__(self) -> None:
        learners = _frozen(self.learners, np.int32)
        outputs = tuple(int(k) for k in self.outputs)
        weights = _frozen(self.weights, np.float64).reshape(len(learners), -1) if len(learners) else None
        if weights is None:
            weights = _frozen(np.zeros((0, len(outputs))), np.float64)
        if weights.shape != (len(learners), len(outputs)):
            raise ValueError(
                f"A node's weights are learners × outputs, got {weights.shape} for {len(outputs)} outputs."
            )
        set_ = object.__setattr__
        set_(self, "learners", learners)
        set_(self, "outputs", outputs)
        set_(self, "weights", weights)
        set_(self, "bias", _frozen(np.broadcast_to(self.bias, len(outputs)), np.float64))
        for name in ("scale", "offset"):
            given = getattr(self, name)
            if given is not None:
                set_(self, name, _frozen(np.broadcast_to(given, len(outputs)), np.float64))
        if self.routing is not None:
            routing = _frozen(self.routing, np.float64)
            if routing.shape != learners.shape:
                raise ValueError(f"A routing vector has one weight per learner, got {routing.shape}.")
            set_(self, "routing", routing)

    @property
    def is_sum(self) -> bool:
        """Whether it only adds to the score so far and lets everyone pass: such nodes can be run as one."""
        return self.combine == "add" and self.activation == "identity" and self.routing is None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and all(
            _same(getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__
        )


def _frozen(values: ArrayLike, dtype: Any) -> NDArray[Any]:
    array = np.array(values, dtype=dtype)
    array.flags.writeable = False
    return array


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return bool(a == b)
