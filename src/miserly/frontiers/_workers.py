"""Points in processes of their own. What they share is written once and mapped into the memory of each.

Never by fork: a fork after a parallel kernel kills the child. Every worker has a pool of its own, so that one that
dies takes one known point with it and no other.
"""

from __future__ import annotations

import mmap
import os
import pickle
import shutil
import signal
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from joblib import cpu_count
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import TerminatedWorkerError
from sklearn.base import clone

from miserly.files import writing
from miserly.frontiers._front import Point
from miserly.frontiers._job import Job
from miserly.kernels.threads import threads

try:
    import cloudpickle
except ImportError:  # older versions of joblib bring their own
    from joblib.externals import cloudpickle

ALIGNED = 64
THREAD_LIMITS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class WorkerDiedError(Exception):
    """Some workers ended without an answer; `numbers` are their points."""

    def __init__(self, numbers: list[int]) -> None:
        super().__init__(numbers)
        self.numbers = numbers


def points_in_processes(
    job: Job, grid: Sequence[Mapping[str, Any]], numbers: Sequence[int], n_workers: int, folder: Path
) -> Iterator[tuple[int, Point]]:
    """The points of the grid with these numbers as they are finished, on so many workers.

    If a worker dies, no other point is begun, those in work are finished, and then WorkerDiedError is raised.
    """
    path = folder / "shared"
    share(job, path)
    waiting, running, died = deque(numbers), dict[Future[Point], tuple[int, Any]](), list[int]()
    limit = str(max(1, cpu_count() // n_workers))
    options = {"initializer": begin, "initargs": (os.getpid(), folder), "env": dict.fromkeys(THREAD_LIMITS, limit)}
    pools = [ProcessPoolExecutor(max_workers=1, **options) for _ in range(n_workers)]
    free = deque(pools)
    try:
        while waiting or running:
            with _ctrl_c_held_back():
                while waiting and free:
                    number, pool = waiting.popleft(), free.popleft()
                    running[pool.submit(work, path, grid[number])] = (number, pool)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                number, pool = running.pop(future)
                try:
                    point = future.result()
                except TerminatedWorkerError:
                    died.append(number)
                    waiting.clear()
                    continue
                free.append(pool)
                yield number, point
    finally:
        _wait_until_taken(running)
        for pool in pools:
            pool.shutdown(wait=True, kill_workers=True)
    if died:
        raise WorkerDiedError(sorted(died))


def begin(parent: int, folder: Path) -> None:
    """A worker leaves Ctrl-C to its parent, and ends when that does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent, folder), daemon=True).start()


def work(path: Path, params: Mapping[str, Any]) -> Point:
    """Make one point, in a worker, on one thread unless the model asks for more."""
    job = _attached(path)
    with threads(1):
        return job.point(params)


def share(job: Job, path: Path) -> None:
    """Write a job to a file: its arrays as they lie in memory, then what they belong to."""
    buffers: list[pickle.PickleBuffer] = []
    text = cloudpickle.dumps(bare(job), protocol=5, buffer_callback=buffers.append)
    places = []
    with writing(path, "It holds the data for the workers of the sweep."):
        with path.open("xb") as file:
            for buffer in buffers:
                raw = buffer.raw()
                file.write(bytes(-file.tell() % ALIGNED))
                places.append((file.tell(), raw.nbytes))
                file.write(raw)
            places.append((file.tell(), len(text)))
            file.write(text)
        path.with_name(path.name + ".places").write_bytes(np.array(places, np.int64).tobytes())


def attach(path: Path) -> Job:
    """The job of a file, its arrays in the file's own memory: private, but copied only where they are written to."""
    places = np.frombuffer(path.with_name(path.name + ".places").read_bytes(), np.int64).reshape(-1, 2).tolist()
    with path.open("rb") as file:
        memory = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    *arrays, text = (memory[first : first + size] for first, size in places)
    job: Job = pickle.loads(text, buffers=arrays)
    return job


def bare(job: Job) -> Job:
    """The model unfitted, every matrix in one piece, so that it can be mapped."""
    pieces: dict[int, np.ndarray] = {}

    def whole(data: Any) -> Any:
        if isinstance(data, tuple):
            return tuple(whole(part) for part in data)
        if not isinstance(data, np.ndarray):
            return data
        if id(data) not in pieces:
            plain = np.asarray(data)
            pieces[id(data)] = plain if plain.flags.forc else np.ascontiguousarray(plain)
        return pieces[id(data)]

    given = {name: whole(data) for name, data in job.given.items()}
    parts = {name: whole(getattr(job, name)) for name in ("train", "validation", "test")}
    return replace(job, model=clone(job.model), given=given, **parts)


_attached = lru_cache(maxsize=1)(attach)


def _wait_until_taken(futures: Iterable[Future[Any]]) -> None:
    """A pool of loky that is closed with work which its thread has not yet taken complains with a KeyError."""
    deadline = time.monotonic() + 1.0
    while any(not (f.running() or f.done()) for f in futures) and time.monotonic() < deadline:
        time.sleep(0.001)


def _end_with(parent: int, folder: Path) -> None:
    """No worker outlives a sweep that was killed, nor do its shared files."""
    while os.getppid() == parent:
        time.sleep(0.5)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """Workers that are born in here never hear Ctrl-C, which is their parent's to answer; it hears it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
