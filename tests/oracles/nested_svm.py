"""Slow, plain twins of the SVM inside AFR's loss: everything solved again, and the matrix-inverse rule literally."""

import numpy as np

from miserly.solvers import newton_svm


def outer_loss(phi, y, mu, n_train, n_seen, C, a=5.0, rows=None):
    """Σ_V μ σ(yJ), the SVM fitted to the training rows from nothing."""
    w, b, _ = newton_svm(phi[:n_train].copy(), y[:n_train], C, mu[:n_train])
    rows = slice(n_train, n_seen) if rows is None else rows
    J = phi[rows] @ w + b
    return float(np.sum(mu[rows] / (1.0 + np.exp(a * y[rows] * J))))


def literal_slope(phi, y, mu, n_train, n_seen, C, i, s, a=5.0):
    """∂ℓ/∂φ_i^s of a training row by d(M⁻¹z) = M⁻¹(dz − dM M⁻¹z), M and its derivative written out."""
    w, b, _ = newton_svm(phi[:n_train].copy(), y[:n_train], C, mu[:n_train])
    slack = 1.0 - y[:n_train] * (phi[:n_train] @ w + b)
    S = phi.shape[1]
    M = np.diag([1.0 / C] * S + [0.0])
    for j in np.flatnonzero(slack > 0):
        row = np.append(phi[j], 1.0)
        M += mu[j] * np.outer(row, row)
    d_w = np.zeros(S + 1)
    if slack[i] > 0:
        row, unit = np.append(phi[i], 1.0), np.eye(S + 1)[s]
        dM = mu[i] * (np.outer(unit, row) + np.outer(row, unit))
        dz = mu[i] * y[i] * unit
        d_w = np.linalg.inv(M) @ (dz - dM @ np.append(w, b))
    V = slice(n_train, n_seen)
    J = phi[V] @ w + b
    sigma = 1.0 / (1.0 + np.exp(a * y[V] * J))
    pull = -a * mu[V] * y[V] * sigma * (1.0 - sigma)
    return float(pull @ (phi[V] @ d_w[:-1] + d_w[-1]))
