"""Spans of OpenTelemetry: a request below the client's, stages, a span for each acquisition; nothing without an SDK."""

import time

import pytest
from litestar.testing import TestClient

import miserly as ms
from miserly.plan import Node, Plan, RawFeatures
from miserly.serve import _tracing as tracing
from miserly.serve import create_app

trace = pytest.importorskip("opentelemetry.trace", reason="opentelemetry is not installed")
sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="opentelemetry-sdk is not installed")
export = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")

CLIENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
COSTS = ms.CostTable(["a", "b", "c"], needs={"a": ["x"], "b": ["y"], "c": ["z"]}, prices={"x": 1.0, "y": 2.0, "z": 4.0})


def plan():
    """First one acquisition, then two at once."""
    nodes = (Node([0], [1.0], passed=1), Node([1, 2], [1.0, 1.0]))
    return Plan(COSTS, RawFeatures([0, 1, 2]), nodes, [0.0], means=[0.0, 0.0, 0.0])


def extractors(seen):
    def made(name, feature):
        @ms.extractor(name, yields=[feature], timeout=5.0)
        def function(row):
            seen.append(trace.get_current_span().get_span_context().trace_id)
            time.sleep(0.002)
            if row.get("fail") == name:
                raise ValueError("broken")
            return row[feature]

        return function

    return [made("x", "a"), made("y", "b"), made("z", "c")]


@pytest.fixture
def spans(monkeypatch):
    """The spans that an SDK would export; the API's global provider is put back."""
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    exporter, provider = export.InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing.trace, "get_tracer_provider", lambda: provider)
    return exporter


def test_spans_of_a_request(spans):
    seen = []
    row = {"a": 1.0, "b": 2.0, "c": 4.0}
    with TestClient(create_app(plan(), extractors(seen))) as client:
        answer = client.post("/v1/predict", json={"row": row}, headers={"traceparent": CLIENT, "X-Request-Id": "r1"})
    assert answer.json()["cost"] == 7.0
    found = {span.name: span for span in spans.get_finished_spans()}
    assert set(found) == {"POST /v1/predict", "x", "stage 1", "y", "z"}
    request = found["POST /v1/predict"]
    assert format(request.context.trace_id, "032x") == CLIENT.split("-")[1]
    assert format(request.parent.span_id, "016x") == CLIENT.split("-")[2]
    assert request.kind is trace.SpanKind.SERVER
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["http.request.id"] == "r1"
    assert request.attributes["miserly.cost"] == 7.0
    assert request.attributes["miserly.stopped"] == "answered"
    assert found["x"].parent.span_id == found["stage 1"].parent.span_id == request.context.span_id
    assert found["y"].parent.span_id == found["z"].parent.span_id == found["stage 1"].context.span_id
    assert {name: found[name].attributes["miserly.price"] for name in "xyz"} == {"x": 1.0, "y": 2.0, "z": 4.0}
    assert {found[name].attributes["miserly.outcome"] for name in "xyz"} == {"ok"}
    for name in ("x", "stage 1", "y", "z"):
        assert request.start_time <= found[name].start_time < found[name].end_time <= request.end_time
    assert found["x"].end_time <= found["stage 1"].start_time
    for name in "xyz":
        assert found[name].end_time - found[name].start_time >= 2_000_000
    assert seen == [request.context.trace_id] * 3, "an extractor runs inside the request, also on its thread"


def test_spans_of_failures_and_of_several_rows(spans):
    rows = [{"a": 1.0, "b": 2.0, "c": 4.0}, {"a": 1.0, "b": 2.0, "c": 4.0, "fail": "y"}]
    with TestClient(create_app(plan(), extractors([]))) as client:
        assert client.post("/v1/predict", json={"row": rows[1]}).status_code == 200
        failed = {span.name: span for span in spans.get_finished_spans()}
        spans.clear()
        assert client.post("/v1/predict", json={"rows": rows}).status_code == 200
        assert client.post("/v1/predict", content=b"no").status_code == 400
    assert failed["y"].status.status_code is trace.StatusCode.ERROR
    assert "broken" in failed["y"].status.description
    assert failed["POST /v1/predict"].parent is None
    names = sorted(span.name for span in spans.get_finished_spans())
    assert names == ["POST /v1/predict", "POST /v1/predict", "x", "y", "z"]
    (y,) = [span for span in spans.get_finished_spans() if span.name == "y"]
    assert y.attributes["miserly.rows"] == 2
    assert y.status.status_code is trace.StatusCode.ERROR


def test_rows_at_hand_have_the_request_only(spans):
    """Nothing is called for them, so there is nothing to time."""
    with TestClient(create_app(plan())) as client:
        client.post("/v1/predict", json={"row": {"a": 1.0, "b": 2.0, "c": 4.0}})
    (span,) = spans.get_finished_spans()
    assert span.attributes["miserly.cost"] == 7.0


def test_a_request_that_is_not_sampled_has_no_spans(spans):
    with TestClient(create_app(plan(), extractors([]))) as client:
        headers = {"traceparent": CLIENT[:-1] + "0"}
        client.post("/v1/predict", json={"row": {"a": 1.0, "b": 2.0, "c": 4.0}}, headers=headers)
    assert spans.get_finished_spans() == ()


def test_a_busy_server_traces_some_requests_only(spans):
    """The rest tell what runs inside them not to trace either, so that no trace begins in the middle."""
    contexts, now = [], [0.0]

    @ms.extractor("x", yields=["a"])
    def look(row):
        contexts.append(trace.get_current_span().get_span_context())
        return 1.0

    one = Plan(COSTS, RawFeatures([0]), (Node([0], [1.0]),), [0.0])
    app = create_app(one, [look], traces_per_second=2.0)
    app.tracing._now, app.tracing._filled = lambda: now[0], 0.0
    with TestClient(app) as client:
        for now[0] in (0.0, 0.0, 0.0, 0.4, 0.5, 0.6):
            client.post("/v1/predict", json={"row": {}}, headers={"traceparent": CLIENT})
    requests = [span for span in spans.get_finished_spans() if span.name == "POST /v1/predict"]
    assert len(requests) == 3
    assert [context.trace_flags.sampled for context in contexts] == [True, True, False, False, True, False]
    assert {format(context.trace_id, "032x") for context in contexts} == {CLIENT.split("-")[1]}


def test_what_is_not_sampled_does_not_count(spans):
    app = create_app(plan(), extractors([]), traces_per_second=1.0)
    app.tracing._now, app.tracing._filled = lambda: 0.0, 0.0
    with TestClient(app) as client:
        for flag in "0010":
            headers = {"traceparent": CLIENT[:-1] + flag}
            client.post("/v1/predict", json={"row": {"a": 1.0, "b": 2.0, "c": 4.0}}, headers=headers)
    assert [span.name for span in spans.get_finished_spans()].count("POST /v1/predict") == 1
    with pytest.raises(ValueError, match="traces_per_second must be 0 or more"):
        create_app(plan(), traces_per_second=-1.0)


def test_nothing_without_an_sdk_or_the_package(monkeypatch):
    app = create_app(plan())
    assert not app.tracing.is_on, "the API alone gives a provider that does nothing"
    monkeypatch.setattr(tracing, "trace", None)
    assert not app.tracing.is_on
    with TestClient(app) as client:
        assert client.post("/v1/predict", json={"row": {"a": 1.0, "b": 2.0, "c": 4.0}}).json()["cost"] == 7.0
