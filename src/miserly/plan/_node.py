"""A node of a plan: a sparse linear scorer, how it joins the score so far, and the gate that says who goes on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from miserly.plan._dictionary import Trees
from miserly.plan._frozen import Frozen, frozen, known

EXIT = -1
Combine = Literal["add", "replace", "multiply"]
Activation = Literal["identity", "logistic"]
GateKind = Literal["open", "threshold", "confidence", "learned", "proximity", "rank", "capacity"]
ANSWER_GATES = ("open", "confidence", "learned")
QUERY_GATES = ("proximity", "rank", "capacity")


@dataclass(frozen=True)
class Gate:
    """Who goes on to a node's `passed`; the others go to its `failed`.

    The class methods, `Gate.above(0.5)` say, build the kinds with just what each takes.

    Parameters
    ----------
    kind : {"open", "threshold", "confidence", "learned", "proximity", "rank", "capacity"}, default="open"
        Open gates pass every row. A threshold is for the routing score, confidence for the probability of the most
        probable class, and a learned gate for the node's `rule`. The last three compare the documents of a query.
    value : float, default=0.0
        The threshold, the probability, the least gain, or (proximity) the distance from the k-th best document. Open,
        rank and capacity gates do not read it.
    direction : {1, -1}, default=1
        Whether a threshold passes scores above it (1) or below it (-1). Only threshold gates read it.
    k : int, default=0
        The number of documents that a proximity, rank or capacity gate counts, from 1 to 2³¹ - 1. Others do not read
        it.

    Examples
    --------
    >>> Gate.above(0.5)
    Gate(kind='threshold', value=0.5, direction=1, k=0)
    >>> Gate.top(10).describe()
    "among the query's first 10"
    """

    kind: GateKind = "open"
    value: float = 0.0
    direction: int = 1
    k: int = 0

    def __post_init__(self) -> None:
        known("gate", self.kind, GateKind)
        if self.kind in QUERY_GATES and self.k < 1:
            raise ValueError(f"A {self.kind} gate keeps at least one document, got k={self.k}.")
        if not abs(self.k) < 1 << 31:
            raise ValueError(f"A gate keeps a number of documents that memory can hold, got k={self.k}.")
        if self.direction not in (1, -1):
            raise ValueError(f"A gate's direction is 1 (above) or -1 (below), got {self.direction}.")

    @property
    def by_query(self) -> bool:
        """Whether it compares the documents of one query, so that it must wait for all of them."""
        return self.kind in QUERY_GATES

    @property
    def reads_answer(self) -> bool:
        """Whether it reads only the plan's answer so far, so that a row that skips the node can be asked too."""
        return self.kind in ANSWER_GATES

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
    def learned(cls, threshold: float = 0.0) -> Gate:
        """Passes rows for which the node's `rule`, what going on is expected to gain, is above the threshold."""
        return cls("learned", float(threshold))

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
            "learned": f"learned gain > {self.value:.4g}",
            "proximity": f"within {self.value:.4g} of the query's number {self.k}",
            "rank": f"among the query's first {self.k}",
            "capacity": f"among the best {self.k} seen so far",
        }[self.kind]


