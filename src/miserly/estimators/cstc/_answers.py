"""What the nodes of a soft graph answer once its gates are hard: weights fitted again to the rows that come there.

Trees were grown on these rows, where all of them look better than they are: least squares would fit the same noise once
more. So their weights are shrunk as by as many rows as there are, towards those of the model that they come from, or
towards zero, and then stretched by one factor; which of the three is best only other rows can tell.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from miserly._typing import Floats
from miserly.estimators._base import Learners, Posed, Reading, Scorer
from miserly.estimators.cstc._node_losses import NodeLoss
from miserly.estimators.cstc._soft_graph import SoftGraph
from miserly.solvers import EXIT, GateGraph, Window

GONE = -2
LOGISTIC = NodeLoss("logistic")
NEWTON_STEPS = 25  # it converges in about eight
SHORTEST = 1e-6  # of a Newton step: below that rounding decides whether the loss falls
Trust = Literal["model", "little", "rows"]
TRUSTS: tuple[Trust, ...] = ("model", "little", "rows")


def answers(
    soft: SoftGraph, learners: Learners, targets: Floats, counts: Floats, trust: Trust | None
) -> tuple[list[Scorer], Floats]:
    """The nodes, and what they say of the rows. Without `trust` they are as the graph has them.

    Else each is fitted to those rows (which count as `counts`) that come there, to what the node above leaves of their
    targets; or, if the loss is one at the exits, to those that leave there, from nothing.
    """
    known = learners.known(targets.shape[1]) if trust in ("model", "little") else None
    scores = np.zeros_like(targets)
    scorers: list[Scorer] = []
    for k, (node, rows, ways) in enumerate(zip(soft.nodes, *routes(soft))):
        counted = soft.task.at_exit and not soft.graph.is_leaf(k)
        mine = np.flatnonzero(ways == EXIT) if counted else np.arange(len(rows))
        count = counts[rows[mine]]
        above = None if soft.task.at_exit else soft.graph.parents[k]
        beta, bias, columns = node.beta, node.bias, node.columns
        Z = soft.window(columns, rows)
        if trust is not None and count.any():
            if above is None:
                scores[rows], beta, bias = 0.0, np.zeros_like(beta), np.zeros_like(bias)
            else:
                beta, bias = scorers[above[0]].beta.copy(), scorers[above[0]].bias
            shrinkage = 1.0 if known is None else float(count.sum())
            near = known[columns] if known is not None and trust == "model" and above is None else None
            part, wanted, said = Z.part(mine), targets[rows[mine]], scores[rows[mine]]
            if soft.task.loss.is_squared:
                change, shift = refit(part, wanted - said, count, shrinkage, near, stretch=above is None)
            else:
                change, shift = refit_logistic(part, wanted, said, count, shrinkage, near)
            beta[columns] += change
            bias = bias + shift
            scores[rows] += Z.scores(change) + shift
        else:
            scores[rows] = Z.scores(beta[columns]) + bias
        scorers.append(Scorer(beta, bias, node.routing, node.threshold))
    return scorers, scores


def refit(
    Z: Window, Y: Floats, weights: Floats, shrinkage: float, known: Floats | None, stretch: bool
) -> tuple[Floats, Floats]:
    """Weights for these rows, and a free intercept: known ones, times a factor, and a step to the least squares that
    some rows' worth of shrinkage keeps short; then all times a factor, if shrinkage is not to make scores smaller."""
    total = float(weights.sum())
    centre, mean = Z.sums(weights) / total, weights @ Y / total
    around = Z.around(centre)
    A, b = around.gram(weights), around.sums(weights[:, None] * (Y - mean))
    beta = np.zeros_like(b) if known is None else _stretched(known, A, b)
    M = A.copy()
    M[np.diag_indices(len(M))] += shrinkage
    beta = beta + linalg.solve(M, b - A @ beta, assume_a="pos", check_finite=False)
    if stretch:
        beta = _stretched(beta, A, b)
    return beta, mean - centre @ beta


