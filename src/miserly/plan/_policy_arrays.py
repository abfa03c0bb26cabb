"""What a policy plan keeps besides its predictor: value trees, calibration and the trade-off, as arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from miserly._typing import Array, Bools, Floats
from miserly.plan._dictionary import Trees
from miserly.plan._frozen import Frozen, frozen

OWN_TYPES: dict[str, Any] = {
    "first": np.int32,
    "bias": np.float64,
    "ahead": np.bool_,
    "level": np.int32,
    "scale": np.float64,
    "offset": np.float64,
    "misses": np.bool_,
    "radius": np.float64,
}
POLICY_TYPES = {**OWN_TYPES, **{f"values.{name}": dtype for name, dtype in Trees.array_types.items()}}


@dataclass(frozen=True, eq=False)
class Policy(Frozen):
    """What decides on purchases, as arrays.

    Parameters
    ----------
    values : Trees
        The value trees. They read the features, then the present probabilities and their entropy (or the number
        predicted). The trees of the first third of the lines of `first` sum to the expected drop of loss by each
        candidate alone; the next third to the drop by the candidate and the best purchases after it; the last third
        to the price of those purchases.
    first : array of int32, 3 × candidates + 1
        Where the trees of each line begin.
    bias : array of float, 3 × candidates
        The constant of each line.
    ahead : array of bool, one per candidate
        Whether the candidate is also judged together with the purchases after it.
    level : array of int32, used features + 1
        The line of `scale` and `offset` for each number of known features.
    scale, offset : arrays of float, levels × outputs
        How scores are calibrated where so much is known.
    misses : array of bool, one per feature
        Whether the feature was missing in some training rows: then a value that is bought and missing is different
        from one that is not bought.
    tradeoff : float, at least 0
        λ: the drop of loss that a unit of cost must bring. At 0 everything is bought.
    confidence : float, default=inf
        Rows stop when their most probable class has this probability.
    radius : array of float, one per level, default=None
        Scores that are nearer to the prior than this say little: they are moved towards it, to (distance / radius)² of
        their distance. None is 0: nothing is moved.

    Examples
    --------
    One candidate, expected to lower the loss by 2 whatever is known. Without calibration, and with no value trees:

    >>> none = Trees([0], [], [], [], [], [])
    >>> policy = Policy(
    ...     values=none,
    ...     first=[0, 0, 0, 0],
    ...     bias=[2.0, 0.0, 0.0],
    ...     ahead=[False],
    ...     level=[0, 0],
    ...     scale=[[1.0]],
    ...     offset=[[0.0]],
    ...     misses=[False, False],
    ...     tradeoff=0.1,
    ... )
    >>> policy.bias
    array([2., 0., 0.])
    """

    values: Trees
    first: Array
    bias: Floats
    ahead: Bools
    level: Array
    scale: Floats
    offset: Floats
    misses: Bools
    tradeoff: float
    confidence: float = math.inf
    radius: Floats = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.radius is None:
            object.__setattr__(self, "radius", np.zeros(len(self.scale)))
        for name, dtype in OWN_TYPES.items():
            object.__setattr__(self, name, frozen(getattr(self, name), dtype))
        lines = 3 * self.ahead.size
        ok = self.first.shape == (lines + 1,) and self.bias.shape == (lines,) and self.ahead.ndim == 1
        ok = (
            ok
            and self.first[0] == 0
            and bool((self.first[1:] >= self.first[:-1]).all())
            and self.first[-1] == len(self.values)
        )
        ok = ok and self.scale.ndim == 2 and self.scale.shape == self.offset.shape and self.level.ndim == 1
        ok = ok and bool(((self.level >= 0) & (self.level < len(self.scale))).all()) and self.misses.ndim == 1
        ok = ok and self.radius.shape == (len(self.scale),) and bool((self.radius >= 0).all())
        if not ok or not self.tradeoff >= 0.0 or math.isnan(self.confidence):
            raise ValueError("The arrays of the policy do not fit together.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and all(
            np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b
            for a, b in ((getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__)
        )


def write_policy(policy: Policy, arrays: dict[str, Array]) -> dict[str, float | None]:
    """Put a policy's arrays among those of a plan file; returns its numbers for the header."""
    arrays |= {f"policy.{name}": getattr(policy, name) for name in OWN_TYPES}
    arrays |= {f"policy.values.{name}": array for name, array in policy.values.arrays().items()}
    return {"tradeoff": policy.tradeoff, "confidence": policy.confidence if policy.confidence < math.inf else None}


def read_policy(numbers: Mapping[str, float | None], arrays: Mapping[str, Array]) -> Policy:
    """The policy of a plan file."""
    trees = Trees(**{name: arrays[f"policy.values.{name}"] for name in Trees.array_types})
    own = {name: arrays[f"policy.{name}"] for name in OWN_TYPES}
    tradeoff, confidence = numbers["tradeoff"], numbers["confidence"]
    if tradeoff is None:
        raise ValueError("the policy has no trade-off")
    return Policy(trees, **own, tradeoff=tradeoff, confidence=math.inf if confidence is None else confidence)
