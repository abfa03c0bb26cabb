"""The points of a sweep as tasks on a cluster. What they share is sent to every worker once."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from distributed import CancelledError, Client, Future, wait
from distributed.scheduler import KilledWorker

from miserly.distributed._timeouts import CHECK_SECONDS, workers
from miserly.frontiers import Job, Point, WorkerDiedError
from miserly.kernels.threads import threads

logger = logging.getLogger(__name__)
MOST_LOST = 3  # workers that one point may outlive: it is likely the point that kills them


def points_on_cluster(
    client: Client, job: Job, grid: Sequence[Mapping[str, Any]], numbers: Sequence[int]
) -> Iterator[tuple[int, Point]]:
    """The points of the grid with these numbers as they are finished.

    A point whose worker is lost is made again on another, the others are not touched. If all workers that had the data
    are lost, the rest begins again, its first point alone. One that kills several ends the sweep with WorkerDiedError.
    """
    waiting, times_lost, alone = list(numbers), Counter[int](), False
    while waiting:
        workers(client)
        shared = client.scatter(job, broadcast=True, hash=False)
        begun = waiting[:1] if alone else list(waiting)
        running = {client.submit(work, shared, grid[number], pure=False): number for number in begun}
        died: list[int] = []
        lost: list[int] = []
        while running:
            for future in _finished(client, running):
                number = running.pop(future)
                if future.status == "finished":
                    waiting.remove(number)
                    yield number, future.result()
                elif future.status == "error" and not isinstance(error := future.exception(), KilledWorker):
                    raise error
                else:
                    (died if future.status == "error" else lost).append(number)
            if died:
                raise WorkerDiedError(sorted(died))
        times_lost.update(lost)
        if alone and lost and times_lost[lost[0]] >= MOST_LOST:
            raise WorkerDiedError(lost)
        if lost:
            logger.warning("All workers that had the data were lost: they are sent again for %d points.", len(waiting))
        alone = bool(lost)


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
        except CancelledError:  # what they need is gone with its last worker
            if done := [future for future in futures if future.done()]:
                return done
