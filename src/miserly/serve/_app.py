"""The application: routes around a pool. It starts nothing by itself, so it can be mounted in any ASGI application."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from litestar import Litestar, MediaType, Request, Response, get, post
from litestar.datastructures import State
from litestar.exceptions import HTTPException

from miserly.plan import Plan
from miserly.runtime import Extractor
from miserly.serve import _openapi as openapi
from miserly.serve._messages import ErrorAnswer, Problem, RefusedError
from miserly.serve._metrics import Telemetry
from miserly.serve._request_handler import Limits, RequestHandler
from miserly.serve._runner_pool import RunnerPool

log = logging.getLogger("miserly.serve")
Asked = Request[Any, Any, Any]


def create_app(
    plan: Plan,
    extractors: Iterable[Extractor] | None = None,
    *,
    read_row: Callable[[Any], Any] | None = None,
    budget: float | None = None,
    deadline_ms: float | None = None,
    max_in_flight: int = 256,
    max_documents: int = 1000,
    max_body: int = 1 << 20,
) -> Litestar:
    """An ASGI application that answers by a plan. Without extractors, rows bring their features.

    `read_row` turns the JSON of a row or a document into what the extractors take, and raises a ValueError for one that
    is no good. `budget` and `deadline_ms` are for requests that do not say. At most `max_in_flight` requests are
    answered at once, the others get a 503; a body has at most `max_body` bytes, a list at most `max_documents`.
    `app.state.pool` is where a new plan takes over (`take_over`); close it (`aclose`) if the application is mounted in
    another, which does not run its shutdown.
    """
    pool = RunnerPool(plan, extractors, max_in_flight)
    telemetry = Telemetry(pool)
    handler = RequestHandler(pool, telemetry, Limits(budget, deadline_ms, max_documents), read_row)

    @post("/v1/predict", status_code=200)
    async def predict(request: Asked) -> Response[bytes]:
        return _sent(pool, await handler.predict(await request.body(), request.scope["headers"]))

    @post("/v1/rank", status_code=200)
    async def rank(request: Asked) -> Response[bytes]:
        return _sent(pool, await handler.rank(await request.body(), request.scope["headers"]))

    def refuse(request: Asked, error: Exception) -> Response[bytes]:
        status, problem = _in_words(error, max_body)
        route = request.scope["path"]
        telemetry.request(route if route in openapi.ROUTES else "other", status)
        response = _sent(pool, msgspec.json.encode(ErrorAnswer(problem)), status)
        if status == 503:
            response.headers["Retry-After"] = "1"
        return response

    return Litestar(
        [predict, rank, *_looks(pool, telemetry)],
        openapi_config=None,
        logging_config=None,
        request_max_body_size=max_body,
        exception_handlers={Exception: refuse},
        on_shutdown=[pool.aclose],
        state=State({"pool": pool, "telemetry": telemetry}),
    )


def _looks(pool: RunnerPool, telemetry: Telemetry) -> list[Any]:
    """The routes that only tell how things are."""

    @get("/v1/plan", sync_to_thread=False)
    def shown_plan() -> Response[bytes]:
        return _sent(pool, msgspec.json.encode(openapi.plan(pool.active.plan)))

    @get("/healthz", media_type=MediaType.TEXT, sync_to_thread=False)
    def healthz() -> str:
        return "alive"

    @get("/readyz", media_type=MediaType.TEXT, sync_to_thread=False)
    def readyz() -> Response[str]:
        if pool.is_draining:
            return Response("shutting down", status_code=503, media_type=MediaType.TEXT)
        return Response("ready", media_type=MediaType.TEXT)

    @get("/metrics", sync_to_thread=False)
    def metrics() -> Response[bytes]:
        return Response(telemetry.page(), media_type="text/plain; version=0.0.4")

    @get("/openapi.json", sync_to_thread=False)
    def openapi_json() -> Response[bytes]:
        return _sent(pool, msgspec.json.encode(openapi.description()))

    @get("/", media_type=MediaType.HTML, sync_to_thread=False)
    def page() -> str:
        return openapi.page(pool.active.plan.summary())

    return [shown_plan, healthz, readyz, metrics, openapi_json, page]


def _sent(pool: RunnerPool, body: bytes, status: int = 200) -> Response[bytes]:
    """JSON; while the server shuts down, with the request to connect elsewhere."""
    response = Response(body, status_code=status, media_type=MediaType.JSON)
    if pool.is_draining:
        response.headers["Connection"] = "close"
    return response


def _in_words(error: Exception, max_body: int) -> tuple[int, Problem]:
    """The status and the words for whatever went wrong."""
    if isinstance(error, RefusedError):
        return error.status, error.problem
    if isinstance(error, HTTPException) and error.status_code == 413:
        return 413, Problem(
            f"The body has more than {max_body} bytes.", "body", "Send less at once, or start the server with more."
        )
    if isinstance(error, HTTPException) and error.status_code < 500:
        return error.status_code, Problem(f"{error.detail}.", "request", "GET /openapi.json tells what there is.")
    log.error("A request failed.", exc_info=error)
    return 500, Problem("The server failed.", "server", "Its log tells more.")
