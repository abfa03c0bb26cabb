"""The points of a sweep as tasks on a cluster. What they share is sent to every worker once."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from distributed import Client, Future, wait
from distributed.scheduler import KilledWorker

from miserly.boosting import BackendLostError
from miserly.distributed.waiting import CHECK_SECONDS, workers
from miserly.frontiers.front import Point
from miserly.frontiers.job import Job
from miserly.frontiers.workers import WorkerDiedError
from miserly.kernels.threads import threads

logger = logging.getLogger(__name__)
ATTEMPTS = 5


def points_on_cluster(
    client: Client, job: Job, grid: Sequence[Mapping[str, Any]], numbers: Sequence[int]
) -> Iterator[tuple[int, Point]]:
    """The points of the grid with these numbers as they are finished.

    A point whose worker is lost is made again on another, the others are not touched. If it kills several, the sweep
    ends with WorkerDiedError.
    """
    died: list[int] = []
    for _ in range(ATTEMPTS):
        workers(client)
        shared = client.scatter(job, broadcast=True, hash=False)
        running = {client.submit(work, shared, grid[number], pure=False): number for number in numbers}
        lost: list[int] = []
        while running:
            for future in _finished(client, running):
                number = running.pop(future)
                if future.status == "finished":
                    yield number, future.result()
                elif future.status == "error" and not isinstance(error := future.exception(), KilledWorker):
                    raise error
                elif future.status == "error":
                    died.append(number)
                else:
                    lost.append(number)
            if died:
                raise WorkerDiedError(sorted(died))
        if not lost:
            return
        logger.warning("All workers that had the data were lost: they are sent again for %d points.", len(lost))
        numbers = lost
    raise BackendLostError(f"The data of the sweep were lost {ATTEMPTS} times. Sweep on a cluster that stays.")


def work(job: Job, params: Mapping[str, Any]) -> Point:
    """A task: make one point, on one thread unless the model asks for more."""
    with threads(1):
        return job.point(params)


def _finished(client: Client, futures: Mapping[Future, int]) -> list[Future]:
    """Those that are done, once there are some; an error if the scheduler is gone."""
    while True:
        try:
            return list(wait(list(futures), timeout=CHECK_SECONDS, return_when="FIRST_COMPLETED").done)
        except TimeoutError:
            workers(client)