def refit_logistic(
    Z: Window, targets: Floats, offset: Floats, weights: Floats, shrinkage: float, known: Floats | None
) -> tuple[Floats, Floats]:
    """What to add to scores so that the logistic loss of these rows is least, output by output.

    Weights are kept near `known` or zero, and the intercept near zero, as by some rows' worth of the largest curvature.
    """
    n_columns = len(Z.sums(weights))
    near = np.zeros((n_columns, targets.shape[1])) if known is None else known
    both = [
        _newton(Z, targets[:, [o]], offset[:, [o]], weights, shrinkage, np.append(near[:, o], 0.0))
        for o in range(targets.shape[1])
    ]
    table = np.column_stack(both)
    return table[:-1], table[-1]


def _newton(Z: Window, y: Floats, offset: Floats, weights: Floats, shrinkage: float, near: Floats) -> Floats:
    """Weights and intercept of one output, by Newton's method with halved steps."""
    ridge = LOGISTIC.curvature * np.append(np.full(len(near) - 1, shrinkage), 1.0)

    def value(v: Floats) -> tuple[float, Floats]:
        scores = offset + (Z.scores(v[:-1]) + v[-1])[:, None]
        return float(weights @ LOGISTIC.values(scores, y) + 0.5 * ridge @ (v - near) ** 2), scores

    at, (now, scores) = near.copy(), value(near)
    for _ in range(NEWTON_STEPS):
        slope = LOGISTIC.slopes(scores, y)[:, 0]
        gradient = np.append(Z.sums(weights * slope), weights @ slope) + ridge * (at - near)
        M = Z.bordered(weights * np.abs(slope) * (1.0 - np.abs(slope)))
        M[np.diag_indices(len(M))] += ridge
        step = linalg.solve(M, gradient, assume_a="pos", check_finite=False)
        if float(step @ gradient) <= 1e-10 * now:
            break
        length, (after, moved) = 1.0, value(at - step)
        while after > now and length > SHORTEST:
            length *= 0.5
            after, moved = value(at - length * step)
        if after > now:
            break
        at, now, scores = at - length * step, after, moved
    return at


def _stretched(beta: Floats, A: Floats, b: Floats) -> Floats:
    """Each output's weights times the factor that explains most."""
    square = (beta * (A @ beta)).sum(axis=0)
    return beta * np.divide((beta * b).sum(axis=0), square, out=np.zeros_like(square), where=square > 0)


def routes(soft: SoftGraph) -> tuple[list[NDArray[np.intp]], list[NDArray[np.intp]]]:
    """The rows that come to each node when gates are hard, and where each of them goes from there."""
    at = np.zeros(soft.task.design.n_rows, np.intp)
    reached, onward = [], []
    for k in range(len(soft.nodes)):
        rows = np.flatnonzero(at == k)
        ways = np.full(len(rows), EXIT)
        if not soft.graph.is_leaf(k):
            ways = np.where(soft.traversal.gate(k)[rows] > 0.5, soft.graph.up[k], soft.graph.low[k])
        at[rows] = np.where(ways == EXIT, GONE, ways)
        reached.append(rows)
        onward.append(ways)
    return reached, onward


def fine_tuned(soft: SoftGraph, posed: Posed, trust: Trust | None) -> tuple[list[Scorer], Reading]:
    """What each node predicts when gates are hard, and how scores are read."""
    scorers, scores = answers(soft, posed.learners, posed.targets, posed.counts, trust)
    return scorers, posed.target.read(scores, posed.targets, posed.counts)


def prunable(graph: GateGraph, kept: NDArray[np.bool_], k: int) -> bool:
    """Whether node k is a leaf among those that are kept."""
    return k > 0 and not any(c != EXIT and kept[c] for c in (graph.up[k], graph.low[k]))