@dataclass(frozen=True, eq=False)
class Node(Frozen):
    """Scores `outputs` with `weights` over `learners` (one line each), then passes rows through its gate.

    Parameters
    ----------
    learners : array of int of shape (n_learners,)
        The numbers of the learners in the plan's dictionary. May be empty.
    weights : array of float of shape (n_learners, n_outputs)
        The weight of each learner for each output. A list will do for one output.
    bias : array of float of shape (n_outputs,), default=0
        The constant of each output; one number is for all of them.
    outputs : sequence of int, default=(0,)
        Which of the plan's outputs the node scores: at least one, each once.
    combine : {"add", "replace", "multiply"}, default="add"
        How the node's own outputs join the score so far.
    activation : {"identity", "logistic"}, default="identity"
        What is applied to the node's own outputs before they join.
    scale : array of float of shape (n_outputs,), default=None
        Rows that leave here read their score as scale × score + offset. By default 1.
    offset : array of float of shape (n_outputs,), default=None
        See `scale`. By default 0.
    routing : array of float of shape (n_learners,), default=None
        The weights of the score that the gate looks at. By default that is the score of the first of `outputs`.
    routing_bias : float, default=0.0
        The constant of the routing score.
    gate : Gate, default=Gate()
        Who passes; by default everyone.
    passed : int, default=EXIT
        The number of the node, later than this one, to which rows go that pass the gate. `EXIT`, -1, is for leaving.
    failed : int, default=EXIT
        The same for the others.
    tier : int, default=0
        Rows that leave here rank below those that leave at a higher tier. Its size is below 2³¹.
    gain : float, default=nan
        How much the node lowered the mean training loss, where that is known.
    rule : Trees, default=None
        The forest of a learned gate; the gate passes rows for which the sum of its trees is above the gate's value.
        Given exactly if the gate is learned. Its trees look at the columns of the data, then at the probability of
        each class, the highest one, and its distance from the second (without classes, at the scores).

    Examples
    --------
    >>> import numpy as np
    >>> from miserly.costs import CostTable
    >>> from miserly.plan import Gate, Node, Plan, RawFeatures
    >>> costs = CostTable.per_feature({"age": 1.0, "crp": 12.5})
    >>> nodes = (Node([0], [0.1], gate=Gate.above(4.0), passed=1), Node([1], [1.0]))
    >>> plan = Plan(costs, RawFeatures([0, 1]), nodes, [0.0])
    >>> plan.predict_cost(np.array([[50.0, 3.0], [30.0, 3.0]]))
    array([13.5,  1. ])
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
    rule: Trees | None = None

    def __post_init__(self) -> None:
        known("combine", self.combine, Combine)
        known("activation", self.activation, Activation)
        learners = frozen(self.learners, np.int32)
        outputs = tuple(int(k) for k in self.outputs)
        if learners.ndim != 1 or not outputs or len(set(outputs)) < len(outputs):
            raise ValueError("A node has a list of learners and at least one output, each output once.")
        if not abs(self.tier) < 1 << 31:
            raise ValueError(f"A node's tier is a small number, got {self.tier}.")
        weights = frozen(self.weights, np.float64)
        if (weights.ndim == 1 and len(outputs) == 1) or not len(learners):
            weights = weights.reshape(-1, len(outputs))
        if weights.shape != (len(learners), len(outputs)):
            raise ValueError(
                f"A node's weights are learners × outputs, got {weights.shape} for {len(outputs)} outputs."
            )
        set_ = object.__setattr__
        set_(self, "learners", learners)
        set_(self, "outputs", outputs)
        set_(self, "weights", weights)
        set_(self, "bias", frozen(np.broadcast_to(self.bias, len(outputs)), np.float64))
        for name in ("scale", "offset"):
            given = getattr(self, name)
            if given is not None:
                set_(self, name, frozen(np.broadcast_to(given, len(outputs)), np.float64))
        if (self.rule is None) == (self.gate.kind == "learned"):
            raise ValueError("A node has a rule exactly if its gate is learned.")
        if self.routing is not None:
            routing = frozen(self.routing, np.float64)
            if routing.shape != learners.shape:
                raise ValueError(f"A routing vector has one weight per learner, got {routing.shape}.")
            set_(self, "routing", routing)

    @property
    def ways(self) -> tuple[int, ...]:
        """Where rows may go from here, each place once; the exit too."""
        return (self.passed,) if self.gate.kind == "open" else tuple(dict.fromkeys((self.passed, self.failed)))

    @cached_property
    def output_bits(self) -> int:
        """Its outputs as a bit set."""
        return sum(1 << k for k in self.outputs)

    @cached_property
    def has_bias(self) -> bool:
        """Whether it adds a constant."""
        return bool(self.bias.any())

    @property
    def is_direct(self) -> bool:
        """Whether its learners are added to the scores themselves, not to outputs of its own that join them later."""
        return self.activation == "identity" and self.combine != "multiply"

    @property
    def is_sum(self) -> bool:
        """Whether it only adds to the score so far and lets everyone pass: such nodes can be run as one."""
        return self.combine == "add" and self.activation == "identity" and self.routing is None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and all(
            _same(getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__
        )


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return a is not None and b is not None and np.array_equal(a, b)
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return bool(a == b)
