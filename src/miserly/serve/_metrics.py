"""Metrics for Prometheus: plain tallies as requests come, made into metrics when somebody looks.

Requests are counted on the event loop only, so that nothing is locked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from miserly.runtime import PER_SECOND, Answer, Call, SpendCap
from miserly.serve._body import Bodies
from miserly.serve._routing import Router
from miserly.serve._runner_pool import ActivePlan, RunnerPool

SECONDS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
MOST_VERSIONS = 16  # versions whose figures are shown
MEMORY = 0.999  # how much less a call weighs than the next one in the drift: about the last thousand count


class Times:
    """A histogram of seconds."""

    __slots__ = ("_counts", "total")

    def __init__(self) -> None:
        self._counts = [0] * (len(SECONDS) + 1)
        self.total = 0.0

    def count(self, seconds: float) -> None:
        """One more."""
        self._counts[bisect_left(SECONDS, seconds)] += 1
        self.total += seconds

    @property
    def buckets(self) -> list[tuple[str, float]]:
        """As Prometheus has them: how many took at most so long."""
        return list(zip([*map(str, SECONDS), "+Inf"], map(float, accumulate(self._counts))))


class Calls:
    """The calls of one extractor: how they ended, how long they took, and what they took for one priced unit lately."""

    __slots__ = ("_priced", "_seconds", "outcomes", "times")

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.times = Times()
        self._seconds = self._priced = 0.0

    def count(self, call: Call) -> None:
        """One more."""
        outcome = call.outcome
        if outcome == "ok":
            self._seconds = MEMORY * self._seconds + call.seconds
            self._priced = MEMORY * self._priced + call.price
        elif outcome == "running":
            outcome = "abandoned"
        elif outcome not in ("cached", "waiting"):
            outcome = "failed"
        self.outcomes[outcome] += 1
        if outcome not in ("cached", "waiting"):
            self.times.count(call.seconds)

    @property
    def drift(self) -> float | None:
        """Measured seconds for a priced unit."""
        return self._seconds / self._priced if self._priced else None


class VersionTally:
    """What one version of the plan answered: reasons, predicted classes, cost and confidence."""

    __slots__ = ("classes", "confidence", "cost", "reasons")

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()
        self.classes: Counter[str] = Counter()
        self.cost = self.confidence = 0.0

    def count(self, answer: Answer) -> None:
        """One more."""
        self.reasons[answer.stopped] += 1
        self.cost += answer.cost
        if answer.probabilities is not None:
            self.classes[str(answer.value)] += 1
            self.confidence += float(answer.probabilities.max())


class Telemetry:
    """The tallies of one application.

    Parameters
    ----------
    pool : RunnerPool
        Whose requests, places and breakers are shown.
    bodies : Bodies
        Whose bytes are shown.
    """

    def __init__(self, pool: RunnerPool, bodies: Bodies) -> None:
        self._pool, self._bodies = pool, bodies
        self.everyone: Callable[[], Awaitable[bytes | None]] | None = None  # the metrics of all processes
        self.n_stalls = 0
        self.n_connections_refused = 0
        self.loop_lag = 0.0
        self._requests: Counter[tuple[str, int]] = Counter()
        self._took: dict[str, Times] = {}
        self._answers: Counter[str] = Counter()
        self._versions: dict[str, VersionTally] = {}
        self._reloads: Counter[str] = Counter()
        self._calls: dict[str, Calls] = {}
        self._priced = self._measured = self._paid = 0.0
        self.router: Router | None = None
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def request(self, route: str, status: int, seconds: float | None = None) -> None:
        """A request was answered, in so many seconds, or refused."""
        self._requests[route, status] += 1
        if seconds is not None:
            (self._took.get(route) or self._took.setdefault(route, Times())).count(seconds)

    def answers(self, answers: Iterable[Answer], version: str = "", has_calls: bool = True) -> None:
        """Rows were answered by a version of the plan; without extractors nothing was called for them."""
        calls = self._calls
        tally = self._versions.get(version) or self._tally(version)
        for answer in answers:
            tally.count(answer)
            self._priced += answer.cost
            self._answers[answer.stopped] += 1
            for call in answer.calls if has_calls else ():
                self._measured += call.seconds
                self._paid += call.paid or 0.0
                (calls.get(call.name) or calls.setdefault(call.name, Calls())).count(call)

    def _tally(self, version: str) -> VersionTally:
        """The tally of a version that is new here; only the last ones are kept, or labels would grow without end."""
        while len(self._versions) >= MOST_VERSIONS:
            del self._versions[next(iter(self._versions))]
        return self._versions.setdefault(version, VersionTally())

    def reload(self, outcome: str) -> None:
        """A new plan was taken or refused."""
        self._reloads[outcome] += 1

    def page(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self._registry)

    async def whole_page(self) -> bytes:
        """The same of all processes that serve together, if there are others."""
        everyone = None if self.everyone is None else await self.everyone()
        return self.page() if everyone is None else everyone

    def collect(self) -> Iterator[Metric]:
        """Everything as metrics."""
        runner = self._pool.active.runner
        yield _counts("requests", "Requests by route and status", ("route", "status"), self._requests)
        yield _times("request_seconds", "Time to answer", "route", self._took)
        yield _counts("answers", "Rows answered, by the reason why they stopped", ("stopped",), self._answers)
        yield from _by_version(self._versions)
        if self.router is not None:
            said = "Rows that shadows answered beside: same, other, failed, skipped"
            yield _counts("shadow_answers", said, ("version", "shadow", "compared"), self.router.compared)
            yield _counts("shadow_cost_priced", "What shadows cost", ("shadow",), self.router.shadow_cost)
        yield from _drift(self._pool.active)
        yield CounterMetricFamily("miserly_cost_priced", "What the rows cost, in the plan's unit", self._priced)
        yield CounterMetricFamily("miserly_cost_measured_seconds", "What the calls for them took", self._measured)
        yield CounterMetricFamily("miserly_cost_paid", "What calls really cost, where that is counted", self._paid)
        yield from _spending(self._pool.spend_cap)
        outcomes = {(e, outcome): n for e, calls in self._calls.items() for outcome, n in calls.outcomes.items()}
        said = "Calls by outcome: ok, cached, failed, abandoned, waiting"
        yield _counts("extractor_calls", said, ("extractor", "outcome"), outcomes)
        times = {e: calls.times for e, calls in self._calls.items()}
        yield _times("extractor_seconds", "Time of a call, its share for one row", "extractor", times)
        rate = PER_SECOND.get(self._pool.active.plan.costs.unit.lower())
        found = {e: calls.drift for e, calls in self._calls.items()}
        drifts = {e: drift * rate for e, drift in found.items() if drift is not None and rate is not None}
        yield _gauges("price_drift", "Measured time over its price, lately", "extractor", drifts)
        yield _gauges("breaker_open", "1 if an extractor is left alone", "extractor", runner.left_alone)
        yield GaugeMetricFamily("miserly_calls_running", "Calls running, also abandoned ones", runner.running)
        yield GaugeMetricFamily("miserly_requests_in_flight", "Requests being answered", self._pool.in_flight)
        yield _counts(
            "extractor_failures", "Failures by cause: error, timeout", ("extractor", "cause"), runner.failure_causes
        )
        admission = self._pool.admission
        yield GaugeMetricFamily("miserly_requests_limit", "Requests that may be answered at once now", admission.limit)
        yield GaugeMetricFamily("miserly_requests_waiting", "Requests that wait for a place", admission.n_waiting)
        yield CounterMetricFamily("miserly_requests_shed", "Requests refused for lack of time", admission.n_shed)
        yield GaugeMetricFamily("miserly_body_bytes", "Bytes of requests not yet complete", self._bodies.n_buffered)
        yield CounterMetricFamily(
            "miserly_connections_refused", "Connections closed because there were too many", self.n_connections_refused
        )
        yield GaugeMetricFamily("miserly_loop_lag_seconds", "How late the event loop is, lately", self.loop_lag)
        yield CounterMetricFamily("miserly_loop_stalls", "Times that it was late by a second", self.n_stalls)
        yield CounterMetricFamily("miserly_plan_rollbacks", "New plans that were taken back", self._pool.n_rollbacks)
        yield _counts("plan_reloads", "New plans: taken, refused", ("outcome",), self._reloads)


def _counts(name: str, text: str, labels: tuple[str, ...], counts: Mapping[Any, float]) -> Metric:
    family = CounterMetricFamily(f"miserly_{name}", text, labels=labels)
    for key, count in counts.items():
        family.add_metric([str(part) for part in (key if isinstance(key, tuple) else (key,))], count)
    return family


def _spending(cap: SpendCap | None) -> Iterator[Metric]:
    if cap is None:
        return
    found = cap.status()
    yield _gauges("spend_limit", "The most that may be spent", "limit", {s.limit: s.amount for s in found})
    yield _gauges("spend_spent", "What counts of it now", "limit", {s.limit: s.spent for s in found})
    yield GaugeMetricFamily("miserly_spend_store_up", "1 if spending can be counted", float(bool(found)))
    yield _counts("spend_refused", "Calls for which no money was left", ("extractor",), cap.refused)
    yield CounterMetricFamily("miserly_spend_overrun", "What calls cost beyond what was reserved", cap.overrun)


def _by_version(tallies: Mapping[str, VersionTally]) -> Iterator[Metric]:
    reasons = {(v, reason): n for v, tally in tallies.items() for reason, n in tally.reasons.items()}
    yield _counts("version_answers", "Rows answered, by version and reason", ("version", "stopped"), reasons)
    classes = {(v, value): n for v, tally in tallies.items() for value, n in tally.classes.items()}
    yield _counts("version_predictions", "Predicted classes, by version", ("version", "value"), classes)
    costs = {v: tally.cost for v, tally in tallies.items()}
    yield _counts("version_cost_priced", "What rows cost, by version", ("version",), costs)
    sums = {v: tally.confidence for v, tally in tallies.items() if tally.classes}
    yield _counts("version_confidence", "Sum of the largest probabilities, by version", ("version",), sums)


def _drift(active: ActivePlan) -> Iterator[Metric]:
    watch, version = active.drift, active.version
    changes = {(version, change.feature): change for change in watch.changes()}
    labels = ("version", "feature")
    said = "Population stability index against the training rows: 0.1 moderate, 0.25 large"
    yield _gauges("feature_drift", said, labels, {key: change.stability for key, change in changes.items()})
    said = "Share of missing values less that of the training rows"
    yield _gauges("feature_missing_change", said, labels, {key: change.missing for key, change in changes.items()})
    index = watch.score_change()
    said = "Population stability index of scores against the validation rows"
    yield _gauges("score_drift", said, "version", {} if index is None else {version: index})
    said = "What rows cost for which a mean was promised"
    yield _counts("cost_compared", said, ("version",), {version: watch.cost_compared})
    yield _counts("cost_promised", "What was promised for them", ("version",), {version: watch.cost_promised})


def _times(name: str, text: str, label: str, times: dict[str, Times]) -> Metric:
    family = HistogramMetricFamily(f"miserly_{name}", text, labels=[label])
    for key, found in times.items():
        family.add_metric([key], found.buckets, found.total)
    return family


def _gauges(name: str, text: str, label: str | tuple[str, ...], values: Mapping[Any, float]) -> Metric:
    family = GaugeMetricFamily(f"miserly_{name}", text, labels=[label] if isinstance(label, str) else label)
    for key, value in values.items():
        family.add_metric([key] if isinstance(key, str) else list(key), float(value))
    return family
