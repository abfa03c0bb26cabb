"""A sweep that tests start as a process of its own: `python sweep_to_kill.py STORE N_JOBS N_POINTS`."""

import sys

import miserly as ms
from miserly.datasets import yahoo_like


def sweep(store, n_jobs=1, n_points=8):
    train, validation, test = (yahoo_like(40, seed) for seed in range(3))
    parts = ((d.X, d.y, d.qid) for d in (train, validation, test))
    model = ms.GreedyMiserRanker(train.costs, n_estimators=40, n_iter_no_change=20, loss="lambdarank")
    grid = {"tradeoff": model.suggest_grid(train.y, n_points)}
    return ms.frontier(model, *parts, grid=grid, metric="ndcg@5", store=store, n_jobs=n_jobs)


if __name__ == "__main__":
    sweep(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
