"""Waiting for a cluster without waiting for ever: what is lost, and what is late, becomes an error that says so."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from distributed import CancelledError, Client, Future, wait
from distributed.scheduler import KilledWorker

from miserly.boosting import BackendLostError, RowsLostError

CHECK_SECONDS = 2.0  # between two looks at the workers: cheap, and soon enough for people
PATIENCE = 20.0  # seconds for a worker that is busy compiling to respond
GO_ON = "Then fit again: trees that were boosted are kept, and warm_start=True goes on from them."


def workers(client: Client) -> dict[str, int]:
    """The addresses of all workers, with their threads."""
    try:
        if client.status != "running":
            raise OSError(f"the client is {client.status}")
        found = client.sync(client.scheduler.ncores, callback_timeout=PATIENCE)  # type: ignore[union-attr]
    except (OSError, RuntimeError) as error:
        raise BackendLostError(
            f"The scheduler of the cluster does not answer ({error}). Connect to a cluster again. {GO_ON}"
        ) from error
    return dict(sorted(found.items()))


@contextmanager
def losses_named(client: Client) -> Iterator[None]:
    """What Dask raises for a lost worker becomes a RowsLostError, or a BackendLostError if the scheduler is gone."""
    try:
        yield
    except (RowsLostError, BackendLostError):
        raise
    except (CancelledError, KilledWorker, OSError) as error:
        workers(client)
        raise RowsLostError(f"A worker was lost while it prepared its rows ({_in_a_line(error)}).") from error


def wait_for(client: Client, futures: Iterable[Future], only: Iterable[str], timeout: float) -> None:
    """Wait for tasks, some of which `only` these workers can do; an error if one of them goes meanwhile."""
    futures, only, deadline = list(futures), set(only), time.monotonic() + timeout
    while True:
        try:
            with losses_named(client):
                _wait(futures)
            break
        except StillRunningError:
            gone = only - set(workers(client))
            if gone:
                raise RowsLostError(f"The worker {gone.pop()} was lost while it prepared its rows.") from None
            if time.monotonic() > deadline:
                raise late(timeout) from None
    for future in futures:
        if future.status == "finished":
            continue
        error = future.exception() if future.status == "error" else None
        if error is None or isinstance(error, (KilledWorker, CancelledError)):
            workers(client)
            raise RowsLostError(f"A worker was lost while it prepared its rows ({error or future.status}).")
        raise error


def results_of(client: Client, futures: Iterable[Future], timeout: float) -> list[Any]:
    """What tasks made, once all are done; an error that says so if it was lost before it came here."""
    futures = list(futures)
    wait_for(client, futures, (), timeout)
    with losses_named(client):
        return list(client.gather(futures))


class StillRunningError(Exception):
    """Some tasks are not done yet."""


def _wait(futures: list[Future]) -> None:
    try:
        wait(futures, timeout=CHECK_SECONDS)
    except TimeoutError:
        raise StillRunningError from None


def _in_a_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def late(timeout: float) -> BackendLostError:
    """The error for an answer that did not come."""
    return BackendLostError(
        f"The cluster gave no answer within {timeout:g} s. Perhaps the backend needs a longer timeout. {GO_ON}"
    )
