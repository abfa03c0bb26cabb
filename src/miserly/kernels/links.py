"""Scores to probabilities, one scalar at a time, so that one row and a batch give the same bits."""

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, inline="always")
def _sigmoid(z):
    if z >= 0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@njit(cache=True, nogil=True)
def sigmoid(z, out):
    """Logistic function of each entry."""
    for i in range(z.shape[0]):
        for k in range(z.shape[1]):
            out[i, k] = _sigmoid(z[i, k])


@njit(cache=True, nogil=True)
def two_classes(z, out):
    """The probabilities of both classes from the one score."""
    for i in range(z.shape[0]):
        out[i, 1] = _sigmoid(z[i, 0])
        out[i, 0] = 1.0 - out[i, 1]


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def couple(z, n_classes, out):
    """Class probabilities from the log-odds of each pair (the first against the second), pairs as in `vote`.

    The second method of Wu, Lin and Weng (2004), as LibSVM does it: the p that minimises Σ (r_ba p_a − r_ab p_b)².
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
            if worst < 1e-6 / n_classes:
                break
            for a in range(n_classes):
                step = (pQp - Qp[a]) / Q[a, a]
                p[a] += step
                pQp = (pQp + step * (step * Q[a, a] + 2.0 * Qp[a])) / (1.0 + step) / (1.0 + step)
                for b in range(n_classes):
                    Qp[b] = (Qp[b] + step * Q[a, b]) / (1.0 + step)
                    p[b] /= 1.0 + step


@njit(cache=True, nogil=True)
def logistic_gradients(y, score, gradient, hessian):
    """Negative gradient and hessian of the log-loss, y in {0, 1}."""
    for i in range(y.size):
        p = _sigmoid(score[i])
        gradient[i] = y[i] - p
        hessian[i] = p * (1.0 - p)


@njit(cache=True, nogil=True)
def softmax_gradients(y, score, gradient, hessian):
    """Negative gradients and diagonal hessian of the multi-class log-loss; arrays are class × row."""
    n_classes = score.shape[0]
    for i in range(y.size):
        top = score[0, i]
        for k in range(1, n_classes):
            top = max(top, score[k, i])
        total = 0.0
        for k in range(n_classes):
            total += math.exp(score[k, i] - top)
        for k in range(n_classes):
            p = math.exp(score[k, i] - top) / total
            gradient[k, i] = (1.0 if y[i] == k else 0.0) - p
            hessian[k, i] = p * (1.0 - p)


@njit(cache=True, nogil=True)
def logistic_losses(y, score, out):
    """Log-loss of each row, y in {0, 1}."""
    for i in range(y.size):
        m = score[i] if y[i] > 0 else -score[i]
        out[i] = math.log1p(math.exp(-m)) if m >= 0 else -m + math.log1p(math.exp(m))


@njit(cache=True, nogil=True)
def softmax_losses(y, score, out):
    """Multi-class log-loss of each row; score is class × row."""
    for i in range(y.size):
        top = score[0, i]
        for k in range(1, score.shape[0]):
            top = max(top, score[k, i])
        total = 0.0
        for k in range(score.shape[0]):
            total += math.exp(score[k, i] - top)
        out[i] = top + np.log(total) - score[y[i], i]
