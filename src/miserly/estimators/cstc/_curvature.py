"""The curvature of a soft graph's nodes, each by itself: the metric in which all of them descend at once.

The curvature of a node's loss is the Gram matrix that its initialisation made, times what its weight has become since;
that of the penalties is `Joint.curve`. A gate curves along its direction only, upwards for some rows and downwards for
others; a few rows near the threshold have nearly all of it, so those that curve upwards are added up again each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from miserly._typing import Floats
from miserly.solvers import Metric

if TYPE_CHECKING:
    from miserly.estimators.cstc._joint import Joint
    from miserly.estimators.cstc._soft_graph import Classifier

MOST_CURVED = 0.7
JITTER = 1e-9
LEAST_CURVATURE = 1e-3


def loss_curvature(node: Classifier, columns: NDArray[np.intp]) -> Floats:
    """Of the weights of some columns and the intercept, for rows that weigh one together."""
    gram, centre = node.gram_of(columns)
    means = np.append(centre, 1.0)
    found = np.outer(means, means)
    found[:-1, :-1] += gram / node.mass
    return found


def metric(joint: Joint) -> Metric:
    """Applies the inverse of the nodes' curvatures, as they are where the function was asked last."""
    factors = [_factors(joint, k) for k in range(len(joint.graph))]

    def apply(slope: Floats) -> Floats:
        moved = np.empty_like(slope)
        for (along, across), u, part in zip(factors, joint.direction, joint.slices):
            sides = slope[part][:-1].reshape(-1, len(u))
            ahead = sides @ u
            solved = dpotrs(along, np.append(ahead, slope[part][-1]))[0]
            weights = np.outer(solved[:-1], u)
            if across is not None:
                weights += dpotrs(across, sides - np.outer(ahead, u))[0]
            moved[part][:-1], moved[part][-1] = weights.ravel(), solved[-1]
        return moved

    return apply


def _factors(joint: Joint, k: int) -> tuple[Floats, Floats | None]:
    """Along the gate's direction, of weights, intercept and threshold; and across it, of weights and intercepts."""
    mass = joint.task.loss.curvature * (float(joint.mass[k]) + JITTER * joint.whole.nodes[k].mass)
    M = joint.loss_curvature[k] * mass
    size = len(M)
    M[np.arange(size - 1), np.arange(size - 1)] += joint.curve[joint.places[k], k]
    M[np.diag_indices(size)] += JITTER * np.trace(M) / size
    across = dpotrf(M)[0] if joint.n_outputs > 1 else None
    along = np.zeros((size + 1, size + 1))
    along[:size, :size] = M
    along[size, size] = LEAST_CURVATURE * mass
    if not joint.graph.is_leaf(k):
        rows = _most_curved(joint.gate_curvature[:, k])
        curved = joint.H.part(rows, joint.places[k]).bordered(joint.gate_curvature[rows, k])
        along[: size - 1, : size - 1] += curved[:-1, :-1]
        along[: size - 1, size] -= curved[:-1, -1]
        along[size, : size - 1] -= curved[-1, :-1]
        along[size, size] += curved[-1, -1]
    return dpotrf(along)[0], across


def _most_curved(gate_curvature: Floats) -> NDArray[np.intp]:
    """The rows that have the most of what curves upwards."""
    upwards = np.flatnonzero(gate_curvature > 0.0)
    order = upwards[np.argsort(-gate_curvature[upwards])]
    total = np.cumsum(gate_curvature[order])
    return order[: int(np.searchsorted(total, MOST_CURVED * total[-1])) + 1] if len(order) else order
