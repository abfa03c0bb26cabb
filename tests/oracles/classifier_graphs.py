"""Slow, plain twins of the soft trees and cascades: probabilities by walking every path, norms by their definition."""

import itertools

import numpy as np
from scipy.optimize import minimize

EXIT = -1


def gate(score, threshold, steepness):
    return 1.0 / (1.0 + np.exp(-steepness * (score - threshold)))


def walks(up, low):
    """All ways through a graph: lists of (node, went up) until the exit; a leaf has one way, with None."""
    found, waiting = [], [[0, []]]
    while waiting:
        k, before = waiting.pop()
        if up[k] == EXIT and low[k] == EXIT:
            found.append([*before, (k, None)])
            continue
        for upwards, way in ((True, up[k]), (False, low[k])):
            here = [*before, (k, upwards)]
            if way == EXIT:
                found.append(here)
            else:
                waiting.append([way, here])
    return found


def walk_probability(walk, s):
    """s: node → probability of going up, for one row."""
    p = 1.0
    for k, upwards in walk:
        if upwards is not None:
            p *= s[k] if upwards else 1.0 - s[k]
    return p


def path_cost(nodes, betas, evaluation, prices, needs):
    """The mixed norm of one path, sum by sum; betas: node → learner × output."""
    total = 0.0
    n_learners = len(evaluation)
    for t in range(n_learners):
        total += evaluation[t] * np.sqrt(sum((betas[j][t] ** 2).sum() for j in nodes))
    for a in range(len(prices)):
        those = [t for t in range(n_learners) if needs[a, t]]
        total += prices[a] * np.sqrt(sum((betas[j][t] ** 2).sum() for j in nodes for t in those))
    return total


def graph_objective(
    H, Y, omega, share, up, low, params, evaluation, prices, needs, rho, at_exit, depth=0, logistic=False
):
    """The whole objective; params: one (beta, bias, direction, threshold, steepness) per node; λ is in the prices."""
    betas = [p[0] for p in params]
    total = rho * sum(np.linalg.norm(beta, axis=1).sum() for beta in betas)
    ways = walks(up, low)
    for i in range(len(H)):
        s = [gate(H[i] @ beta @ u, threshold, tau) for beta, _, u, threshold, tau in params]
        loss = [0.5 * ((H[i] @ beta + bias - Y[i]) ** 2).sum() for beta, bias, *_ in params]
        if logistic:
            loss = [np.log(1.0 + np.exp(-Y[i] * (H[i] @ beta + bias))).sum() for beta, bias, *_ in params]
        for walk in ways:
            p = walk_probability(walk, s)
            met = [k for k, _ in walk]
            met = met[-1:] if at_exit else met + met[-1:] * max(0, depth - len(met))
            total += omega[i] * p * sum(loss[k] for k in met)
    for walk in ways:
        mean = sum(
            share[i] * walk_probability(walk, [gate(H[i] @ b @ u, th, tau) for b, _, u, th, tau in params])
            for i in range(len(H))
        )
        total += mean * path_cost([k for k, _ in walk], betas, evaluation, prices, needs)
    return total


def mixed_value(A, b, beta, evaluation, prices, needs, rho, w, d, base, shared):
    """The objective of one mixed-norm problem, from its definition."""
    total = 0.5 * np.trace(beta.T @ A @ beta) - np.trace(b.T @ beta)
    squares = base + (d * np.linalg.norm(beta, axis=1)) ** 2
    for t in range(len(beta)):
        total += rho * np.linalg.norm(beta[t]) + w * evaluation[t] * np.sqrt(squares[t])
    for a in range(len(prices)):
        total += w * prices[a] * np.sqrt(shared[a] + sum(squares[t] for t in range(len(beta)) if needs[a, t]))
    return total


def mixed_minimum(A, b, evaluation, prices, needs, rho, w, d, base, shared):
    """The least value, by a general minimiser on ever sharper rounded roots; the problem is convex."""
    shape, at = b.shape, np.linalg.solve(A + 0.1 * np.eye(len(A)), b).ravel()
    for rounded in 10.0 ** -np.arange(2, 13, 2):

        def smooth(v, rounded=rounded):
            beta = v.reshape(shape)
            size = np.sqrt((beta**2).sum(axis=1) + rounded)
            squares = base + (d * size) ** 2
            group = np.sqrt(needs @ squares + shared)
            value = 0.5 * np.sum(beta * (A @ beta)) - np.sum(b * beta) + rho * size.sum()
            value += w * (evaluation @ np.sqrt(squares) + prices @ group)
            curve = rho / size + w * d**2 * (evaluation / np.sqrt(squares) + needs.T @ (prices / group))
            return value, (A @ beta - b + curve[:, None] * beta).ravel()

        limits = {"maxiter": 20000, "ftol": 1e-16, "gtol": 1e-12}
        at = minimize(smooth, at, jac=True, method="L-BFGS-B", options=limits).x
    beta = at.reshape(shape)
    return min(
        mixed_value(A, b, np.where(np.abs(beta) > cut, beta, 0.0), evaluation, prices, needs, rho, w, d, base, shared)
        for cut in (0.0, 1e-8, 1e-6, 1e-5, 1e-4)
    )


def cascade_objective(H, y, omega, share, params, evaluation, prices, needs, rhos, lam):
    """Cronus, equation (8): params is one (beta, bias, threshold, steepness) per stage, the last without a gate."""
    n, n_stages = len(H), len(params)
    total, d = 0.0, np.zeros(n_stages)
    for i in range(n):
        p = 1.0
        for k, (beta, bias, threshold, tau) in enumerate(params):
            d[k] += share[i] * p
            score = H[i] @ beta
            keep = gate(score, threshold, tau) if k < n_stages - 1 else 0.0
            total += 0.5 * omega[i] * p * (1.0 - keep) * (y[i] - score - bias) ** 2
            p *= keep
    total += sum(rho * share * np.abs(beta).sum() for rho, share, (beta, *_) in zip(rhos, d, params))
    for t in range(H.shape[1]):
        total += lam * evaluation[t] * np.sqrt(sum((d[k] * params[k][0][t]) ** 2 for k in range(n_stages)))
    for a in range(len(prices)):
        those = [(k, t) for k, t in itertools.product(range(n_stages), range(H.shape[1])) if needs[a, t]]
        squares = [(d[k] * params[k][0][t]) ** 2 for k, t in those]
        total += lam * prices[a] * np.sqrt(sum(squares))
    return total
