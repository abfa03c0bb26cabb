"""Slow, plain twins of the linear solvers."""

import numpy as np
from scipy.optimize import minimize


def lasso_sweep(Z, Y, penalty, beta):
    """One sweep of block coordinate descent, everything recomputed for every block."""
    beta = beta.copy()
    for j in range(Z.shape[1]):
        square = Z[:, j] @ Z[:, j]
        pull = Z[:, j] @ (Y - Z @ beta) + square * beta[j]
        size = np.linalg.norm(pull)
        beta[j] = pull / square * (1 - penalty[j] / size) if size > penalty[j] else 0.0
    return beta


def lasso_violation(Z, Y, penalty, beta):
    """How far the conditions of optimality are from holding, from their definition."""
    worst = 0.0
    for j in range(Z.shape[1]):
        pull = Z[:, j] @ (Y - Z @ beta)
        size = np.linalg.norm(beta[j])
        if size > 0:
            worst = max(worst, np.abs(pull - penalty[j] * beta[j] / size).max())
        else:
            worst = max(worst, np.linalg.norm(pull) - penalty[j])
    return worst


def svm_objective(v, Z, y, C, weights):
    """½‖w‖² + ½C Σ μ ξ², v = (w, b)."""
    slack = np.maximum(0, 1 - y * (Z @ v[:-1] + v[-1]))
    return 0.5 * v[:-1] @ v[:-1] + 0.5 * C * weights @ slack**2


def svm_gradient(v, Z, y, C, weights):
    slack = np.maximum(0, 1 - y * (Z @ v[:-1] + v[-1]))
    pull = C * weights * y * slack
    return np.append(v[:-1] - Z.T @ pull, -pull.sum())


def svm_minimum(Z, y, C, weights):
    """By a general minimiser."""
    start = np.zeros(Z.shape[1] + 1)
    args = (Z, y, C, weights)
    return minimize(svm_objective, start, args, "BFGS", svm_gradient, options={"gtol": 1e-10, "maxiter": 5000}).x


def platt_loss(v, scores, y01, weights):
    """Weighted log-loss against Platt's softened targets, as the 1999 paper writes them."""
    positive, negative = weights @ y01, weights @ (1 - y01)
    target = np.where(y01 > 0, (positive + 1) / (positive + 2), 1 / (negative + 2))
    z = v[0] * scores + v[1]
    return weights @ (target * np.logaddexp(0, -z) + (1 - target) * np.logaddexp(0, z))
