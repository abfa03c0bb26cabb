"""Running the application: uvicorn on the loopback, a plan file that may change, an end that comes in time."""

from __future__ import annotations

import asyncio
import logging
import logging.config
import signal
import socket
import stat
import sys
import threading
from collections.abc import Collection, Iterable
from contextlib import suppress
from copy import deepcopy
from ipaddress import ip_address
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any

import uvicorn

from miserly.plan import Menu, Plan, PlanFileError, content_hash, read_model
from miserly.runtime import Extractor, SpendCap
from miserly.serve._app import Application, create_app
from miserly.serve._metrics import Telemetry
from miserly.serve._protocol import Acceptor, limited_protocol, quiet_about_descriptors
from miserly.serve._rollout import load_plan_or_menu, read_canaries
from miserly.serve._runner_pool import RunnerPool
from miserly.serve._supervisor import Supervisor, WorkerLink
from miserly.serve._watchdog import LoopWatchdog, end_by

log = logging.getLogger("miserly.serve")
FileMark = tuple[int, int, int]
TICK, LOOK = 0.1, 1.0  # seconds between looks at the event loop (uvicorn's own), at the plan file
BACKLOG = 1024  # connections that wait to be accepted
DRAIN = 0.1  # of the time to stop: for clients to leave by themselves
FINISH = 0.6  # of the time to stop: for answers to be finished
CLOSE = 0.2  # of the time to stop: for extractors to end
WHOLE_FILE = " If it was still being written: write it beside its place, then move it there (mv)."
SPARE_DESCRIPTORS = 64  # for files, pipes and connections of extractors


def serve(
    path: str | Path,
    extractors: Iterable[Extractor] | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    stop_within: float = 20.0,
    max_connections: int = 4096,
    allow_host: Collection[str] = (),
    canary: str | Path | None = None,
    route: Collection[str] = (),
    shadow: Collection[str | Path] = (),
    spend_cap: Collection[str] = (),
    spend_store: str | Path | None = None,
    **options: Any,
) -> None:
    """Serve a plan file until SIGTERM or SIGINT.

    The file is looked at every second, and at SIGHUP: a new plan takes over; one that is damaged, that does not fit
    the extractors or the clients, or that fails a canary is refused with a line in the log.

    Parameters
    ----------
    path : str or Path
        The plan file, or a menu file: then the budget of each request chooses the plan.
    extractors : iterable of Extractor or None, default None
        What the plan calls; None: rows bring their features.
    host : str, default "127.0.0.1"
        Where to listen.
    port : int, default 8000
        0: one that is free.
    workers : int, default 1
        Processes that serve on one socket, 1 or more. One that dies is replaced. Limits are for each.
    stop_within : float, default 20.0
        Seconds from the signal until the process has ended, whatever hangs.
    max_connections : int, default 4096
        Connections beyond that are closed at once; never more than the system has descriptors for.
    allow_host : collection of str, default ()
        Names that the headers Host and Origin may have besides localhost and addresses. Checked if it listens on
        the loopback, or if a name is given.
    canary : str, Path or None, default None
        A file of JSON lines with rows and expected values that every new plan must pass.
    route : collection of str, default ()
        Challengers with their percent of requests, such as "next.plan:5". Their files are read at the start only.
    shadow : collection of str or Path, default ()
        Plan files that answer beside and are only compared; read at the start only.
    spend_cap : collection of str, default ()
        Limits of what calls of extractors may cost, such as "50USD/day", counted in one place for all workers.
    spend_store : str, Path or None, default None
        Where: a file, or a redis:// address for several machines. None: a file beside the plan, `<plan>.spending`.
    **options
        Those of `create_app`.

    Examples
    --------
    >>> from miserly.serve import serve
    >>> serve("triage.plan", port=8000)  # doctest: +SKIP
    """
    asked = _remember_hangups()
    _check_regular(Path(path))
    hosts = {name.lower() for name in allow_host}
    options.setdefault("model_name", Path(path).stem)
    options["allowed_hosts"] = hosts if hosts or _is_loopback(host) else None
    options["canaries"] = [] if canary is None else read_canaries(canary)
    options["challengers"] = [_routed(text) for text in route]
    options["shadows"] = [load_plan_or_menu(other) for other in shadow]
    given = None if extractors is None else list(extractors)
    store = f"{path}.spending" if spend_store is None else spend_store

    def start(listener: socket.socket | None = None, link: WorkerLink | None = None) -> None:
        mark = None if link is not None else _mark(Path(path))
        plan = load_plan_or_menu(path) if link is None else read_model(link.plan_file, str(path))
        cap = SpendCap(spend_cap, store) if spend_cap else None
        app = create_app(plan, given, spend_cap=cap, **options)
        server = _server(app, host, port, max_connections, stop_within)
        hangups = asked if link is None else _remember_hangups()
        _run(server, app, (Path(path), mark, app.pool, app.telemetry, hangups, link), listener, link)

    if workers == 1:
        start()
        return
    logging.config.dictConfig(_logging())
    plan_file = Path(path).read_bytes()
    found = read_model(plan_file, str(path))  # a mistake is said once, here, and not by every worker
    if spend_cap:
        SpendCap(spend_cap, store).check_unit(found.costs.unit, found.costs.exchange)
    with socket.create_server((host, port), family=_family(host), backlog=BACKLOG) as listener:
        log.info("%d workers running on http://%s:%d", workers, host, listener.getsockname()[1])
        code = Supervisor(start, listener, workers, stop_within, plan_file).run()
    if code:
        raise SystemExit(code)


