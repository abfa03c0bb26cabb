"""A kernel machine as data: vectors, coefficients, constants; one output for two classes, one per pair for more."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from miserly._typing import Floats
from miserly.solvers import RBF, KernelFunction, Polynomial

BLOCK_CELLS = 1 << 23


@dataclass(frozen=True)
class KernelMachine:
    """Scores k(x, vectors) coef + bias. For two classes a positive score means the second; for more there is an output
    for each pair of `pairs`, and a positive score is a vote for the first of it.

    `counts` says how many vectors each class has, if they lie class by class as LibSVM's do: then a vector has
    coefficients only for the pairs of its own class. Without it the vectors are one pool for all.
    """

    kernel: KernelFunction
    vectors: Any
    coef: Floats
    bias: Floats
    n_classes: int
    counts: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return int(self.vectors.shape[0])

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The classes that each output parts: the positive one last for two classes, first for more."""
        return list(combinations(range(self.n_classes), 2))

    @property
    def labels(self) -> NDArray[np.intp]:
        """The class of each vector."""
        assert self.counts is not None
        return np.repeat(np.arange(self.n_classes), self.counts)

    def decide(self, X: Any) -> Floats:
        """The scores of rows, row × output, in blocks."""
        size = max(1, BLOCK_CELLS // max(1, len(self)))
        parts = [
            self.kernel.matrix(X[first : first + size], self.vectors) @ self.coef + self.bias
            for first in range(0, X.shape[0], size)
        ]
        return np.concatenate(parts) if parts else np.empty((0, len(self.bias)))

    def signs(self, of: NDArray[np.intp], output: int) -> Floats:
        """+1 and −1 for the classes that an output parts, 0 for the others."""
        first, second = self.pairs[output]
        positive, negative = (second, first) if self.n_classes == 2 else (first, second)
        return (of == positive).astype(np.float64) - (of == negative)


def from_svc(svc: Any, kernel: KernelFunction | None = None, X: Any = None) -> KernelMachine:
    """The machine that a fitted scikit-learn `SVC` is; with a precomputed matrix, the kernel and the rows are given."""
    if kernel is None:
        kernel = _kernel_of(svc)
    vectors = svc.support_vectors_ if X is None else X[svc.support_]
    dual = svc.dual_coef_.toarray() if hasattr(svc.dual_coef_, "toarray") else svc.dual_coef_
    counts = tuple(int(n) for n in svc.n_support_)
    n_classes = len(svc.classes_)
    coef = dual.T.copy() if n_classes == 2 else by_pairs(dual, counts)
    return KernelMachine(kernel, vectors, coef, np.array(svc.intercept_, float), n_classes, counts)


def _kernel_of(svc: Any) -> KernelFunction:
    if svc.kernel == "rbf":
        return RBF(float(svc._gamma))
    if svc.kernel == "poly":
        return Polynomial(float(svc._gamma), float(svc.coef0), int(svc.degree))
    raise ValueError(
        f"Only RBF and polynomial kernels can be compressed, the SVC has kernel={svc.kernel!r}. For a chi-squared "
        "kernel fit CompressedSVC(kernel='chi2') to the rows."
    )


def by_pairs(dual: Floats, counts: tuple[int, ...]) -> Floats:
    """LibSVM's table of coefficients (a line for each *other* class, one column per vector) as vector × pair."""
    starts = np.concatenate([[0], np.cumsum(counts)])
    blocks = [slice(a, b) for a, b in pairwise(starts)]
    pairs = list(combinations(range(len(counts)), 2))
    coef = np.zeros((int(starts[-1]), len(pairs)))
    for p, (a, b) in enumerate(pairs):
        coef[blocks[a], p] = dual[b - 1, blocks[a]]
        coef[blocks[b], p] = dual[a, blocks[b]]
    return coef
