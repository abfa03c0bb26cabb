"""From a kernel machine to a small one: which vectors to begin with, and how they are moved.

Each output begins with least angle regression on the SVM's own objective over its support vectors (thesis 4.6, 4.9):
‖y − b − Kα‖² + αᵀKα / C. Vectors that enter early in any output enter the common pool first. Then all vectors are moved
so that the pool says what the machine says at the training rows, or at its support vectors if only these are known
(`_matching`).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from miserly._typing import Bools, Floats, Rows
from miserly.estimators._base import dense_rows
from miserly.estimators.cvm._kernel_machine import KernelMachine
from miserly.estimators.cvm._lars import least_angle
from miserly.estimators.cvm._matching import Matching, Moved

logger = logging.getLogger("miserly")
BYTES = 8
FEW, STARTS_OF_FEW, STARTS_OF_MANY = 16, 16, 4
REFINEMENTS = 6  # on page-blocks at 1 %: .951 without, .957 with six; more change nothing
ROUNDS = ((0.1, 4), (0.25, 3))  # after this share of the iterations, this many of the starts go on


@dataclass(frozen=True)
class Points:
    """Rows at which the small machine is to say what the large one says, their classes, weights, and which are
    support vectors."""

    X: Any
    labels: Rows
    weights: Floats
    support: Bools


@dataclass
class Compression:
    """How one machine, whose vectors lie class by class, is made smaller; `C` is what it was trained with.

    It is matched at `points`, the training rows; if there are none, at its own support vectors.
    """

    machine: KernelMachine
    C: float
    init: str
    n_starts: int | None
    max_iter: int
    max_memory: float
    seed: int
    points: Points | None = None
    n_targets: int = 0
    rng: np.random.RandomState = field(init=False)

    def to(self, m: int) -> Moved:
        """The best of several starts."""
        matching = self._matching(m)
        return self._best(matching, self._starts(self._rows(self.order(m))), 0)

    def nested(self, sizes: Sequence[int]) -> list[Moved]:
        """Machines of growing sizes, each of which keeps the vectors of those before where they are."""
        matching, pool = self._matching(sizes[-1]), self._rows(self.order(sizes[-1]))
        found: list[Moved] = []
        for m in sizes:
            kept = found[-1].vectors if found else pool[:0]
            starts = [np.concatenate([kept, start[len(kept) :]]) for start in self._starts(pool[:m])]
            found.append(self._best(matching, starts, len(kept)))
        return found

    def path(self, sizes: Sequence[int]) -> Iterator[Moved]:
        """Machines of growing sizes, each of which begins where the one before ended and moves all vectors again."""
        matching, pool = self._matching(sizes[-1]), self._rows(self.order(sizes[-1]))
        Z = pool[:0]
        for m in sizes:
            starts = [np.concatenate([Z, pool[len(Z) : m]])] if len(Z) else self._starts(pool[:m])
            moved = self._best(matching, starts, 0)
            Z = moved.vectors
            yield moved

    # ---- where to begin ---------------------------------------------------------------------------------------

    def order(self, m: int) -> Rows:
        """Numbers of m support vectors, the most wanted first."""
        if self.init == "random":
            return np.asarray(self.rng.permutation(len(self.machine))[:m])
        n_outputs = len(self.machine.bias)
        steps = m if n_outputs == 1 else min(m, 2 * m // n_outputs + 3)
        entered = [self._entering(p, steps) for p in range(n_outputs)]
        wanted: dict[int, None] = {}
        popular: Counter[int] = Counter()
        for step in range(steps):
            now = [order[step] for order in entered if step < len(order)]
            popular.update(now)
            wanted |= dict.fromkeys(sorted(set(now), key=lambda j: (-popular[j], j)))
        rest = [j for j in self.rng.permutation(len(self.machine)).tolist() if j not in wanted]
        return np.array([*wanted, *rest][:m], np.intp)

    def _entering(self, output: int, steps: int) -> list[int]:
        """The support vectors of one output in the order in which they enter its path."""
        machine = self.machine
        most = np.sqrt(self.max_memory / BYTES)
        mine = self._drawn(np.flatnonzero(machine.coef[:, output]), most, "picked from")
        if not len(mine):
            return []
        K = machine.kernel.matrix(machine.vectors[mine], self._rows(mine))
        y = machine.signs(machine.labels[mine], output)
        diagonal = np.einsum("ij,ij->j", K, K) + K.diagonal() / self.C

        def column(j: int) -> Floats:
            return np.asarray(K @ K[:, j] + K[:, j] / self.C)

        path = least_angle(K @ (y - machine.bias[output]), diagonal, column, steps)
        return [int(mine[j]) for j, _ in path]

    def _starts(self, first: Floats) -> list[Floats]:
        """The first choice, and as many support vectors at random."""
        n_starts = self.n_starts
        if n_starts is None:  # few vectors are moved fast and end in very different places
            n_starts = STARTS_OF_FEW if len(first) <= FEW else STARTS_OF_MANY
        n_more = n_starts if self.max_iter else 0
        drawn = [self.rng.permutation(len(self.machine))[: len(first)] for _ in range(n_more)]
        return [first, *(self._rows(places) for places in drawn)]

    def _rows(self, places: Rows) -> Floats:
        return dense_rows(self.machine.vectors[places])

    # ---- what to match, and the way there ---------------------------------------------------------------------

    def _matching(self, m: int) -> Matching:
        """What the machine says at the points, or at as many of them as fit into memory."""
        self.rng = np.random.RandomState(self.seed)
        machine = self.machine
        every = np.ones(len(machine))
        points = self.points or Points(machine.vectors, machine.labels, every, every > 0)
        n_outputs, n = len(machine.bias), points.X.shape[0]
        most = self.max_memory / BYTES / (3 * m + 4 * n_outputs)
        places = self._drawn(np.arange(n), most, "matched on")
        self.n_targets = len(places)
        places = places[np.argsort(points.labels[places], kind="stable")]
        rows, weights = points.X[places], points.weights[places] * (n / len(places))
        ends = np.searchsorted(points.labels[places], np.arange(machine.n_classes), side="right")
        return Matching(machine.kernel, rows, machine.decide(rows), ends.tolist(), machine.pairs, weights)

    def _drawn(self, places: Rows, most: float, what: str) -> Rows:
        """Some places at random where there are too many, still in order; that is said."""
        if len(places) <= most:
            return places
        text = "The small machine is %s %d of %d rows: more need over max_memory=%.3g bytes."
        logger.warning(text, what, int(most), len(places), self.max_memory)
        return np.sort(self.rng.permutation(places)[: max(1, int(most))])

    def _best(self, matching: Matching, starts: list[Floats], frozen: int) -> Moved:
        """All starts are moved a little, the better ones further, a few to the end.

        Better is who decides as the full machine for more rows: a smaller squared distance may come from rows that are
        far from the border, where nothing is decided.
        """
        runs: list[tuple[float, ...]] = [()] * len(starts)
        done = 0
        found: list[Any] = [None] * len(starts)
        for share, survivors in (*ROUNDS, (1.0, 1)):
            until = int(np.ceil(share * self.max_iter))
            if len(starts) == 1 and share < 1.0:
                continue
            found = [matching.move(Z, until - done, frozen) for Z in starts]
            runs = [(*past, *moved.losses[1 if past else 0 :]) for past, moved in zip(runs, found)]
            done = until
            marks = [(-matching.agreement(moved), moved.losses[-1]) for moved in found]
            better = sorted(range(len(found)), key=lambda i: marks[i])[:survivors]
            found, runs = [found[i] for i in better], [runs[i] for i in better]
            starts = [moved.vectors for moved in found]
        best = self._refined(matching, found[0], frozen)
        return Moved(best.vectors, best.coef, best.bias, runs[0], best.distance)

    def _refined(self, matching: Matching, start: Moved, frozen: int) -> Moved:
        """A few more rounds in which rows that are decided otherwise count twice as much each time; the best of all."""
        best, mark = start, matching.agreement(start)
        moved, weighted = start, matching
        for _ in range(REFINEMENTS if self.max_iter else 0):
            if mark == 1.0:
                break
            weighted = weighted.doubled(moved)
            moved = weighted.move(moved.vectors, max(1, self.max_iter // 4), frozen)
            if (now := matching.agreement(moved)) > mark:
                best, mark = moved, now
        return best
