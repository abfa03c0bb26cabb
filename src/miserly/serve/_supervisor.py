"""Several worker processes on one socket: started, watched, replaced, reloaded and stopped together."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from time import monotonic
from types import FrameType

from miserly.serve._merging import merge_pages

log = logging.getLogger("miserly.serve")
LOOK = 0.1  # seconds between looks at the workers
SOON, LONGEST_PAUSE = 1.0, 10.0  # seconds: a worker that dies sooner is started again after a pause, up to this long
ANSWER = 1.0  # seconds that a worker has to send its metrics
Start = Callable[[socket.socket, "WorkerLink"], None]


class WorkerLink:
    """A worker's side of the pipe to its supervisor: gives its own metrics when asked, asks for all, and says which
    plan was taken or taken back, so that all workers serve the same.

    Parameters
    ----------
    pipe : Connection
        To the supervisor.
    plan_file : bytes
        The plan that the other workers serve, as a file.
    """

    def __init__(self, pipe: Connection, plan_file: bytes) -> None:
        self._pipe = pipe
        self.plan_file = plan_file
        self._lock = threading.Lock()
        self._waiting: list[asyncio.Future[bytes]] = []

    def run(self, page: Callable[[], bytes], take_back: Callable[[str], None], loop: asyncio.AbstractEventLoop) -> None:
        """Answer the supervisor's questions from a thread, until it is gone."""

        def listen() -> None:
            with suppress(EOFError, OSError):
                while True:
                    kind, text = self._pipe.recv()
                    if kind == "metrics?":
                        self._send(("metrics", page()))
                    elif kind == "rollback":
                        loop.call_soon_threadsafe(take_back, text.decode())
                    else:
                        loop.call_soon_threadsafe(self._take, text)

        threading.Thread(target=listen, name="miserly-link", daemon=True).start()

    def taken(self, plan_file: bytes) -> None:
        """Say which plan is served now; call it on a thread, a file may be large."""
        self._send(("taken", plan_file))

    def taken_back(self, version: str) -> None:
        """Say that a plan made requests fail."""
        self._send(("rollback", version.encode()))

    async def all_metrics(self) -> bytes | None:
        """The metrics of all workers in one page; None if the supervisor does not answer in time."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._send(("all?", b""))
        try:
            async with asyncio.timeout(2.0 * ANSWER):
                return await future
        except TimeoutError:
            return None

    def _take(self, page: bytes) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(page)

    def _send(self, message: tuple[str, bytes]) -> None:
        with self._lock, suppress(OSError):
            self._pipe.send(message)


class _Worker:
    def __init__(self, number: int, start: Start, listener: socket.socket, plan_file: bytes) -> None:
        context = multiprocessing.get_context("fork")  # the supervisor has no threads; workers load the plan
        self.pipe, theirs = context.Pipe()
        self.number, self.began, self.page = number, monotonic(), b""
        self.process: BaseProcess = context.Process(
            target=_work, args=(start, listener, theirs, plan_file), name=f"miserly-worker-{number}"
        )
        self.process.start()
        theirs.close()

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError, TypeError):
            os.kill(self.process.pid, number)  # type: ignore[arg-type]


def _work(start: Start, listener: socket.socket, pipe: Connection, plan_file: bytes) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):  # the supervisor's handlers are not for a worker
        signal.signal(number, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    start(listener, WorkerLink(pipe, plan_file))


def _end_with_parent() -> None:
    """A supervisor that was killed takes its workers with it: they end as at SIGTERM."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


