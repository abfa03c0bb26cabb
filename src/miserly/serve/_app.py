"""The application: routes around a pool. It starts nothing by itself, so it can be mounted in any ASGI application."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec
from litestar import Litestar, MediaType, Request, Response, get
from litestar.datastructures import State
from litestar.exceptions import HTTPException

from miserly import __version__
from miserly.plan import Menu, Plan
from miserly.runtime import REAL, Clock, Extractor, SpendCap
from miserly.serve import _openapi as openapi
from miserly.serve._access_log import FACTS, AccessLog, request_id
from miserly.serve._admission import overloaded
from miserly.serve._body import Bodies, ClientGoneError, Receive
from miserly.serve._form import form_page
from miserly.serve._inference import model_metadata
from miserly.serve._messages import ErrorAnswer, ErrorDetail, RefusedError, shorten
from miserly.serve._metrics import Telemetry
from miserly.serve._request_handler import Headers, RequestHandler, RequestLimits
from miserly.serve._rollout import Canary
from miserly.serve._routing import Router
from miserly.serve._rows import RowReader
from miserly.serve._runner_pool import RunnerPool
from miserly.serve._tensors import HEADER_LENGTH, TensorBody
from miserly.serve._tracing import Tracing

log = logging.getLogger("miserly.serve")
Send = Callable[[Any], Awaitable[None]]
Answering = Callable[[bytes, Headers, float, float], Awaitable[bytes]]
CLIENT_GONE = 499  # the status under which requests are counted whose client did not wait
ARRIVED = "miserly.arrived"  # where a server puts the time at which a request arrived
REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n"
    b"x-request-id: %b\r\ncontent-length: %d\r\n%b\r\n%b"
)
PAGE_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}


class Application(Litestar):
    """Answers the POST routes itself, so that refusing costs little; Litestar answers the rest.

    `create_app` makes one. The parameters are those of `litestar.Litestar`.

    Attributes
    ----------
    handler : RequestHandler
        Answers /v1/predict, /v1/rank, /v1/next and /v2/models/{name}/infer.
    pool : RunnerPool
        The plan at work, and how many requests may be in flight.
    telemetry : Telemetry
        The figures of /metrics.
    bodies : Bodies
        Reads the bodies of requests, within limits of size and time.
    hosts : collection of str or None
        Names that the headers Host and Origin may have besides localhost and addresses; None: they are not checked.
    clock : Clock
        Tells the time.
    infer_path : str
        The route of the Open Inference Protocol that answers.
    access_log : AccessLog or None
        Gets a line for each request of the POST routes.
    tracing : Tracing
        Makes OpenTelemetry spans, where an SDK is set up.

    Examples
    --------
    >>> import miserly as ms
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> from miserly.serve import Application, create_app
    >>> plan = Plan(ms.CostTable.per_feature({"age": 2.0}), RawFeatures([0]), (Node([0], [1.0]),), [0.0])
    >>> isinstance(create_app(plan), Application)
    True
    """

    handler: RequestHandler
    pool: RunnerPool
    telemetry: Telemetry
    bodies: Bodies
    hosts: Collection[str] | None
    clock: Clock
    infer_path: str = ""
    access_log: AccessLog | None = None
    tracing: Tracing

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, or take part in the server's start and end."""
        if scope["type"] == "http":
            path = scope["path"].removeprefix(scope.get("root_path", "")).rstrip("/")
            answer = self._answering(path, scope.get("query_string", b""))
            if answer is not None and scope["method"] == "POST":
                await self._exchange(path, answer, scope, receive, send)
                return
            try:
                if answer is not None:
                    raise RefusedError("Method Not Allowed.", "request", f"{path} takes a POST.", 405)
                self._check_origin(scope["headers"])
            except RefusedError as error:
                await self._refuse(path, error, send)
                return
        await super().__call__(scope, receive, send)

    def _answering(self, path: str, query: bytes) -> Answering | None:
        if path == "/v1/predict":
            return partial(self.handler.predict, explain=True) if _explains(query) else self.handler.predict
        if path == "/v1/rank":
            return self.handler.rank
        if path == self.infer_path:
            return self.handler.infer
        return self.handler.advise if path == "/v1/next" else None

    async def _exchange(self, path: str, answer: Answering, scope: Any, receive: Receive, send: Send) -> None:
        arrived = scope.get(ARRIVED) or self.clock.now()
        headers = scope["headers"]
        facts: dict[str, Any] = {"request_id": request_id(headers), "route": path, "status": CLIENT_GONE}
        FACTS.set(facts)
        span = self.tracing.begin(path, headers, self.clock.now() - arrived) if self.tracing.is_on else None
        try:
            await self._respond(path, answer, headers, arrived, receive, send)
        finally:
            if span is not None:
                self.tracing.end(span)
            if self.access_log is not None:
                self.access_log.record(**facts, ms=round(1e3 * (self.clock.now() - arrived), 3))

    async def _respond(
        self, path: str, answer: Answering, headers: Headers, arrived: float, receive: Receive, send: Send
    ) -> None:
        try:
            waited = self.pool.admission.check(arrived)
            self._check_origin(headers)
            body = await self.bodies.read(receive, headers)
            sent = await answer(body, headers, arrived, waited)
        except ClientGoneError:
            self.telemetry.request(path, CLIENT_GONE)
        except asyncio.CancelledError:  # the server stops and does not wait any longer
            self.telemetry.request(path, 503)
            raise
        except Exception as error:
            await self._refuse(path, error, send)
        else:
            await self._send(send, 200, sent)

    async def _refuse(self, path: str, error: Exception, send: Send) -> None:
        status, detail = in_words(error, self.bodies.most)
        self.telemetry.request(path if path in openapi.ROUTES else "other", status)
        await self._send(send, status, self._in_body(path, detail))

    def _in_body(self, path: str, detail: ErrorDetail) -> bytes:
        if path == self.infer_path:  # the protocol wants a text
            return msgspec.json.encode({"error": f"{detail.where}: {detail.what} {detail.remedy}"})
        return msgspec.json.encode(ErrorAnswer(detail))

    async def _send(self, send: Send, status: int, body: bytes) -> None:
        is_json = not isinstance(body, TensorBody)
        kind = b"application/json" if is_json else b"application/octet-stream"
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
        if isinstance(body, TensorBody):
            headers.append((HEADER_LENGTH, str(body.json_size).encode()))
        facts = FACTS.get()
        if facts is not None:
            facts["status"] = status
            headers.append((b"x-request-id", facts["request_id"].encode()))
        if status == 503:
            headers.append((b"retry-after", b"1"))
        if self.pool.is_draining or status in (408, 413):
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    def refusal(self, scope: Any) -> bytes | None:
        """The whole response to a request for which there is no time, without a look at its body; None for routes that
        are answered whatever there is to do."""
        path = scope["path"].removeprefix(scope.get("root_path", "")).rstrip("/")
        if scope["method"] != "POST" or self._answering(path, b"") is None:
            return None
        self.pool.admission.n_shed += 1
        self.telemetry.request(path if path in openapi.ROUTES else "other", 503)
        named = request_id(scope["headers"])
        if self.access_log is not None:
            self.access_log.record(request_id=named, route=path, status=503, ms=0.0)
        end = b"connection: close\r\n" if self.pool.is_draining else b""
        body = self._in_body(path, overloaded().detail)
        return REFUSAL % (named.encode(), len(body), end, body)

    def _check_origin(self, headers: Headers) -> None:
        """Refuse pages of other sites, which a browser lets ask a server on the user's own machine."""
        if self.hosts is None:
            return
        for name, value in headers:
            if name in (b"host", b"origin") and not _is_ours(value.decode("latin-1"), self.hosts):
                raise RefusedError(
                    f"{shorten(value.decode('latin-1'))!r} is not a name of this server.",
                    f"header {name.decode()}",
                    "Use localhost or an address, or start the server with --allow-host.",
                    403,
                )


