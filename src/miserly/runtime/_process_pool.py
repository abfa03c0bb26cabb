"""Worker processes of one extractor. One that hangs is killed and replaced; all end with the program."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from time import monotonic
from typing import Any

from miserly.runtime._calls import Arguments, CallOutcome, failed, perform
from miserly.runtime._extractor import Extractor
from miserly.runtime._pool import Pool
from miserly.runtime._request import PendingCall

CHECK = 0.5  # seconds between looks at whether a call that runs is still wanted
STARTS_WITHIN = 120.0  # seconds; only a process that will never start takes longer
HANGS_AFTER = 30.0  # seconds for which a call without a timeout may go on when nobody waits for it


class ProcessPool:
    """At most `workers` processes, each driven by a thread that waits for it.

    Parameters
    ----------
    name : str
        The extractor's.
    workers : int
        How many processes there are at most, 1 or more.
    """

    def __init__(self, name: str, workers: int) -> None:
        self._threads = Pool(f"miserly-{name}", workers)
        self._idle: list[_Child] = []
        self._busy: set[_Child] = set()
        self.busy_with = self._threads.busy_with

    def submit(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Run `work` (which uses `call`) on a thread, then `done` with its result."""
        self._threads.submit(work, done)

    def call(self, pending: PendingCall, arguments: Arguments, now: Callable[[], float]) -> list[CallOutcome]:
        """Perform a call in one of the processes and wait for it; its time begins when the process is ready."""
        e = pending.extractor
        try:
            child = self._idle.pop()
        except IndexError:
            child = _Child(e.function.__module__, e.function.__qualname__)
        self._busy.add(child)
        began = monotonic()
        try:
            child.wait_until_ready()
            began, pending.started = monotonic(), now()
            child.send(arguments)
            while not child.has_result(CHECK if e.timeout is None else min(CHECK, e.timeout)):
                took = monotonic() - began
                if took > (HANGS_AFTER if e.timeout is None else e.timeout) and pending.is_abandoned:
                    child.kill()
                    return failed(TimeoutError(f"killed after {took:.3g} s"), arguments, took)
            outcomes = child.receive()
        except (EOFError, OSError) as error:
            child.kill()
            lost = ConnectionError(f"the worker process died: {error}")
            return failed(lost, arguments, monotonic() - began)
        except Exception as error:  # arguments that cannot be sent: the process is as it was
            outcomes = failed(error, arguments, monotonic() - began)
        finally:
            self._busy.discard(child)
        self._idle.append(child)
        return outcomes

    def close(self, timeout: float | None = None) -> int:
        """Let running calls finish for `timeout` seconds, then kill what is left; return how many were killed."""
        left = self._threads.close(timeout)
        for child in [*self._idle, *self._busy]:
            child.kill()
        self._idle.clear()
        if left:
            self._threads.close(CHECK + 1.0)
        return left


class _Child:
    """One process and the pipe to it."""

    def __init__(self, module: str, name: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve_calls, args=(theirs, module, name), daemon=True)
        self._process.start()
        self._is_ready = False
        theirs.close()

    def wait_until_ready(self) -> None:
        """Wait for its imports, which take as long as they take on a busy machine."""
        if not self._is_ready:
            if not self._pipe.poll(STARTS_WITHIN):
                raise OSError(f"it did not start within {STARTS_WITHIN:g} s")
            self._is_ready = bool(self._pipe.recv())

    def send(self, message: Any) -> None:
        self._pipe.send(message)

    def has_result(self, seconds: float) -> bool:
        return self._pipe.poll(seconds)

    def receive(self) -> list[CallOutcome]:
        outcomes: list[CallOutcome] = self._pipe.recv()
        return outcomes

    def kill(self) -> None:
        with suppress(OSError, ValueError):
            self._process.kill()
            self._process.join(5.0)
        self._pipe.close()


def _serve_calls(pipe: Connection, module: str, name: str) -> None:
    """The life of a worker process: it ends with its parent, whatever it is doing."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    found = _find(module, name)
    pipe.send(True)
    while True:
        try:
            arguments = pipe.recv()
        except (EOFError, OSError):
            return
        except Exception as error:  # arguments that cannot be read here
            pipe.send(failed(_sendable(error), [()]))
            continue
        outcomes = failed(found, arguments) if isinstance(found, BaseException) else _perform(found, arguments)
        try:
            pipe.send([outcome._replace(error=_sendable(outcome.error)) for outcome in outcomes])
        except OSError:
            return
        except Exception as error:  # a result that cannot be sent
            pipe.send(failed(_sendable(error), arguments))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _find(module: str, name: str) -> Any:
    """The extractor where it was declared, or the error that says why it is not there."""
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except BaseException as error:
        return error
    return found


def _perform(extractor: Extractor, arguments: Arguments) -> list[CallOutcome]:
    try:
        return perform(extractor, arguments)
    except BaseException as error:
        return failed(error, arguments)


def _sendable(error: Any) -> Any:
    """The error, or one in its words if it cannot be sent to another process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
