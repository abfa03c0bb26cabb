"""How scores are read: as numbers, probabilities, labels."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from miserly._typing import Floats
from miserly.kernels import links as kernels

Link = Literal[
    "identity", "exp", "sigmoid", "softplus", "signed_square",
    "logistic", "softmax", "one_vs_rest", "vote", "coupled", "platt", "shares",
]  # fmt: skip
OF_NUMBERS = ("identity", "exp", "sigmoid", "softplus", "signed_square")  # the others read classes
BY_PAIRS = ("vote", "coupled")
LIBSVM_NEARNESS = 0.005  # where LibSVM stops coupling: its probabilities are reproduced, not improved


def n_outputs(link: Link, n_classes: int) -> int:
    """How many scores a link reads for this many classes."""
    if link == "platt":
        return n_classes * (n_classes - 1)
    if link in BY_PAIRS:
        return n_classes * (n_classes - 1) // 2
    return 1 if link == "logistic" and n_classes == 2 else n_classes


def numbers(link: Link, z: Floats) -> Floats:
    """Scores as the numbers that they stand for, the same bits for one row as for many."""
    if link == "identity":
        return z
    if link == "sigmoid":
        return sigmoid(z)
    if link == "signed_square":
        return np.copysign(z * z, z)
    out = np.empty_like(z)
    (kernels.exp if link == "exp" else kernels.softplus)(z, out)
    return out


def sigmoid(z: Floats) -> Floats:
    """Logistic function, the same bits for one row as for many."""
    out = np.empty_like(z)
    kernels.sigmoid(z, out)
    return out


def probabilities(link: Link, z: Floats, n_classes: int) -> Floats:
    """Probability of each class: rows × classes. Votes are shares of the pairs won, not calibrated; coupled scores are
    log-odds of pairs of classes; shares are probabilities already."""
    if link == "logistic" and not (n_classes == 2 and z.shape[1] == 1):
        p = sigmoid(z)
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / n_classes)
    if link == "one_vs_rest":
        return sigmoid(z)
    if link == "shares":
        return np.array(z, np.float64)
    out = np.empty((len(z), n_classes))
    if link == "logistic":
        kernels.two_classes(z, out)
    elif link == "softmax":
        kernels.softmax(z, out)
    elif link == "vote":
        kernels.vote(z, n_classes, out)
    elif link == "coupled":
        kernels.couple(z, n_classes, out)
    elif link == "platt":
        kernels.couple(np.ascontiguousarray(z[:, z.shape[1] // 2 :]), n_classes, out, LIBSVM_NEARNESS)
    else:
        raise ValueError(f"A plan with the {link} link predicts numbers; it has no probabilities.")
    return out


def labels(link: Link, z: Floats, classes: NDArray[Any]) -> NDArray[Any]:
    """The most probable class; ties go to the class that comes first, as in LibSVM."""
    if link == "logistic" and z.shape[1] == 1 and len(classes) == 2:
        best: NDArray[Any] = classes.take((z[:, 0] > 0).view(np.int8))
        return best
    if link == "platt":
        z = np.ascontiguousarray(z[:, : z.shape[1] // 2])
    if link in (*BY_PAIRS, "platt"):
        z = probabilities("vote", z, len(classes))
    best = classes[np.argmax(z, axis=1)]
    return best