def create_app(
    plan: Plan | Menu,
    extractors: Iterable[Extractor] | None = None,
    *,
    read_row: Callable[[Any], Any] | None = None,
    budget: float | None = None,
    deadline_ms: float | None = None,
    max_in_flight: int = 256,
    max_documents: int = 1000,
    max_body: int = 1 << 20,
    max_buffered: int = 64 << 20,
    body_seconds: float = 10.0,
    allowed_hosts: Collection[str] | None = None,
    canaries: Sequence[Canary] = (),
    access_log: str | Path | None = None,
    model_name: str = "model",
    challengers: Sequence[tuple[Plan | Menu, float]] = (),
    shadows: Sequence[Plan | Menu] = (),
    spend_cap: SpendCap | None = None,
    traces_per_second: float = 100.0,
    clock: Clock = REAL,
) -> Application:
    """Make an ASGI application that answers by a plan.

    `app.state.pool` is where a new plan takes over (`take_over`); close it (`aclose`) if the application is mounted in
    another, which does not run its shutdown.

    Parameters
    ----------
    plan : Plan or Menu
        What decides; of a menu, the budget of each request chooses the plan.
    extractors : iterable of Extractor or None, default None
        What it calls; None: rows bring their features.
    read_row : callable or None, default None
        Turns the JSON of a row or a document into what the extractors take; raises `BadRow` for one that is no good.
    budget : float or None, default None
        For requests that do not say, in the plan's unit, 0 or more.
    deadline_ms : float or None, default None
        For requests that do not say, 0 or more; counts from when a request arrived.
    max_in_flight : int, default 256
        Requests answered at once, 1 or more; fewer while the server's own delays grow. The others get a 503.
    max_documents : int, default 1000
        Documents of one list, 1 or more.
    max_body : int, default 1048576
        Bytes of one request.
    max_buffered : int, default 67108864
        Bytes of all requests that have not arrived completely; beyond that the largest are refused.
    body_seconds : float, default 10.0
        Seconds that a request may take to arrive.
    allowed_hosts : collection of str or None, default None
        Names besides localhost and addresses that the headers Host and Origin may have; None: any.
    canaries : sequence of Canary, default ()
        Requests with expected answers that every new plan must pass.
    access_log : str, Path or None, default None
        A file to which each request adds a line of JSON; "-" is the standard output.
    model_name : str, default "model"
        What the routes of the Open Inference Protocol (/v2/models/{name}) call the plan.
    challengers : sequence of (Plan or Menu, float), default ()
        Other versions, each with the percent of requests that it answers, by a hash of the header `Miserly-Key` or,
        without one, of the body.
    shadows : sequence of Plan or Menu, default ()
        Versions that answer each single row too, after it was answered; the metrics compare them. They call the
        extractors again.
    spend_cap : SpendCap or None, default None
        The most that calls of extractors may cost over time. What it leaves no money for is not bought.
    traces_per_second : float, default 100.0
        Requests that are traced in a second at most, where OpenTelemetry's SDK is set up, 0 or more; inf: all that
        the SDK samples.
    clock : Clock, default the machine's
        Where time comes from.

    Returns
    -------
    Application
        An ASGI application.

    Examples
    --------
    >>> import miserly as ms
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> from miserly.serve import create_app
    >>> plan = Plan(ms.CostTable.per_feature({"age": 2.0}), RawFeatures([0]), (Node([0], [1.0]),), [0.0])
    >>> create_app(plan).state.pool.in_flight
    0
    """
    reader = None if read_row is None else RowReader(read_row, clock.now)
    if read_row is not None:
        canaries = [Canary(**{**_fields(canary), "row": read_row(canary.row)}) for canary in canaries]
    pool = RunnerPool(plan, extractors, max_in_flight, canaries, clock, spend_cap)
    bodies = Bodies(max_body, max_buffered, body_seconds)
    telemetry = Telemetry(pool, bodies)
    telemetry.router = router = Router(pool, challengers, shadows)

    def refuse(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
        status, detail = in_words(error, max_body)
        route = request.scope["path"]
        telemetry.request(route if route in openapi.ROUTES else "other", status)
        return _json(pool, msgspec.json.encode(ErrorAnswer(detail)), status)

    app = Application(
        [*_routes(pool, telemetry, budget), *_inference_routes(pool, model_name)],
        openapi_config=None,
        logging_config=None,
        request_max_body_size=max_body,
        exception_handlers={Exception: refuse},
        on_shutdown=[pool.aclose, router.aclose],
        state=State({"pool": pool, "telemetry": telemetry, "bodies": bodies}),
    )
    limits = RequestLimits(budget, deadline_ms, max_documents, model_name)
    app.tracing = Tracing(traces_per_second, extractors is not None or read_row is not None, clock.now)
    app.handler = RequestHandler(pool, telemetry, limits, reader, clock, router, app.tracing)
    app.pool, app.telemetry, app.bodies, app.hosts, app.clock = pool, telemetry, bodies, allowed_hosts, clock
    app.infer_path = f"/v2/models/{model_name}/infer"
    app.access_log = None if access_log is None else AccessLog(access_log)
    if app.access_log is not None:
        app.on_shutdown.append(app.access_log.close)
    return app


def _explains(query: bytes) -> bool:
    """Whether a request asks for contributions: ?explain=1 or ?explain=true."""
    return bool(query) and parse_qs(query.decode("latin-1")).get("explain", ["0"])[-1].lower() in ("1", "true")


def _fields(canary: Canary) -> dict[str, Any]:
    return {name: getattr(canary, name) for name in canary.__struct_fields__}


def _routes(pool: RunnerPool, telemetry: Telemetry, budget: float | None) -> list[Any]:
    """The routes that only say how things are."""

    @get("/v1/plan", sync_to_thread=False)
    def shown_plan() -> Response[bytes]:
        shown = openapi.plan(pool.active.plan, pool.active.menu, pool.active.version, pool.spend_cap)
        return _json(pool, msgspec.json.encode(shown))

    @get("/healthz", media_type=MediaType.TEXT, sync_to_thread=False)
    def healthz() -> str:
        return "alive"

    @get("/readyz", media_type=MediaType.TEXT, sync_to_thread=False)
    def readyz() -> Response[str]:
        if pool.is_draining:
            return Response("shutting down", status_code=503, media_type=MediaType.TEXT)
        return Response("ready", media_type=MediaType.TEXT)

    @get("/metrics")
    async def metrics() -> Response[bytes]:
        return Response(await telemetry.whole_page(), media_type="text/plain; version=0.0.4")

    @get("/openapi.json", sync_to_thread=False)
    def openapi_json() -> Response[bytes]:
        return _json(pool, msgspec.json.encode(openapi.description()))

    @get("/", media_type=MediaType.HTML, sync_to_thread=False)
    def page() -> Response[str]:
        plan, menu = pool.active.plan, pool.active.menu
        text, policy = form_page(plan, menu, openapi.summary(plan, menu), openapi.route_lines(), budget)
        return Response(text, media_type=MediaType.HTML, headers={**PAGE_HEADERS, "Content-Security-Policy": policy})

    return [shown_plan, healthz, readyz, metrics, openapi_json, page]


def _inference_routes(pool: RunnerPool, name: str) -> list[Any]:
    """The routes of the Open Inference Protocol that only say how things are."""

    @get(["/v2", "/v2/health/live"], sync_to_thread=False)
    def server() -> dict[str, Any]:
        return {"name": "miserly", "version": __version__, "extensions": ["binary_tensor_data"], "live": True}

    @get(["/v2/health/ready", f"/v2/models/{name}/ready"], sync_to_thread=False)
    def ready() -> Response[dict[str, Any]]:
        is_ready = not pool.is_draining
        return Response({"name": name, "ready": is_ready}, status_code=200 if is_ready else 503)

    @get(f"/v2/models/{name}", sync_to_thread=False)
    def model() -> Response[bytes]:
        active = pool.active
        return _json(pool, msgspec.json.encode(model_metadata(name, active.version, active.plan)))

    return [server, ready, model]


def _json(pool: RunnerPool, body: bytes, status: int = 200) -> Response[bytes]:
    """JSON; while the server shuts down, with the request to use another connection."""
    response = Response(body, status_code=status, media_type=MediaType.JSON)
    if pool.is_draining:
        response.headers["Connection"] = "close"
    return response


def in_words(error: Exception, max_body: int) -> tuple[int, ErrorDetail]:
    """The status and the words for whatever went wrong."""
    if isinstance(error, RefusedError):
        return error.status, error.detail
    if isinstance(error, HTTPException) and error.status_code == 413:
        remedy = "Send less at once, or start the server with a higher --max-body."
        return 413, ErrorDetail(f"The body has more than {max_body} bytes.", "body", remedy)
    if isinstance(error, HTTPException) and error.status_code < 500:
        detail = shorten(str(error.detail))
        return error.status_code, ErrorDetail(f"{detail}.", "request", "GET /openapi.json lists what there is.")
    log.error("A request failed.", exc_info=error)
    return 500, ErrorDetail("The server failed.", "server", "Its log has more.")


def _is_ours(said: str, hosts: Collection[str]) -> bool:
    """Whether a Host or an Origin names this server: localhost, an address, or one of the names it was given."""
    name = said.partition("://")[2] or said
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    if name.lower() == "localhost" or name.lower() in hosts:
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
