"""A sweep of eight λ against one fit, and two processes against one, on the frozen `yahoo_like`.

40,000 × 519, 100 trees of three levels. The one fit, blind to cost, puts its data in bins itself; the sweep does it
once.
"""

from sklearn.base import clone

from benchmarks.engine import N_ROWS, N_TREES, TRADEOFF, workload
from benchmarks.timing import best_of
from miserly.datasets import yahoo_like
from miserly.estimators import GreedyMiserRegressor
from miserly.frontiers import frontier

MOST = 5.0


def main() -> None:
    X, y, costs = workload()
    held_out = yahoo_like(200, seed=1)
    model = GreedyMiserRegressor(costs, tradeoff=TRADEOFF, n_estimators=N_TREES, max_depth=3, n_jobs=1)
    validation = (held_out.X, held_out.y, held_out.qid)

    def sweep(n_rows=N_ROWS, n_jobs=1):
        return frontier(model, (X[:n_rows], y[:n_rows]), validation, metric="ndcg@5", n_jobs=n_jobs)

    print(
        f"A sweep of {len(model.suggest_grid(y))} λ, {N_ROWS} × {X.shape[1]}, {N_TREES} trees, each fit on one thread"
    )
    sweep(2000)
    sweep(2000, n_jobs=2)
    blind = clone(model).set_params(tradeoff=0.0)
    one, miser, all_, parallel = best_of(
        2, lambda: blind.fit(X, y), lambda: model.fit(X, y), sweep, lambda: sweep(n_jobs=2)
    )
    assert [p.model.plan_ for p in all_.result.points] == [p.model.plan_ for p in parallel.result.points]
    ratio = all_.cpu / one.cpu
    print(f"  one fit, λ = 0, binning included {one.cpu:7.2f} s of CPU")
    print(
        f"  one fit, λ = {TRADEOFF:g}             {miser.cpu:7.2f} s of CPU   {all_.cpu / miser.cpu:5.2f}× is the sweep"
    )
    print(f"  the sweep, one after another     {all_.cpu:7.2f} s of CPU   {ratio:5.2f}× one fit", end="  ")
    print(f"(goal at most {MOST:g}: {'met' if ratio <= MOST else 'MISSED'})")
    print(f"  wall clock: {parallel.wall:.2f} s in two processes, {all_.wall:.2f} s in one:", end=" ")
    print(f"{all_.wall / parallel.wall:.2f} times as fast")
    for point in all_.result.points:
        print(f"    λ = {point.params['tradeoff']:<9.3g} {point.seconds:5.2f} s, {point.model.n_iter_} trees")
