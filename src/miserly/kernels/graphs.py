"""Rows through a graph of soft gates: expected loss and cost, and what each score does to them."""

import math

import numpy as np

from miserly.kernels.compiling import compiled

EXIT = -1


@compiled
def through_gates(
    scores,
    moves,
    step,
    targets,
    omega,
    share,
    up,
    low,
    exits,
    skipped,
    direction,
    steepness,
    bias,
    threshold,
    cost,
    at_exit,
    logistic,
    gradient,
    curvature,
    leave,
    mass,
    to_bias,
    to_threshold,
):
    """The expected loss and cost of all rows where scores are `scores + step · moves` (row × node × output).

    A node's loss is half the square of what it leaves, or with `logistic` ln(1 + exp(−y f)) for targets of ±1.

    `exits` (node × side) numbers the terminals, a leaf's in its first column; `skipped` says how often a node's loss
    counts once more for rows that leave there. Children have higher numbers than their
    parents. Written: `gradient`, the slope in each score; `curvature` (row × node), what a gate adds; and, added
    up over rows, `leave` (share of each terminal), `mass` (weight of each node's loss), and two slopes.
    """
    n_rows, n_nodes, n_outputs = scores.shape
    p, s = np.empty(n_nodes), np.empty(n_nodes)
    losses, costs = np.empty(n_nodes), np.empty(n_nodes)
    leave[:], mass[:], to_bias[:], to_threshold[:] = 0.0, 0.0, 0.0, 0.0
    total = 0.0
    for i in range(n_rows):
        p[0] = 1.0
        for k in range(n_nodes):
            score = 0.0
            for o in range(n_outputs):
                gradient[i, k, o] = scores[i, k, o] + step * moves[i, k, o]
                score += gradient[i, k, o] * direction[k, o]
            if up[k] == EXIT and low[k] == EXIT:
                leave[exits[k, 0]] += share[i] * p[k]
                continue
            s[k] = 1.0 / (1.0 + math.exp(-steepness[k] * (score - threshold[k])))
            for side in range(2):
                way, part = (up[k], p[k] * s[k]) if side == 0 else (low[k], p[k] * (1.0 - s[k]))
                if way == EXIT:
                    leave[exits[k, side]] += share[i] * part
                else:
                    p[way] = part
        for k in range(n_nodes - 1, -1, -1):
            own = 0.0
            for o in range(n_outputs):
                gradient[i, k, o] += bias[k, o]
                if logistic:
                    margin = targets[i, o] * gradient[i, k, o]
                    shrunk = math.exp(-abs(margin))
                    own += math.log1p(shrunk) + max(-margin, 0.0)
                    gradient[i, k, o] = -targets[i, o] * (shrunk if margin > 0.0 else 1.0) / (1.0 + shrunk)
                else:
                    gradient[i, k, o] -= targets[i, o]
                    own += 0.5 * gradient[i, k, o] ** 2
            weight, a = omega[i] * p[k], 0.0
            times = 1.0 if at_exit else skipped[k]
            if up[k] == EXIT and low[k] == EXIT:
                times += 0.0 if at_exit else 1.0
                losses[k], costs[k], curvature[i, k] = own * times, cost[exits[k, 0]], 0.0
                weight *= times
            else:
                beyond = own * times
                loss_up, cost_up = (losses[up[k]], costs[up[k]]) if up[k] != EXIT else (beyond, cost[exits[k, 0]])
                loss_low, cost_low = (losses[low[k]], costs[low[k]]) if low[k] != EXIT else (beyond, cost[exits[k, 1]])
                losses[k] = s[k] * loss_up + (1.0 - s[k]) * loss_low
                costs[k] = s[k] * cost_up + (1.0 - s[k]) * cost_low
                left = (s[k] if up[k] == EXIT else 0.0) + (1.0 - s[k] if low[k] == EXIT else 0.0)
                if at_exit:
                    weight *= left
                else:
                    losses[k] += own
                    weight *= 1.0 + times * left
                a = omega[i] * (loss_up - loss_low) + share[i] * (cost_up - cost_low)
                a *= p[k] * steepness[k] * s[k] * (1.0 - s[k])
                curvature[i, k] = steepness[k] * (1.0 - 2.0 * s[k]) * a
                to_threshold[k] -= a
            mass[k] += weight
            for o in range(n_outputs):
                gradient[i, k, o] *= weight
                to_bias[k, o] += gradient[i, k, o]
                gradient[i, k, o] += a * direction[k, o]
        total += omega[i] * losses[0] + share[i] * costs[0]
    return total