class Supervisor:
    """Keeps worker processes alive until SIGTERM or SIGINT.

    A worker that dies is replaced by one that serves what the others serve, even if the plan's file is a damaged one by
    now; SIGHUP goes to all of them; a plan that one of them takes back, all take back; at the end all have
    `stop_within` seconds.

    Parameters
    ----------
    start : callable
        `start(listener, link)` runs a worker, in a forked process.
    listener : socket.socket
        What all workers accept connections from.
    n_workers : int
        How many there are, 1 or more.
    stop_within : float
        Seconds from the signal to the end.
    plan_file : bytes
        The plan with which they begin, as a file.
    """

    def __init__(
        self, start: Start, listener: socket.socket, n_workers: int, stop_within: float, plan_file: bytes
    ) -> None:
        self._plan_file, self._plan_before = plan_file, plan_file
        self._start, self._listener, self._stop_within = start, listener, stop_within
        self._n_workers, self._n_replaced = n_workers, 0
        self._workers: list[_Worker] = []
        self._signals: list[int] = []
        self._retired: list[bytes] = []  # the last metrics of workers that died: counters must not fall
        self._pause, self._start_at = 0.0, 0.0

    def run(self) -> int:
        """Start the workers and watch them; return the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM)):
            signal.signal(number, self._note)
        self._workers = [self._worker(i) for i in range(self._n_workers)]
        while not self._is_stopping:
            self._look()
        return self._stop()

    def _worker(self, number: int) -> _Worker:
        return _Worker(number, self._start, self._listener, self._plan_file)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._signals.append(number)

    @property
    def _is_stopping(self) -> bool:
        return any(number in (signal.SIGTERM, signal.SIGINT) for number in self._signals)

    def _look(self) -> None:
        """One turn: pass on a hangup, replace the dead, collect metrics."""
        if self._signals and not self._is_stopping:
            self._signals.clear()
            for worker in self._workers:
                worker.signal(signal.SIGHUP)
        for worker in list(self._workers):
            if not worker.process.is_alive():
                self._bury(worker)
        if len(self._workers) < self._n_workers and monotonic() >= self._start_at:
            used = {worker.number for worker in self._workers}
            number = next(i for i in range(self._n_workers) if i not in used)
            self._workers.append(self._worker(number))
        self._talk([worker.pipe for worker in self._workers], LOOK)

    def _bury(self, worker: _Worker) -> None:
        code = worker.process.exitcode
        lived = monotonic() - worker.began
        self._pause = min(LONGEST_PAUSE, max(0.1, 2.0 * self._pause)) if lived < SOON else 0.0
        self._start_at = monotonic() + self._pause
        log.error("Worker %d ended with %s after %.1f s; it is replaced.", worker.number, code, lived)
        self._n_replaced += 1
        self._retired = [merge_pages([*self._retired, worker.page], is_gone=True)]
        worker.pipe.close()
        self._workers.remove(worker)

    def _talk(self, pipes: Sequence[Connection], seconds: float) -> None:
        """Listen to the workers for some seconds; one that asks for all metrics gets them."""
        by_pipe = {worker.pipe: worker for worker in self._workers}
        for pipe in multiprocessing.connection.wait(pipes, seconds):
            worker = by_pipe[pipe]  # type: ignore[index]
            try:
                kind, text = worker.pipe.recv()
            except (EOFError, OSError):
                continue
            if kind == "all?":
                self._collect()
                with suppress(OSError):
                    worker.pipe.send(("all", self._page()))
            else:
                self._hear(worker, kind, text)

    def _hear(self, worker: _Worker, kind: str, text: bytes) -> None:
        """What a worker says by itself: its metrics, the plan that it took, the version that it took back."""
        if kind == "metrics":
            worker.page = text
        elif kind == "taken" and text != self._plan_file:
            self._plan_before, self._plan_file = self._plan_file, text
        elif kind == "rollback":
            self._plan_file = self._plan_before
            for other in self._workers:
                if other is not worker:
                    with suppress(OSError):
                        other.pipe.send(("rollback", text))

    def _collect(self) -> None:
        """Ask every worker for its metrics and wait for the answers, for a second at most."""
        waiting = set()
        for worker in self._workers:
            with suppress(OSError):
                worker.pipe.send(("metrics?", b""))
                waiting.add(worker.pipe)
        until, asking = monotonic() + ANSWER, []
        while waiting and monotonic() < until:
            by_pipe = {worker.pipe: worker for worker in self._workers}
            for pipe in multiprocessing.connection.wait(list(waiting), max(0.0, until - monotonic())):
                worker = by_pipe[pipe]  # type: ignore[index]
                try:
                    kind, text = worker.pipe.recv()
                except (EOFError, OSError):
                    waiting.discard(worker.pipe)
                    continue
                if kind == "all?":
                    asking.append(worker)
                    continue
                self._hear(worker, kind, text)
                if kind == "metrics":
                    waiting.discard(worker.pipe)
        for worker in asking:
            with suppress(OSError):
                worker.pipe.send(("all", self._page()))

    def _page(self) -> bytes:
        own = (
            "# HELP miserly_workers Worker processes\n# TYPE miserly_workers gauge\n"
            f"miserly_workers {len(self._workers)}\n"
            "# HELP miserly_workers_replaced_total Workers that died\n# TYPE miserly_workers_replaced_total counter\n"
            f"miserly_workers_replaced_total {self._n_replaced}\n"
        )
        return merge_pages([*self._retired, *(worker.page for worker in self._workers)]) + own.encode()

    def _stop(self) -> int:
        """End all workers in time; return 0 if all ended well."""
        self._listener.close()
        for worker in self._workers:
            worker.signal(signal.SIGTERM)
        until = monotonic() + self._stop_within + 1.0
        for worker in self._workers:
            worker.process.join(max(0.0, until - monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        return 0 if all(worker.process.exitcode == 0 for worker in self._workers) else 1
