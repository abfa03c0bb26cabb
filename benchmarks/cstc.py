"""CSTC's descent against scipy's L-BFGS: the same function for value and gradient, the same start and support.

Both run until they converge; what counts is the CPU time until each comes to the worse of the two last values. The
objective has many hollows and the two may end in different ones, so single ratios say little: their geometric mean over
several draws does. Beside it: the time until one hundredth of the whole descent is left; the time to the value at which
a fit with default settings stops; and algorithm 5, one node after the other, with our descent and with scipy's inside a
node.

`python -m benchmarks.cstc memory` fits a tree of ten levels to 141,397 × 519 and tells the peak of memory.
"""

import copy
import sys
import time

import numpy as np
from scipy.optimize import minimize

from benchmarks.timing import line, memory_watched
from miserly.datasets import yahoo_like
from miserly.estimators.cstc import _gated_node as gated_node
from miserly.estimators.cstc._cstc import CSTCRegressor
from miserly.estimators.cstc._joint import Joint
from miserly.estimators.cstc._soft_graph import SoftGraph
from miserly.solvers._traversal import GateGraph

DRAWS, TRADEOFFS, DEPTH = ((160, 0), (160, 1), (160, 2), (160, 3), (760, 0), (760, 1)), (3e-4, 3e-3), 3
GOAL, SLACK = 3.0, 0.01
ROUNDS, TOL, LIMIT, SWEEPS = 20, 1e-5, 1000, 10
ROWS, QUERIES, LEVELS = 141_397, 6010, 10


def traced(joint: Joint, work) -> tuple[np.ndarray, np.ndarray]:
    """CPU seconds and the best value so far, at each time that the value is asked for."""
    times, values, value = [], [], joint._value

    def asked(*at):
        values.append(value(*at))
        times.append(time.process_time() - began)
        return values[-1]

    joint._value = asked  # type: ignore[method-assign]
    began = time.process_time()
    work(joint)
    return np.array(times), np.minimum.accumulate(values)


def by_us(joint: Joint) -> None:
    joint.optimise(ROUNDS, TOL)


def by_scipy(joint: Joint) -> None:
    limits = {"maxiter": LIMIT, "maxfun": LIMIT}
    minimize(joint.objective, joint.read(), jac=True, method="L-BFGS-B", options=limits)


def compare(first: SoftGraph, default: tuple[int, float]) -> tuple[float, float]:
    """Both from the same start, each until it converges: how many times faster we are; and where a fit stops."""
    stop = Joint(copy.deepcopy(first)).optimise(*default)[-1]  # it also loads what is compiled
    (ours, low), (theirs, lower) = (traced(Joint(copy.deepcopy(first)), work) for work in (by_us, by_scipy))
    print(f"  objective {low[0]:.6f} → ours {low[-1]:.6f} ({len(low)} values), scipy {lower[-1]:.6f} ({len(lower)})")
    worse = max(low[-1], lower[-1])
    for what, value in (
        ("where both come", worse),
        ("all but a hundredth", worse + SLACK * (low[0] - worse)),
        ("where a fit stops", stop),
    ):
        if worse <= value:
            line(f"until {value:.6f}, {what}", ours[np.argmax(low <= value)], theirs[np.argmax(lower <= value)])
    return float(theirs[np.argmax(lower <= worse)] / ours[np.argmax(low <= worse)]), stop


def sweeps(soft: SoftGraph, target: float, descent, limit: int = SWEEPS) -> tuple[float, float]:
    """Algorithm 5 with some descent inside a node, sweep by sweep until the target; seconds and value."""
    own, gated_node.descend = gated_node.descend, descent
    began, value = time.process_time(), soft.objective()
    try:
        for _ in range(limit):
            if value <= target:
                break
            value = soft.sweep(1)[-1]
    finally:
        gated_node.descend = own
    return time.process_time() - began, value


def scipys_descent(function, at, metric, max_steps, tol):
    """In place of ours: scipy's L-BFGS on the same surrogate, until a step gains as little."""
    limits = {"maxiter": 200, "ftol": tol / max(abs(function(at)[0]), 1e-300)}
    found = minimize(function, at, jac=True, method="L-BFGS-B", options=limits)
    return found.x, float(found.fun), found.nfev


def main() -> None:
    ratios = []
    for n_queries, seed in DRAWS:
        data = yahoo_like(n_queries, seed=seed)
        print(f"CSTC, {data.X.shape[0]} × {data.X.shape[1]}, {DEPTH} levels, against scipy's L-BFGS (CPU time)")
        for tradeoff in TRADEOFFS:
            model = CSTCRegressor(data.costs, tradeoff=tradeoff, max_depth=DEPTH)
            first = SoftGraph.initialise(model._task(model._pose(data.X, data.y, None)), GateGraph.tree(DEPTH))
            print(f" λ = {tradeoff:g}: {[len(node.columns) for node in first.nodes]} columns")
            ratio, stop = compare(first, (model.max_iter, model.tol))
            ratios.append(ratio)
            if (n_queries, seed) == DRAWS[0]:
                began = time.process_time()
                copy.deepcopy(first).optimise(model.max_iter, model.tol)
                ours = time.process_time() - began
                for what, descent in (("ours", gated_node.descend), ("scipy's", scipys_descent)):
                    seconds, value = sweeps(copy.deepcopy(first), stop, descent)
                    came = "" if value <= stop else f", NOT reached: {value:.6f}"
                    line(f"node by node (algorithm 5), {what} inside{came}", ours, seconds)
    mean = float(np.exp(np.mean(np.log(ratios))))
    verdict = "met" if mean >= GOAL else "MISSED"
    print(f"  {mean:.2f}× in the geometric mean of {len(ratios)} (goal {GOAL:g}: {verdict}), least {min(ratios):.2f}×")


def memory(levels: int = LEVELS, n_rows: int = ROWS) -> None:
    """The peak of a fit of many levels, data included; sweeps are cut to one, which holds all that the others hold."""
    data = yahoo_like(QUERIES, seed=0)
    X, y = data.X[:n_rows], data.y[:n_rows]
    model = CSTCRegressor(data.costs, tradeoff=3e-3, max_depth=levels, max_iter=1, min_samples_leaf=1)
    began = time.perf_counter()
    with memory_watched(every=0.05) as peak:
        model.fit(X, y)
    seconds, gib = time.perf_counter() - began, peak.most / 2**30
    verdict = "met" if gib <= 6 else "MISSED"
    print(f"CSTC, {X.shape[0]} × {X.shape[1]} ({X.dtype}), {levels} levels, {model.n_nodes_} nodes, {seconds:.0f} s:")
    print(f"  peak {gib:.2f} GiB, data included (goal at most 6: {verdict})")


if __name__ == "__main__":
    if sys.argv[1:2] == ["memory"]:
        memory(*(int(a) for a in sys.argv[2:]))
    else:
        main()
