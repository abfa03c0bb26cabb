"""Scores to probabilities, one scalar at a time, so that one row and a batch give the same bits."""

import math

import numpy as np

from miserly.kernels.compiling import compiled


@compiled(inline="always")
def _sigmoid(z):
    if z >= 0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@compiled
def sigmoid(z, out):
    """Logistic function of each entry."""
    for i in range(z.shape[0]):
        for k in range(z.shape[1]):
            out[i, k] = _sigmoid(z[i, k])


@compiled
def exp(z, out):
    """Exponential of each entry."""
    for i in range(z.shape[0]):
        for k in range(z.shape[1]):
            out[i, k] = math.exp(z[i, k])


@compiled
def softplus(z, out):
    """Logarithm of 1 + exp of each entry."""
    for i in range(z.shape[0]):
        for k in range(z.shape[1]):
            out[i, k] = math.log1p(math.exp(-abs(z[i, k]))) + max(z[i, k], 0.0)


@compiled
def two_classes(z, out):
    """The probabilities of both classes from the one score."""
    for i in range(z.shape[0]):
        out[i, 1] = _sigmoid(z[i, 0])
        out[i, 0] = 1.0 - out[i, 1]


@compiled
def softmax(z, out):
    """Softmax of each row."""
    for i in range(z.shape[0]):
        top = z[i, 0]
        for k in range(1, z.shape[1]):
            top = max(top, z[i, k])
        total = 0.0
        for k in range(z.shape[1]):
            out[i, k] = math.exp(z[i, k] - top)
            total += out[i, k]
        for k in range(z.shape[1]):
            out[i, k] /= total


@compiled
def vote(z, n_classes, out):
    """One-vs-one votes of each row, pairs (0,1), (0,2), …, (1,2), …; a positive score is a vote for the first.

    Both classes of a pair get their share of its vote: no branch to mispredict.
    """
    for i in range(z.shape[0]):
        out[i] = 0.0
        pair = 0
        for a in range(n_classes):
            won = 0
            for b in range(a + 1, n_classes):
                first = 1 if z[i, pair] > 0 else 0
                won += first
                out[i, b] += 1 - first
                pair += 1
            out[i, a] += won
        for k in range(n_classes):
            out[i, k] /= pair


@compiled
def couple(z, n_classes, out, nearness=1e-6):
    """Class probabilities from the log-odds of each pair (the first against the second), pairs as in `vote`.

    The second method of Wu, Lin and Weng (2004), as LibSVM does it: the p that minimises Σ (r_ba p_a − r_ab p_b)².
    LibSVM itself stops at a `nearness` of 0.005.
    """
    Q, Qp = np.empty((n_classes, n_classes)), np.empty(n_classes)
    for i in range(z.shape[0]):
        Q[:] = 0.0
        pair = 0
        for a in range(n_classes):
            for b in range(a + 1, n_classes):
                r = min(max(_sigmoid(z[i, pair]), 1e-7), 1.0 - 1e-7)
                Q[a, a] += (1.0 - r) * (1.0 - r)
                Q[b, b] += r * r
                Q[a, b] = Q[b, a] = -r * (1.0 - r)
                pair += 1
        p = out[i]
        p[:] = 1.0 / n_classes
        for _ in range(max(100, n_classes)):
            pQp = 0.0
            for a in range(n_classes):
                Qp[a] = 0.0
                for b in range(n_classes):
                    Qp[a] += Q[a, b] * p[b]
                pQp += p[a] * Qp[a]
            worst = 0.0
            for a in range(n_classes):
                worst = max(worst, abs(Qp[a] - pQp))
            if worst < nearness / n_classes:
                break
            for a in range(n_classes):
                step = (pQp - Qp[a]) / Q[a, a]
                p[a] += step
                pQp = (pQp + step * (step * Q[a, a] + 2.0 * Qp[a])) / (1.0 + step) / (1.0 + step)
                for b in range(n_classes):
                    Qp[b] = (Qp[b] + step * Q[a, b]) / (1.0 + step)
                    p[b] /= 1.0 + step


@compiled(error_model="numpy")
def logistic_loss(y, score, loss, gradient, hessian):
    """Log-loss of each row, its negative gradient and hessian, y in {0, 1}; scores are 1 × row."""
    for i in range(y.size):
        z = score[0, i]
        e = math.exp(-abs(z))
        u = 1.0 + e
        p = (1.0 if z >= 0 else e) / u
        gradient[0, i] = y[i] - p
        hessian[0, i] = p * (1.0 - p)
        log1p = math.log(u) + (e - (u - 1.0)) / u  # the second term is what u was rounded by; faster than math.log1p
        loss[i] = log1p + max(-z if y[i] > 0 else z, 0.0)


@compiled(error_model="numpy")
def softmax_loss(y, score, loss, gradient, hessian):
    """Multi-class log-loss of each row, its negative gradients and diagonal hessian; arrays are class × row."""
    n_classes = score.shape[0]
    for i in range(y.size):
        top = score[0, i]
        for k in range(1, n_classes):
            top = max(top, score[k, i])
        total = 0.0
        for k in range(n_classes):
            gradient[k, i] = math.exp(score[k, i] - top)
            total += gradient[k, i]
        label = np.int64(y[i])
        for k in range(n_classes):
            p = gradient[k, i] / total
            gradient[k, i] = (1.0 if label == k else 0.0) - p
            hessian[k, i] = p * (1.0 - p)
        loss[i] = top + math.log(total) - score[label, i]
