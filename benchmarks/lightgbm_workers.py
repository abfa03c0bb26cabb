"""LightGBM's `cegb_penalty_feature_coupled` on one worker and on two (`tree_learner=data`, both on this machine).

`python -m benchmarks.lightgbm_workers`: the test error of each worker's model, and whether they are the same model. All
workers should end with the same trees.
"""

from __future__ import annotations

import multiprocessing
import socket
from typing import Any

import lightgbm
import numpy as np

N_ROWS, N_FEATURES, N_ROUNDS = 4000, 20, 50
PENALTIES = (0.0, 300.0, 3000.0)
PATIENCE = 120


def main() -> None:
    """One line for each penalty and number of workers."""
    for n_workers in (1, 2):
        for penalty in PENALTIES:
            found = train(n_workers, penalty)
            errors = ", ".join(f"{rmse:.2f}" for rmse, _ in found)
            same = "the same model" if len({trees for _, trees in found}) == 1 else "different models"
            print(f"workers {n_workers}  penalty {penalty:6.0f}  RMSE on test {errors}  {same}")


def train(n_workers: int, penalty: float) -> list[tuple[float, str]]:
    """The test error and the trees of each worker."""
    spawn = multiprocessing.get_context("spawn")
    ports, found = [_free_port() for _ in range(n_workers)], spawn.Queue()
    workers = [spawn.Process(target=_work, args=(rank, ports, penalty, found)) for rank in range(n_workers)]
    for worker in workers:
        worker.start()
    models = [found.get(timeout=PATIENCE) for _ in workers]
    for worker in workers:
        worker.join(PATIENCE)
    return models


def _work(rank: int, ports: list[int], penalty: float, found: Any) -> None:
    X, y = _draw(0)
    mine = np.arange(N_ROWS) % len(ports) == rank
    params: dict[str, Any] = {"objective": "regression", "num_leaves": 8, "num_threads": 1, "verbose": -1}
    if penalty:
        params["cegb_penalty_feature_coupled"] = [penalty] * N_FEATURES
    if len(ports) > 1:
        machines = ",".join(f"127.0.0.1:{port}" for port in ports)
        params |= {"tree_learner": "data", "pre_partition": True, "machines": machines}
        params |= {"num_machines": len(ports), "local_listen_port": ports[rank], "time_out": 1}
    booster = lightgbm.train(params, lightgbm.Dataset(X[mine], y[mine], params=params), N_ROUNDS)
    X, y = _draw(1)
    rmse = float(np.sqrt(np.mean((booster.predict(X) - y) ** 2)))
    found.put((rmse, booster.model_to_string().split("\nparameters:")[0]))


def _draw(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    return X, X[:, :8] @ np.arange(1, 9) + 3 * np.sin(3 * X[:, 9]) + rng.normal(size=N_ROWS)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
