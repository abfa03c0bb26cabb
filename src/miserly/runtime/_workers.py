"""Where calls run under a deadline: threads or processes of each extractor's own, and an event loop."""

from __future__ import annotations

import asyncio
import importlib
import multiprocessing
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from typing import Any

from miserly.runtime._outcome import Arguments, Outcome, failed, perform, perform_async
from miserly.runtime._pool import Pool
from miserly.runtime._request import Job

Deliver = Callable[[Job, Sequence[Outcome]], None]


class Workers:
    """Started when they are first needed, so that a runner that needs none has none."""

    def __init__(self) -> None:
        self._pools: dict[str, Pool] = {}
        self._processes: dict[str, ProcessPoolExecutor] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._jobs: set[Job] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> int:
        """Calls begun and not ended."""
        return len(self._jobs)

    def submit(
        self, job: Job, arguments: Arguments, deliver: Deliver, loop: Callable[[], asyncio.AbstractEventLoop]
    ) -> None:
        """Begin a call where it belongs; `loop` gives the event loop on which async functions are to run."""
        self._jobs.add(job)
        if job.extractor.is_async:
            self._await(job, arguments, deliver, loop())
        elif job.extractor.process:
            self._send(job, arguments, deliver)
        else:
            self._run(job, arguments, deliver)

    def _finish(self, job: Job, outcomes: Sequence[Outcome], deliver: Deliver) -> None:
        self._jobs.discard(job)
        deliver(job, outcomes)

    # ---- threads --------------------------------------------------------------------------------------------------

    def _run(self, job: Job, arguments: Arguments, deliver: Deliver) -> None:
        e = job.extractor
        with self._lock:
            pool = self._pools.get(e.name) or self._pools.setdefault(e.name, Pool(e.name, e.workers))

        def work() -> None:
            if job.is_abandoned and e.cache is None:
                self._jobs.discard(job)
                return
            pool.busy_with.add(job)
            try:
                outcomes = perform(e, arguments)
            except BaseException as error:  # the thread goes on with the next job
                outcomes = failed(error, arguments)
            pool.busy_with.discard(job)
            self._finish(job, outcomes, deliver)

        if sum(other.is_abandoned for other in tuple(pool.busy_with)) >= e.workers:
            error = TimeoutError(f"all {e.workers} workers are held by calls that nobody waits for any more")
            self._finish(job, failed(error, arguments), deliver)
        else:
            pool.submit(work)

    # ---- processes ------------------------------------------------------------------------------------------------

    def _send(self, job: Job, arguments: Arguments, deliver: Deliver) -> None:
        def ended(future: Future[list[Outcome]]) -> None:
            error = future.exception()
            outcomes = future.result() if error is None else failed(error, arguments)
            self._finish(job, outcomes, deliver)

        e = job.extractor
        where = e.function.__module__, e.function.__qualname__
        try:
            future = self._process_pool(job).submit(perform_by_name, *where, arguments)
        except BrokenExecutor:  # a process died: the others are gone too, so begin anew
            self._processes.pop(e.name, None)
            future = self._process_pool(job).submit(perform_by_name, *where, arguments)
        future.add_done_callback(ended)

    def _process_pool(self, job: Job) -> ProcessPoolExecutor:
        e = job.extractor
        with self._lock:
            if e.name not in self._processes:
                context = multiprocessing.get_context("spawn")
                self._processes[e.name] = ProcessPoolExecutor(e.workers, mp_context=context)
            return self._processes[e.name]

    # ---- the event loop -------------------------------------------------------------------------------------------

    def _await(self, job: Job, arguments: Arguments, deliver: Deliver, loop: asyncio.AbstractEventLoop) -> None:
        async def work() -> None:
            try:
                outcomes = await perform_async(job.extractor, arguments)
            except BaseException as error:
                if not job.is_abandoned:
                    deliver(job, failed(error, arguments))
                raise
            self._finish(job, outcomes, deliver)

        def ended(task: asyncio.Task[None]) -> None:  # also if it was cancelled before it began
            self._tasks.discard(task)
            self._jobs.discard(job)

        def begin() -> None:
            task = loop.create_task(work())
            self._tasks.add(task)
            task.add_done_callback(ended)
            if job.extractor.cache is None:
                job.cancel = lambda: loop.call_soon_threadsafe(task.cancel) if not loop.is_closed() else None
                if job.is_abandoned:
                    task.cancel()

        if loop is self._loop:
            loop.call_soon_threadsafe(begin)
        else:
            begin()

    def loop(self) -> asyncio.AbstractEventLoop:
        """An event loop on a thread of its own, for plain code that asks for async functions."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="miserly-loop", daemon=True)
                self._thread.start()
            return self._loop

    # ---- the end --------------------------------------------------------------------------------------------------

    async def end_tasks(self) -> None:
        """Cancel the tasks on the caller's event loop and wait until they are gone."""
        here = asyncio.get_running_loop()
        mine = [task for task in self._tasks if task.get_loop() is here]
        for task in mine:
            task.cancel()
        await asyncio.gather(*mine, return_exceptions=True)

    def close(self, timeout: float | None) -> int:
        """End everything; running calls on threads are let finish. Tells how many did not in time."""
        if self._loop is not None and self._thread is not None:
            asyncio.run_coroutine_threadsafe(self.end_tasks(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = self._thread = None
        for executor in self._processes.values():
            executor.shutdown(wait=True, cancel_futures=True)
        self._processes.clear()
        left = sum(pool.close(timeout) for pool in self._pools.values())
        self._pools.clear()
        return left


def perform_by_name(module: str, name: str, arguments: Arguments) -> list[Outcome]:
    """In another process: find the extractor where it was declared, and call it."""
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return perform(found, arguments)
