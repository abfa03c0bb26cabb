"""OpenTelemetry spans: the request, stages, and one for each acquisition. Nothing is done while no SDK is set up.

Only the API package is needed (the extra `otel`). The operator sets up an SDK, as `opentelemetry-instrument` does or in
the module of the extractors. Spans of calls are made after the answer, from the times that were noted anyway. A span
takes the SDK tens of microseconds, so a busy server traces some of its requests only: so many a second.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from itertools import groupby
from time import perf_counter, time_ns
from typing import Any

from miserly import __version__
from miserly.runtime import Answer, Call
from miserly.serve._access_log import FACTS


def _optional(name: str) -> Any:
    """A module of OpenTelemetry's API, or None where it is not installed."""
    try:
        return import_module(f"opentelemetry.{name}")
    except ImportError:
        return None


contexts, propagate, trace = map(_optional, ("context", "propagate", "trace"))
Headers = Iterable[tuple[bytes, bytes]]
GOOD = ("ok", "cached")
SHOWN = {  # the facts of a request that its span has; each attribute takes a microsecond
    "request_id": "http.request.id",
    "status": "http.response.status_code",
    "version": "miserly.version",
    "cost": "miserly.cost",
    "stopped": "miserly.stopped",
    "rows": "miserly.rows",
}
EMPTY: Any = None if contexts is None else contexts.Context()


class _HeaderGetter:
    """Finds a header among those of an ASGI scope."""

    def get(self, carrier: Sequence[tuple[bytes, bytes]], key: str) -> list[str] | None:
        name = key.lower().encode("latin-1")
        return [value.decode("latin-1") for found, value in carrier if found == name] or None

    def keys(self, carrier: Sequence[tuple[bytes, bytes]]) -> list[str]:
        return [name.decode("latin-1") for name, _ in carrier]


GETTER = _HeaderGetter()


