"""Running the application: uvicorn on the loopback, a plan file that may change, an end at which nothing is lost."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Iterable
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any

import uvicorn

from miserly.plan import load_plan
from miserly.runtime import Extractor
from miserly.serve._app import create_app
from miserly.serve._metrics import Telemetry
from miserly.serve._runner_pool import RunnerPool

log = logging.getLogger("miserly.serve")
Mark = tuple[int, int, int]
DRAIN, GRACE, LOOK = 2.0, 30, 1.0  # seconds: for clients to leave, for answers to be finished, between looks


def serve(
    path: str | Path,
    extractors: Iterable[Extractor] | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    **options: Any,
) -> None:
    """Serve a plan file until SIGTERM or SIGINT. The file is looked at every second, and at SIGHUP: a new plan takes
    over, one that is damaged or does not fit the extractors is told in the log. `options` are those of `create_app`."""
    mark = _mark(Path(path))
    app = create_app(load_plan(path), extractors, **options)
    pool, telemetry = app.state.pool, app.state.telemetry
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        log_config=_logging(),
    )
    server = Server(config, pool)

    async def main() -> None:
        following = asyncio.create_task(follow(Path(path), mark, pool, telemetry))
        try:
            await server.serve()
        finally:
            following.cancel()

    asyncio.run(main())


class Server(uvicorn.Server):
    """uvicorn, but a first signal lets clients leave: no new connections, and answers that ask to connect elsewhere;
    then the rest is closed. A second signal does not wait."""

    def __init__(self, config: uvicorn.Config, pool: RunnerPool) -> None:
        super().__init__(config)
        self._pool = pool
        self._is_told = False
        self._until = 0.0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note the signal; the next tick acts on it."""
        if self._is_told:
            super().handle_exit(sig, frame)
        self._is_told = True

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        if self._is_told and not self._pool.is_draining:
            self._pool.is_draining = True
            self._until = monotonic() + DRAIN
            for listener in self.servers:
                listener.close()
        if self._pool.is_draining and (not self.server_state.connections or monotonic() > self._until):
            self.should_exit = True
        return await super().on_tick(counter)


async def follow(path: Path, seen: Mark | None, pool: RunnerPool, telemetry: Telemetry) -> None:
    """Take over each new plan that appears at a path; `seen` is the mark of the one at work."""
    asked = asyncio.Event()
    if hasattr(signal, "SIGHUP"):
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, asked.set)
    while True:
        with suppress(TimeoutError):
            await asyncio.wait_for(asked.wait(), LOOK)
        mark, is_asked = _mark(path), asked.is_set()
        asked.clear()
        if mark is None or (mark == seen and not is_asked):
            continue
        seen = mark
        try:
            await pool.take_over(await asyncio.to_thread(load_plan, path))
        except Exception as error:
            telemetry.reload("refused")
            log.error("The new plan is not taken: %s The old one stays.", error)
        else:
            telemetry.reload("taken")
            log.info("A new plan has taken over: %s", pool.active.plan.summary().splitlines()[0])


def _logging() -> dict[str, Any]:
    """uvicorn's own, with our words beside it."""
    config: dict[str, Any] = deepcopy(uvicorn.config.LOGGING_CONFIG)
    config["loggers"]["miserly"] = {"handlers": ["default"], "level": "INFO", "propagate": False}
    return config


def _mark(path: Path) -> Mark | None:
    """What changes when a file does; None while there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
