"""LibSVM's model files, in and out: a compressed machine runs wherever LibSVM does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from miserly.estimators.cvm._kernel_machine import KernelMachine, by_pairs
from miserly.files import write_whole
from miserly.solvers import RBF, Chi2, Polynomial


def read_libsvm(path: str | Path, n_features: int | None = None) -> tuple[KernelMachine, NDArray[Any]]:
    """The machine in a model file, and its labels in the order of the file, on which LibSVM's rule for ties depends.

    Columns are LibSVM's indices less one.
    """
    head, lines = _split(path)
    kind = (*head.get("svm_type", ["?"]), *head.get("kernel_type", ["?"]))
    if kind not in (("c_svc", "rbf"), ("c_svc", "polynomial")):
        raise ValueError(f"'{path}' holds {kind}. Only c_svc with an rbf or polynomial kernel can be compressed.")
    try:
        labels = np.array([int(x) for x in head["label"]])
        counts = tuple(int(x) for x in head["nr_sv"])
        bias = -np.array([float(x) for x in head["rho"]])
        gamma = float(head["gamma"][0])
        kernel: Any = RBF(gamma)
        if kind[1] == "polynomial":
            kernel = Polynomial(gamma, float(head["coef0"][0]), int(head["degree"][0]))
        dual, vectors = _vectors(lines, len(labels) - 1, n_features)
    except (KeyError, ValueError, IndexError) as error:
        raise ValueError(f"'{path}' is damaged, or not a model file of LibSVM: {error}") from error
    if len(counts) != len(labels) or sum(counts) != len(lines) or len(bias) != len(labels) * (len(labels) - 1) // 2:
        raise ValueError(f"'{path}' does not fit together: its labels, nr_sv, rho and SV lines are not as many.")
    sign = -1.0 if len(labels) == 2 else 1.0
    return KernelMachine(kernel, vectors, sign * by_pairs(dual, counts), sign * bias, len(labels), counts), labels


def write_libsvm(machine: KernelMachine, classes: NDArray[Any], path: str | Path) -> None:
    """Write a model file. Labels that are not whole numbers are written as their places, 0, 1, …

    LibSVM gives a vector to one class; one that serves the pairs of several classes is written once for each.
    """
    k = machine.n_classes
    labels = classes if np.issubdtype(classes.dtype, np.integer) else np.arange(k)
    counts, lines = _lines(machine)
    kernel = machine.kernel
    if isinstance(kernel, Chi2):
        raise ValueError("LibSVM has no chi-squared kernel: save the plan instead (plan_.save).")
    head = ["svm_type c_svc"]
    if isinstance(kernel, Polynomial):
        head += [
            "kernel_type polynomial",
            f"degree {kernel.degree}",
            f"gamma {kernel.gamma!r}",
            f"coef0 {kernel.coef0!r}",
        ]
    else:
        head += ["kernel_type rbf", f"gamma {kernel.gamma!r}"]
    sign = 1.0 if k == 2 else -1.0  # LibSVM's positive side is the first label, and rho is subtracted
    head += [f"nr_class {k}", f"total_sv {len(lines)}", "rho " + " ".join(repr(float(sign * b)) for b in machine.bias)]
    head += ["label " + " ".join(str(int(x)) for x in labels), "nr_sv " + " ".join(map(str, counts)), "SV"]
    write_whole(path, "\n".join([*head, *lines]) + "\n")


def _split(path: str | Path) -> tuple[dict[str, list[str]], list[str]]:
    head: dict[str, list[str]] = {}
    try:
        lines = Path(path).read_text(encoding="ascii").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"'{path}' is not a model file of LibSVM: it is not plain text.") from None
    for at, line in enumerate(lines):
        if line.strip() == "SV":
            return head, [x for x in lines[at + 1 :] if x.strip()]
        name, *values = line.split() or [""]
        head[name] = values
    raise ValueError(f"'{path}' is not a model file of LibSVM: it has no line 'SV'.")


def _vectors(lines: list[str], n_coef: int, n_features: int | None) -> tuple[NDArray[np.float64], Any]:
    """Coefficients (one line per other class) and vectors, sparse if most of their values are zero."""
    dual = np.empty((n_coef, len(lines)))
    pointer, columns, values = [0], [], []
    for i, line in enumerate(lines):
        words = line.split()
        dual[:, i] = [float(x) for x in words[:n_coef]]
        for word in words[n_coef:]:
            column, value = word.split(":")
            columns.append(int(column) - 1)
            values.append(float(value))
        pointer.append(len(columns))
    width = max(columns, default=-1) + 1
    if n_features is not None and width > n_features:
        raise ValueError(f"it has {width} features, n_features says {n_features}")
    made = csr_matrix((values, columns, pointer), shape=(len(lines), n_features or width))
    return dual, made if made.nnz < 0.2 * made.shape[0] * made.shape[1] else made.toarray()


def _lines(machine: KernelMachine) -> tuple[list[int], list[str]]:
    """How many vectors each class has, and the lines of vectors."""
    k = machine.n_classes
    vectors = machine.vectors
    texts = [_text(vectors[j].toarray()[0] if issparse(vectors) else vectors[j]) for j in range(len(machine))]
    if k == 2:
        coef = -machine.coef[:, 0]
        first, second = np.flatnonzero(coef > 0), np.flatnonzero(coef <= 0)
        return [len(first), len(second)], [f"{float(coef[j])!r} {texts[j]}" for j in (*first, *second)]
    counts, lines = [], []
    for c in range(k):
        dual = np.zeros((k - 1, len(machine)))
        for p, (a, b) in enumerate(machine.pairs):
            mine = machine.labels == c if machine.counts is not None else np.full(len(machine), a == c)
            if c in (a, b):
                dual[(b if a == c else a + 1) - 1, mine] = machine.coef[mine, p]
        used = np.flatnonzero(dual.any(axis=0))
        counts.append(len(used))
        lines += [" ".join(repr(float(x)) for x in dual[:, j]) + " " + texts[j] for j in used]
    return counts, lines


def _text(vector: NDArray[np.float64]) -> str:
    return " ".join(f"{f + 1}:{float(vector[f])!r}" for f in np.flatnonzero(vector))