class Tracing:
    """Makes the spans of an application's requests, where OpenTelemetry's SDK is set up.

    Parameters
    ----------
    per_second : float, default inf
        Requests that are traced in a second at most, after a quiet second as many at once; 0 or more.
    runs_code : bool, default True
        Whether code of the operator's runs inside a request, whose own spans belong to it.
    now : callable, default time.perf_counter
        Gives the time in seconds.
    """

    def __init__(
        self, per_second: float = math.inf, runs_code: bool = True, now: Callable[[], float] = perf_counter
    ) -> None:
        if not per_second >= 0:
            raise ValueError(f"traces_per_second must be 0 or more, got {per_second!r}.")
        self._per_second, self._runs_code, self._now = per_second, runs_code, now
        self._left, self._filled = max(1.0, per_second), now()
        self._provider: Any = None
        self._tracer: Any = None
        self._fields: set[bytes] = set()  # headers by which a client says its span

    @property
    def is_on(self) -> bool:
        """Whether spans go anywhere. The SDK may be set up after the application was made."""
        if trace is None:
            return False
        provider = trace.get_tracer_provider()
        if provider is not self._provider:
            is_real = not isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider)
            self._provider = provider
            self._tracer = provider.get_tracer("miserly", __version__) if is_real else None
            self._fields = {name.lower().encode() for name in propagate.get_global_textmap().fields}
        return self._tracer is not None

    def begin(self, route: str, headers: Headers, seconds_ago: float) -> tuple[Any, Any] | None:
        """Begin a span of the request, a child of the client's span by its `traceparent`; extractors run inside it. The
        result goes to `end`."""
        may = self._may()
        if not may and not self._runs_code:
            return None
        outer = EMPTY
        if any(name in self._fields for name, _ in headers):
            outer = propagate.extract(headers, outer, GETTER)
        if may:
            began = time_ns() - round(1e9 * seconds_ago)
            span = self._tracer.start_span(f"POST {route}", outer, trace.SpanKind.SERVER, start_time=began)
            self._left -= span.is_recording()
        else:
            span = _left_out(outer)
        return span, contexts.attach(trace.set_span_in_context(span, outer))

    def _may(self) -> bool:
        """Whether one more request may be traced now."""
        if self._per_second == math.inf:
            return True
        now = self._now()
        self._left = min(max(1.0, self._per_second), self._left + (now - self._filled) * self._per_second)
        self._filled = now
        return self._per_second > 0 and self._left >= 1.0

    def end(self, begun: tuple[Any, Any]) -> None:
        """End the span of the request, with what the access log knows of it."""
        span, token = begun
        contexts.detach(token)
        if span.is_recording():
            facts = FACTS.get() or {}
            span.set_attributes({name: facts[key] for key, name in SHOWN.items() if facts.get(key) is not None})
            if facts.get("status", 0) >= 500:
                span.set_status(trace.StatusCode.ERROR)
        span.end()

    def calls(self, answers: Sequence[Answer]) -> None:
        """Spans of the calls behind answers, below the present request: of one row each call, of several each
        acquisition once, from its first call to its last."""
        if self._tracer is None or not answers:
            return
        parent = contexts.get_current()
        if not trace.get_current_span(parent).is_recording():
            return
        now = time_ns()
        if len(answers) == 1:
            answer = answers[0]
            began = now - round(1e9 * answer.elapsed)
            for stage, grouped in groupby(sorted(answer.calls, key=_stage), _stage):
                self._stage(stage, list(grouped), began, parent)
        else:
            self._many(answers, now, parent)

    def _stage(self, number: int, calls: list[Call], origin: int, parent: Any) -> None:
        """The calls of one purchase; a span around them if there are several."""
        around = None
        if len(calls) > 1:
            first, last = min(c.began for c in calls), max(c.began + c.seconds for c in calls)
            around = self._tracer.start_span(f"stage {number}", parent, start_time=origin + round(1e9 * first))
            parent = trace.set_span_in_context(around, parent)
        for call in calls:
            begins = origin + round(1e9 * call.began)
            facts = {"miserly.stage": number, "miserly.price": call.price, "miserly.outcome": call.outcome}
            self._call(call.name, facts, begins, begins + round(1e9 * call.seconds), parent)
        if around is not None:
            around.end(end_time=origin + round(1e9 * last))

    def _call(self, name: str, facts: dict[str, Any], begins: int, ends: int, parent: Any) -> None:
        span = self._tracer.start_span(name, parent, attributes=facts, start_time=begins)
        if facts["miserly.outcome"] not in GOOD:
            span.set_status(trace.StatusCode.ERROR, facts["miserly.outcome"])
        span.end(end_time=ends)

    def _many(self, answers: Sequence[Answer], now: int, parent: Any) -> None:
        found: dict[str, list[tuple[float, Call]]] = {}
        longest = max(answer.elapsed for answer in answers)
        for answer in answers:
            for call in answer.calls:
                found.setdefault(call.name, []).append((longest - answer.elapsed, call))
        origin = now - round(1e9 * longest)
        for name, calls in found.items():
            outcomes = Counter(call.outcome for _, call in calls)
            wrong = next((outcome for outcome in outcomes if outcome not in GOOD), "ok")
            facts = {"miserly.rows": len(calls), "miserly.price": calls[0][1].price, "miserly.outcome": wrong}
            first = min(late + call.began for late, call in calls)
            last = max(late + call.began + call.seconds for late, call in calls)
            self._call(name, facts, origin + round(1e9 * first), origin + round(1e9 * last), parent)


def _left_out(outer: Any) -> Any:
    """The span of a request that is not traced: one that tells code inside it not to trace either."""
    client = trace.get_current_span(outer).get_span_context()
    known = client if client.is_valid else None
    trace_id = known.trace_id if known else random.getrandbits(128) or 1
    span_id = known.span_id if known else random.getrandbits(64) or 1
    return trace.NonRecordingSpan(trace.SpanContext(trace_id, span_id, is_remote=known is not None))


def _stage(call: Call) -> int:
    return call.stage
