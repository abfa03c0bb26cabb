"""CSTC's descent against scipy's L-BFGS: the same objective, the same gradient function, start and support.

Two peers, both stopped as soon as they reach our final value: scipy's L-BFGS on our own function of all nodes, and on
one written node by node, as one would first write it. Algorithm 5, one node after the other with the same bounds, is
shown beside, with our descent and with scipy's inside a node.

`python -m benchmarks.cstc memory` fits a tree of ten levels to 141,397 × 519 and tells the peak of memory.
"""

import copy
import sys
import threading
import time
from contextlib import suppress

import numpy as np
import psutil
from scipy.optimize import minimize

from benchmarks.timing import line
from miserly.datasets import yahoo_like
from miserly.estimators.cstc import CSTCRegressor
from miserly.solvers import gated_node
from miserly.solvers.joint import Joint
from miserly.solvers.soft_graph import SoftGraph
from miserly.solvers.traversal import Graph, soft_gate

N_QUERIES, TRADEOFFS, DEPTH = 160, (3e-4, 3e-3), 3
GOAL = 3.0
ROWS, QUERIES, LEVELS = 141_397, 6010, 10


class Whole:
    """The objective of a tree with fixed supports as a function of one long vector."""

    def __init__(self, soft: SoftGraph) -> None:
        self.soft, self.task, self.graph = soft, soft.task, soft.graph
        self.columns = [node.columns for node in soft.nodes]
        everyone = np.arange(soft.task.design.n_rows)
        self.Z = [soft.block(columns, everyone) for columns in self.columns]
        self.y, self.omega, self.share = soft.task.targets[:, 0], soft.task.omega, soft.task.share
        self.ends = np.cumsum([len(c) + 2 for c in self.columns])
        self.paths = [[k in self.graph.path(end) for k in range(len(self.graph))] for end, _ in self.graph.terminals]

    def start(self) -> np.ndarray:
        parts = [[*n.beta[c, 0], n.bias[0], n.threshold] for n, c in zip(self.soft.nodes, self.columns)]
        return np.concatenate(parts)

    def __call__(self, v: np.ndarray) -> tuple[float, np.ndarray]:
        return self._value_and_slope(np.split(v, self.ends[:-1]))

    def _value_and_slope(self, parts):
        task, graph = self.task, self.graph
        scores = [Z @ p[:-2] for Z, p in zip(self.Z, parts)]
        rest = [s + p[-2] - self.y for s, p in zip(scores, parts)]
        taus = [node.steepness for node in self.soft.nodes]
        s = [soft_gate(x, p[-1], tau) for x, p, tau in zip(scores, parts, taus)]
        p = [np.ones(len(self.y))] * len(graph)
        for k in graph.inner:
            p[graph.up[k]], p[graph.low[k]] = p[k] * s[k], p[k] * (1.0 - s[k])
        squares = np.zeros((task.design.n_columns, len(graph)))
        for k, columns in enumerate(self.columns):
            squares[columns, k] = parts[k][:-2] ** 2
        of_paths = squares @ np.array(self.paths).T
        cost, slopes = task.norm.value(of_paths), task.norm.slopes(of_paths)
        mean = np.array([self.share @ p[end] for end, _ in graph.terminals])
        value = float(mean @ cost) + task.rho * sum(np.abs(part[:-2]).sum() for part in parts)
        below_loss, below_cost = [None] * len(graph), [None] * len(graph)
        slope = [None] * len(graph)
        for k in range(len(graph) - 1, -1, -1):
            loss = 0.5 * rest[k] ** 2
            value += float(self.omega @ (p[k] * loss))
            pull = self.omega * p[k] * rest[k]
            a = np.zeros(len(self.y))
            if graph.is_leaf(k):
                below_loss[k], below_cost[k] = loss, cost[graph.terminal_number[k, None]]
            else:
                up, low = graph.up[k], graph.low[k]
                a = self.omega * (below_loss[up] - below_loss[low]) + self.share * (below_cost[up] - below_cost[low])
                a *= p[k] * taus[k] * s[k] * (1.0 - s[k])
                below_loss[k] = loss + s[k] * below_loss[up] + (1.0 - s[k]) * below_loss[low]
                below_cost[k] = s[k] * below_cost[up] + (1.0 - s[k]) * below_cost[low]
            on = [path[k] for path in self.paths]
            curve = slopes[np.ix_(self.columns[k], on)] @ mean[on]
            beta = parts[k][:-2]
            to_beta = self.Z[k].T @ (pull + a) + curve * beta + task.rho * np.sign(beta)
            slope[k] = np.concatenate([to_beta, [pull.sum(), -a.sum()]])
        return value, np.concatenate(slope)


