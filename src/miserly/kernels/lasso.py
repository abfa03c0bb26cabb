"""Block coordinate descent for the group lasso: one block is a feature's coefficients over all outputs.

Both loops minimise  ½‖Y − Zβ‖² + Σ_j penalty_j ‖β_j‖₂  in place; a block's exact minimum is a shrunken vector, since
its curvature is the same for every output. They end when the conditions of optimality hold to `tol`.
"""

import math

import numpy as np

from miserly.kernels.compiling import compiled


@compiled
def _new_block(residual, curvature, penalty, block):
    """Write the best block into `residual` (which holds −gradient + curvature · block); the size of the change."""
    size = 0.0
    for k in range(residual.size):
        size += residual[k] * residual[k]
    size = math.sqrt(size)
    shrink = (1.0 - penalty / size) / curvature if size > penalty else 0.0
    change = 0.0
    for k in range(residual.size):
        residual[k] = shrink * residual[k]
        change = max(change, abs(residual[k] - block[k]))
    return change * curvature


@compiled
def _violation(residual, penalty, block):
    """How far one feature is from optimal; `residual` is its negative gradient."""
    size, total = 0.0, 0.0
    for k in range(block.size):
        size += block[k] * block[k]
        total += residual[k] * residual[k]
    if size == 0.0:
        return max(0.0, math.sqrt(total) - penalty)
    size = math.sqrt(size)
    worst = 0.0
    for k in range(block.size):
        worst = max(worst, abs(residual[k] - penalty * block[k] / size))
    return worst


@compiled
def descend_gram(gram, penalty, residual, beta, tol, max_sweeps):
    """With `gram` = ZᵀZ; `residual` = (Y − Zβ)ᵀZ, output × feature, is kept up to date. Returns (sweeps, violation)."""
    n_features, n_outputs = beta.shape
    block = np.empty(n_outputs)
    active = np.arange(n_features)
    sweeps, worst = 0, np.inf
    while sweeps < max_sweeps:
        change = 0.0
        for j in active:
            if gram[j, j] <= 0.0:
                continue
            for k in range(n_outputs):
                block[k] = residual[k, j] + gram[j, j] * beta[j, k]
            moved = _new_block(block, gram[j, j], penalty[j], beta[j])
            if moved == 0.0:
                continue
            change = max(change, moved)
            for k in range(n_outputs):
                step = block[k] - beta[j, k]
                beta[j, k] = block[k]
                for i in range(n_features):
                    residual[k, i] -= step * gram[j, i]
        sweeps += 1
        if active.size < n_features:
            if change <= tol:
                active = np.arange(n_features)
            continue
        worst = 0.0
        for j in range(n_features):
            if gram[j, j] > 0.0:
                worst = max(worst, _violation(residual[:, j], penalty[j], beta[j]))
        if worst <= tol:
            break
        active = _in_use(beta)
    return sweeps, worst


@compiled
def descend_residual(Zt, squares, penalty, residuals, beta, tol, max_sweeps):
    """With `residuals` = (Y − Zβ)ᵀ kept up to date and `squares` the diagonal of ZᵀZ. Returns (sweeps, violation)."""
    n_features, n_outputs = beta.shape
    block, residual = np.empty(n_outputs), np.empty(n_outputs)
    active = np.arange(n_features)
    sweeps, worst = 0, np.inf
    while sweeps < max_sweeps:
        change, worst = 0.0, 0.0
        for j in active:
            if squares[j] <= 0.0:
                continue
            for k in range(n_outputs):
                residual[k] = np.dot(Zt[j], residuals[k])
                block[k] = residual[k] + squares[j] * beta[j, k]
            worst = max(worst, _violation(residual, penalty[j], beta[j]))
            moved = _new_block(block, squares[j], penalty[j], beta[j])
            if moved == 0.0:
                continue
            change = max(change, moved)
            for k in range(n_outputs):
                step = block[k] - beta[j, k]
                beta[j, k] = block[k]
                for i in range(Zt.shape[1]):
                    residuals[k, i] -= step * Zt[j, i]
        sweeps += 1
        if active.size == n_features:
            if worst <= tol:
                break
            active = _in_use(beta)
        elif change <= tol:
            active = np.arange(n_features)
    return sweeps, worst


@compiled
def _in_use(beta):
    """The features with a coefficient that is not zero."""
    use = np.zeros(beta.shape[0], np.bool_)
    for j in range(beta.shape[0]):
        for k in range(beta.shape[1]):
            if beta[j, k] != 0.0:
                use[j] = True
    return np.flatnonzero(use)
