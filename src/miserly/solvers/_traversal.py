"""Who goes where in a graph of soft gates: the one place for traversal probabilities of trees and cascades.

A row that reaches node k goes up with probability s^k = σ(τ(score − θ)) and low with 1 − s^k. The probability of
reaching a node is the product along its path; a *conditional* one starts below a node, so it does not depend on that
node's gate. Products are always carried forward, never divided back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Rows = slice | NDArray[np.intp]
EXIT = -1
EVERY = slice(None)


@dataclass(frozen=True)
class GateGraph:
    """The children of each node, `EXIT` where rows leave; children have higher numbers than their parents.

    A *terminal* is a place where rows leave: one for a leaf (whatever its gate would say), one for each missing child
    of the others. With a `depth`, an exit above that level skips some: where every node met counts its loss, the node
    that a row leaves by counts once more for each level skipped, so that a shorter way does not look better for it.
    """

    up: tuple[int, ...]
    low: tuple[int, ...]
    depth: int = 0

    @classmethod
    def tree(cls, depth: int) -> GateGraph:
        """A balanced tree with this many levels of nodes; the children of k are 2k + 1 (up) and 2k + 2 (low)."""
        n, inner = 2**depth - 1, 2 ** (depth - 1) - 1
        return cls(
            tuple(2 * k + 1 if k < inner else EXIT for k in range(n)),
            tuple(2 * k + 2 if k < inner else EXIT for k in range(n)),
            depth,
        )

    @classmethod
    def cascade(cls, n_stages: int) -> GateGraph:
        """A chain: up is the next stage, low the way out."""
        return cls((*range(1, n_stages), EXIT), (EXIT,) * n_stages)

    def __len__(self) -> int:
        return len(self.up)

    def is_leaf(self, k: int) -> bool:
        """Whether all rows leave here."""
        return self.up[k] == EXIT and self.low[k] == EXIT

    def skipped(self, k: int) -> int:
        """How many levels a row skips that leaves at node k."""
        return max(0, self.depth - len(self.path(k)))

    def children(self, k: int) -> tuple[int, ...]:
        """The nodes that follow."""
        return tuple(c for c in (self.up[k], self.low[k]) if c != EXIT)

    @cached_property
    def parents(self) -> tuple[tuple[int, bool] | None, ...]:
        """The parent of each node and whether the way from there is up."""
        found: list[tuple[int, bool] | None] = [None] * len(self)
        for k in range(len(self)):
            for child, upwards in ((self.up[k], True), (self.low[k], False)):
                if child != EXIT:
                    found[child] = (k, upwards)
        return tuple(found)

    @cached_property
    def inner(self) -> tuple[int, ...]:
        """The nodes with a gate that matters."""
        return tuple(k for k in range(len(self)) if not self.is_leaf(k))

    @cached_property
    def terminals(self) -> tuple[tuple[int, bool | None], ...]:
        """Where rows leave: the node, and on which side (None: a leaf, on both)."""
        found: list[tuple[int, bool | None]] = []
        for k in range(len(self)):
            if self.is_leaf(k):
                found.append((k, None))
            else:
                found.extend((k, side) for side, way in ((True, self.up[k]), (False, self.low[k])) if way == EXIT)
        return tuple(found)

    @cached_property
    def terminal_number(self) -> dict[tuple[int, bool | None], int]:
        """The number of each terminal."""
        return {terminal: number for number, terminal in enumerate(self.terminals)}

    def path(self, k: int) -> tuple[int, ...]:
        """The nodes from the root to k, both included."""
        steps = [k]
        while (above := self.parents[steps[-1]]) is not None:
            steps.append(above[0])
        return tuple(reversed(steps))

    def subtree(self, k: int) -> tuple[int, ...]:
        """k and all nodes below it, in rising order."""
        found, waiting = [], [k]
        while waiting:
            found.append(node := waiting.pop())
            waiting.extend(self.children(node))
        return tuple(sorted(found))

    def terminals_below(self, k: int) -> tuple[int, ...]:
        """The terminals that rows which reach k may leave by."""
        below = set(self.subtree(k))
        return tuple(number for number, (node, _) in enumerate(self.terminals) if node in below)

    def keep(self, kept: NDArray[np.bool_]) -> GateGraph:
        """The graph of these nodes alone, renumbered in their order; ways to the others become exits."""
        number = np.where(kept, np.cumsum(kept) - 1, EXIT)
        at = np.flatnonzero(kept)
        up, low = np.asarray(self.up)[at], np.asarray(self.low)[at]
        return GateGraph(
            tuple(int(number[c]) if c != EXIT else EXIT for c in up),
            tuple(int(number[c]) if c != EXIT else EXIT for c in low),
            self.depth,
        )


def soft_gate(score: Floats, threshold: float, steepness: float) -> Floats:
    """σ(τ(score − θ)), by the hyperbolic tangent, which cannot overflow."""
    return 0.5 + 0.5 * np.tanh(0.5 * steepness * (score - threshold))


class Traversal:
    """The gates of all rows: `open[k]` is s^k. Leaves have none; memory is rows × inner nodes of `dtype`."""

    def __init__(self, graph: GateGraph, n_rows: int, dtype: type = np.float64) -> None:
        self.graph, self.n_rows, self.dtype = graph, n_rows, dtype
        self._place = {k: i for i, k in enumerate(graph.inner)}
        self._open: Floats = np.full((len(graph.inner), n_rows), 0.5, dtype)

    def set(self, k: int, share: Floats) -> None:
        """The probability of going up at node k."""
        self._open[self._place[k]] = share

    def gate(self, k: int, rows: Rows = EVERY) -> Floats:
        """s^k."""
        return self._open[self._place[k]][rows]

    def reach(self, k: int) -> NDArray[np.float64]:
        """p^k: the probability that each row comes to node k."""
        p = np.ones(self.n_rows)
        while (above := self.graph.parents[k]) is not None:
            k, upwards = above
            p *= self.gate(k) if upwards else 1.0 - self.gate(k)
        return p

    def leave(self, terminal: int) -> NDArray[np.float64]:
        """p^l: the probability that each row leaves by this terminal."""
        k, side = self.graph.terminals[terminal]
        p = self.reach(k)
        if side is not None:
            p *= self.gate(k) if side else 1.0 - self.gate(k)
        return p

    def exits(self, k: int) -> NDArray[np.float64]:
        """The probability that a row leaves at node k, given that it came there."""
        if self.graph.is_leaf(k):
            return np.ones(self.n_rows)
        share = np.zeros(self.n_rows)
        if self.graph.up[k] == EXIT:
            share += self.gate(k)
        if self.graph.low[k] == EXIT:
            share += 1.0 - self.gate(k)
        return share

    def mean_leave(self, share: Floats) -> NDArray[np.float64]:
        """p̄^l: how often rows leave by each terminal, under row weights that add up to one."""
        means = np.zeros(len(self.graph.terminals))
        waiting: list[tuple[int, Floats]] = [(0, share)]
        while waiting:
            k, p = waiting.pop()
            if self.graph.is_leaf(k):
                means[self.graph.terminal_number[k, None]] = p.sum()
                continue
            s = self.gate(k)
            for side, way, part in ((True, self.graph.up[k], s), (False, self.graph.low[k], 1.0 - s)):
                if way == EXIT:
                    means[self.graph.terminal_number[k, side]] = p @ part
                else:
                    waiting.append((way, p * part))
        return means

    def leave_given(self, k: int, upwards: bool, rows: Rows = EVERY) -> tuple[list[int], Floats]:
        """Terminals beyond one side of node k, and the probability (terminal × row) of each, given that side."""
        child, n_rows = self.graph.up[k] if upwards else self.graph.low[k], len(self.gate(k, rows))
        if child == EXIT:
            return [self.graph.terminal_number[k, upwards]], np.ones((1, n_rows), self.dtype)
        numbers = list(self.graph.terminals_below(child))
        shares: Floats = np.empty((len(numbers), n_rows), self.dtype)
        place = {number: i for i, number in enumerate(numbers)}
        waiting: list[tuple[int, Floats]] = [(child, np.ones(n_rows, self.dtype))]
        while waiting:
            node, p = waiting.pop()
            if self.graph.is_leaf(node):
                shares[place[self.graph.terminal_number[node, None]]] = p
                continue
            s = self.gate(node, rows)
            for side, way, part in ((True, self.graph.up[node], s), (False, self.graph.low[node], 1.0 - s)):
                if way == EXIT:
                    shares[place[self.graph.terminal_number[node, side]]] = p * part
                else:
                    waiting.append((way, p * part))
        return numbers, shares

    def reach_given(self, k: int, upwards: bool, rows: Rows = EVERY) -> tuple[list[int], Floats]:
        """Nodes beyond one side of node k, and the probability (node × row) of reaching each, given that side."""
        child = self.graph.up[k] if upwards else self.graph.low[k]
        nodes = [] if child == EXIT else list(self.graph.subtree(child))
        shares: Floats = np.ones((len(nodes), len(self.gate(k, rows))), self.dtype)
        place = {j: i for i, j in enumerate(nodes)}
        for i, j in enumerate(nodes[1:], start=1):
            parent, side = self.graph.parents[j]  # type: ignore[misc]
            s = self.gate(parent, rows)
            shares[i] = shares[place[parent]] * (s if side else 1.0 - s)
        return nodes, shares

    def loss_given(self, k: int, upwards: bool, loss: Floats, at_exit: bool, rows: Rows = EVERY) -> Floats:
        """The expected loss of all nodes beyond one side of node k, given that side; `loss` is node × row.

        Each node counts when it is reached (and for levels skipped), or only when rows leave there (`at_exit`). The
        exit of k itself is not included, since it depends on k.
        """
        child = self.graph.up[k] if upwards else self.graph.low[k]
        if child == EXIT:
            return np.zeros(len(self.gate(k, rows)), self.dtype)
        return self.loss_from(child, loss, at_exit, rows)

    def loss_from(self, k: int, loss: Floats, at_exit: bool, rows: Rows = EVERY) -> Floats:
        """The expected loss of node k and all below, given that k is reached."""
        own = loss[k][rows]
        times = 1 if at_exit else self.graph.skipped(k)  # how often the loss counts because rows leave here
        if self.graph.is_leaf(k):
            return own if at_exit else own * (1 + times)
        s = self.gate(k, rows)
        sides = [
            self.loss_from(way, loss, at_exit, rows) if way != EXIT else own * times
            for way in (self.graph.up[k], self.graph.low[k])
        ]
        below = s * sides[0] + (1.0 - s) * sides[1]
        return below if at_exit else own + below