def _server(app: Application, host: str, port: int, max_connections: int, stop_within: float) -> StoppingServer:
    app.pool.close_within = CLOSE * stop_within
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=limited_protocol(min(max_connections, _descriptors()), app.telemetry, app.refusal),
        ws="none",
        backlog=BACKLOG,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=max(1, round(FINISH * stop_within)),
        log_config=_logging(),
    )
    return StoppingServer(config, app.pool, app.telemetry, stop_within)


def _run(
    server: StoppingServer, app: Application, following: Any, listener: socket.socket | None, link: WorkerLink | None
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        quiet_about_descriptors(loop, log.error)
        if link is not None:
            app.telemetry.everyone = link.all_metrics
            app.pool.on_rollback = link.taken_back
            link.run(app.telemetry.page, app.pool.take_back, loop)
        task = asyncio.create_task(follow(*following))
        try:
            await server.serve(None if listener is None else [listener])
        finally:
            task.cancel()

    with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        runner.run(main())


def _routed(text: str) -> tuple[Plan | Menu, float]:
    path, _, share = text.rpartition(":")
    try:
        return load_plan_or_menu(path), float(share)
    except (ValueError, FileNotFoundError) as error:
        if isinstance(error, PlanFileError):
            raise
        raise ValueError(f"A route is a plan file and its percent of requests, next.plan:5; got {text!r}.") from None


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


class StoppingServer(uvicorn.Server):
    """uvicorn, but a first signal lets clients leave, and the process ends within a given time.

    After the signal there are no new connections, and answers ask to use another one; then the rest is closed. A
    second signal does not wait.

    Parameters
    ----------
    config : uvicorn.Config
        What is run.
    pool : RunnerPool
        Learns that the server stops.
    telemetry : Telemetry
        Shows how late the event loop is.
    stop_within : float
        Seconds from the signal to the end.
    """

    def __init__(self, config: uvicorn.Config, pool: RunnerPool, telemetry: Telemetry, stop_within: float) -> None:
        super().__init__(config)
        self._pool, self._telemetry, self._stop_within = pool, telemetry, stop_within
        self._is_stopping = False
        self._until = 0.0
        self._watchdog: LoopWatchdog | None = None
        self._acceptors: list[Acceptor] = []

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note the signal; the next tick acts on it."""
        if self._is_stopping:
            super().handle_exit(sig, frame)
        elif threading.current_thread() is threading.main_thread():
            end_by(self._stop_within, self._last_words)
        self._is_stopping = True

    def _last_words(self) -> str:
        return f"The time to stop is over; {self._pool.in_flight} requests were not answered."

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and accept several connections in a turn of the event loop when turns are long."""
        await super().startup(sockets)
        listeners = [listener for server in self.servers for listener in server.sockets]
        self._acceptors = [Acceptor(listener, self._protocol) for listener in listeners]

    def _protocol(self) -> asyncio.Protocol:
        make: Any = self.config.http_protocol_class
        protocol: asyncio.Protocol = make(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return protocol

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        self._watchdog = self._watchdog or LoopWatchdog(self._telemetry)
        self._watchdog.beat(TICK)
        self._pool.end_probation()
        if self._is_stopping and not self._pool.is_draining:
            self._pool.is_draining = True
            self._until = monotonic() + DRAIN * self._stop_within
            for close in [listener.close for listener in self.servers] + [a.close for a in self._acceptors]:
                close()
        if self._pool.is_draining and (not self.server_state.connections or monotonic() > self._until):
            self.should_exit = True
            self._watchdog.stop()
        return await super().on_tick(counter)


async def follow(
    path: Path,
    seen: FileMark | None,
    pool: RunnerPool,
    telemetry: Telemetry,
    asked: threading.Event,
    link: WorkerLink | None = None,
) -> None:
    """Take over each new plan that appears at a path; `seen` marks the one at work, SIGHUP sets `asked`. A worker
    tells the others by its `link`."""
    while True:
        for _ in range(round(LOOK / TICK)):
            await asyncio.sleep(TICK)
            if asked.is_set():
                break
        mark, is_asked = _mark(path), asked.is_set()
        asked.clear()
        if mark is None or (mark == seen and not is_asked):
            continue
        seen = mark
        try:
            _check_regular(path)
            data = await asyncio.to_thread(path.read_bytes)
            if link is not None and data == link.plan_file and not is_asked:
                continue
            plan = await asyncio.to_thread(read_model, data, str(path))
            if not is_asked and content_hash(plan) in pool.taken_back:
                raise ValueError("It made requests fail and was taken back; SIGHUP tries it again.")
            await pool.take_over(plan)
            if link is not None:
                link.plan_file = data
                await asyncio.to_thread(link.taken, data)
        except Exception as error:
            telemetry.reload("refused")
            remedy = WHOLE_FILE if isinstance(error, PlanFileError) else ""
            log.error("The new plan is not taken: %s%s The old one stays.", error, remedy)
        else:
            telemetry.reload("taken")
            active = pool.active
            said = (active.plan.summary() if active.menu is None else active.menu.describe()).splitlines()[0]
            log.info("A new plan has taken over, version %s: %s", active.version, said)


def _remember_hangups() -> threading.Event:
    """Let SIGHUP set an event from now on: before the first request it would end the process."""
    asked = threading.Event()
    if hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGHUP, lambda *_: asked.set())
    return asked


def _check_regular(path: Path) -> None:
    """Refuse what is no file: opening a pipe would wait for a writer for ever."""
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode):
            raise PlanFileError(f"'{path}' is not a regular file.")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _descriptors() -> int:
    """How many connections the process has descriptors for, after asking for as many as it may have."""
    if sys.platform == "win32":
        return 512
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        wanted = hard if hard != resource.RLIM_INFINITY else max(soft, 65_536)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return max(1, soft - SPARE_DESCRIPTORS)


def _logging() -> dict[str, Any]:
    """uvicorn's own, with our words beside it."""
    config: dict[str, Any] = deepcopy(uvicorn.config.LOGGING_CONFIG)
    config["loggers"]["miserly"] = {"handlers": ["default"], "level": "INFO", "propagate": False}
    return config


def _mark(path: Path) -> FileMark | None:
    """What changes when a file does; None while there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
