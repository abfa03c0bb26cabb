"""Kernel functions in plain Python, one number at a time, and class probabilities from pairs by solving the equations.

The exponential is the plan's own, operation by operation (its bits are promised); a test holds it against `math.exp`.
"""

import math

import numpy as np


def exponential(z):
    """e^z for z ≤ 0: the nearest power of two, times a Taylor series of the rest."""
    if z < -708.0:
        return 0.0
    whole = round(z * 1.4426950408889634)
    r = (z - whole * 6.93147180369123816490e-01) - whole * 1.90821492927058770002e-10
    p = 1.0 / math.factorial(13)
    for k in range(12, -1, -1):
        p = p * r + 1.0 / math.factorial(k)
    return math.ldexp(p, whole)


def value(dictionary, t, x):
    """What learner t of a kernel dictionary says about a row."""
    picked = [x[c] for c in dictionary.columns]
    v = dictionary.vectors[t].tolist()
    total = 0.0
    if dictionary.kind == "rbf":
        for a, b in zip(picked, v):
            total += (a - b) * (a - b)
        return exponential(-float(dictionary.gamma) * total)
    if dictionary.kind == "chi2":
        for a, b in zip(picked, v):
            a = max(a, 0.0)
            total += (a - b) * (a - b) / (a + b) if a + b else 0.0
        return exponential(-float(dictionary.gamma) * total)
    for a, b in zip(picked, v):
        total += a * b
    base, result = float(dictionary.gamma) * total + float(dictionary.coef0), 1.0
    for _ in range(int(dictionary.degree)):
        result *= base
    return result


def coupled(z, n_classes):
    """The p, adding up to one, that minimises Σ (r_ba p_a − r_ab p_b)² over pairs a < b (Wu, Lin, Weng 2004)."""
    Q, pair = np.zeros((n_classes + 1, n_classes + 1)), 0
    for a in range(n_classes):
        for b in range(a + 1, n_classes):
            r = min(max(1.0 / (1.0 + math.exp(-min(max(z[pair], -700.0), 700.0))), 1e-7), 1 - 1e-7)
            Q[a, a] += (1 - r) ** 2
            Q[b, b] += r**2
            Q[a, b] = Q[b, a] = -r * (1 - r)
            pair += 1
    Q[:n_classes, n_classes] = Q[n_classes, :n_classes] = 1.0
    return np.linalg.solve(Q, np.r_[np.zeros(n_classes), 1.0])[:n_classes].tolist()