def by_scipy(function, v: np.ndarray, target: float, limit: int = 5000) -> tuple[float, float, int]:
    """Seconds until the target is reached (or scipy gives up), the best value, and how often it asked."""
    seen = []

    def asked(at):
        value, slope = function(at)
        seen.append(value)
        if value <= target:
            raise StopIteration
        return value, slope

    began = time.perf_counter()
    with suppress(StopIteration):
        minimize(asked, v, jac=True, method="L-BFGS-B", options={"maxiter": limit, "maxfun": limit, "ftol": 1e-15})
    return time.perf_counter() - began, min(seen), len(seen)


def sweeps(soft: SoftGraph, target: float, descent, limit: int = 20) -> tuple[float, float]:
    """Algorithm 5 with some descent inside a node, sweep by sweep until the target; seconds and value."""
    own, gated_node.descend = gated_node.descend, descent
    began, value = time.perf_counter(), soft.objective()
    try:
        for _ in range(limit):
            if value <= target:
                break
            value = soft.sweep(1)[-1]
    finally:
        gated_node.descend = own
    return time.perf_counter() - began, value


def scipys_descent(function, at, metric, max_steps, tol):
    """In place of ours: scipy's L-BFGS on the same surrogate, until a step gains as little."""
    limits = {"maxiter": 200, "ftol": tol / max(abs(function(at)[0]), 1e-300)}
    found = minimize(function, at, jac=True, method="L-BFGS-B", options=limits)
    return found.x, float(found.fun), found.nfev


def main() -> None:
    data = yahoo_like(N_QUERIES, seed=0)
    print(f"CSTC, {data.X.shape[0]} × {data.X.shape[1]}, {DEPTH} levels, against scipy's L-BFGS to our final value")
    for tradeoff in TRADEOFFS:
        model = CSTCRegressor(data.costs, tradeoff=tradeoff, max_depth=DEPTH)
        first = SoftGraph.initialise(model._task(model._pose(data.X, data.y, None)), Graph.tree(DEPTH))
        sizes = [len(node.columns) for node in first.nodes]
        joint = Joint(copy.deepcopy(first))
        began = time.perf_counter()
        values = joint.optimise(model.max_iter, model.tol)
        ours, asked = time.perf_counter() - began, joint.n_asked
        print(f" λ = {tradeoff:g}: {sizes} columns, objective {values[0]:.6f} → {values[-1]:.6f}, asked {asked} times")
        same, written = Joint(copy.deepcopy(first)), Whole(copy.deepcopy(first))
        assert np.isclose(written(written.start())[0], values[0], rtol=1e-10)
        for what, function, v in (
            ("same function", same.objective, same.read()),
            ("node by node", written, written.start()),
        ):
            seconds, value, asked = by_scipy(function, v, values[-1])
            came = "" if value <= values[-1] else f", NOT reached: {value:.6f}"
            line(f"{what}, asked {asked}{came}", ours, seconds, GOAL)
        for what, descent in (("ours", gated_node.descend), ("scipy's", scipys_descent)):
            seconds, value = sweeps(copy.deepcopy(first), values[-1], descent)
            came = "" if value <= values[-1] else f", NOT reached: {value:.6f}"
            line(f"node by node (algorithm 5), {what} inside{came}", ours, seconds)


def memory(levels: int = LEVELS, n_rows: int = ROWS) -> None:
    """The peak of a fit of many levels, data included; sweeps are cut to one, which holds all that the others hold."""
    data = yahoo_like(QUERIES, seed=0)
    X, y = data.X[:n_rows], data.y[:n_rows]
    process, peak, done = psutil.Process(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            peak[0] = max(peak[0], process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.perf_counter()
    model = CSTCRegressor(data.costs, tradeoff=3e-3, max_depth=levels, max_iter=1, min_samples_leaf=1).fit(X, y)
    done.set()
    watcher.join()
    seconds, gib = time.perf_counter() - began, peak[0] / 2**30
    verdict = "met" if gib <= 6 else "MISSED"
    print(f"CSTC, {X.shape[0]} × {X.shape[1]} ({X.dtype}), {levels} levels, {model.n_nodes_} nodes, {seconds:.0f} s:")
    print(f"  peak {gib:.2f} GiB, data included (goal at most 6: {verdict})")


if __name__ == "__main__":
    if sys.argv[1:2] == ["memory"]:
        memory(*(int(a) for a in sys.argv[2:]))
    else:
        main()
