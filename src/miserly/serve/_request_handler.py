"""What the routes that answer do, from the bytes of a request to the bytes of its answer."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from miserly.runtime import REAL, Answer, Clock, advise
from miserly.serve._access_log import note
from miserly.serve._admission import overloaded
from miserly.serve._inference import InferAnswer, InferRequest, infer_answer, rows_of, tensors_of
from miserly.serve._messages import (
    NextRequest,
    PredictRequest,
    RankRequest,
    RefusedError,
    many,
    next_purchase,
    prediction,
    ranking,
    read,
    read_header,
    shorten,
)
from miserly.serve._metrics import Telemetry
from miserly.serve._routing import Router
from miserly.serve._rows import UNREAD, RowReader
from miserly.serve._runner_pool import ActivePlan, RunnerPool
from miserly.serve._tensors import json_size, read_binary
from miserly.serve._tracing import Tracing

Headers = Iterable[tuple[bytes, bytes]]
QUEUED = 0.005  # seconds: a request that waited less before it was read was not held up by the server
MANY = 50  # documents; more are read with pauses for other requests
R = TypeVar("R", PredictRequest, RankRequest)


@dataclass(frozen=True)
class RequestLimits:
    """What a request gets that does not say, and how many documents it may have."""

    budget: float | None
    deadline_ms: float | None
    max_documents: int
    model_name: str = "model"


class RequestHandler:
    """Answers requests by the plan at work.

    Parameters
    ----------
    pool : RunnerPool
        Has the plan and the places.
    telemetry : Telemetry
        Counts what happens.
    limits : RequestLimits
        For requests that do not say.
    reader : RowReader or None
        Turns what JSON can say into what the extractors take; None: nothing need be done.
    clock : Clock, default the machine's
        Where time comes from.
    router : Router or None, default None
        Chooses the version that answers; None: the pool's plan answers all.
    tracing : Tracing or None, default None
        Makes spans of the calls of extractors; None: nothing does.
    """

    def __init__(
        self,
        pool: RunnerPool,
        telemetry: Telemetry,
        limits: RequestLimits,
        reader: RowReader | None,
        clock: Clock = REAL,
        router: Router | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self._tracing = tracing or Tracing()
        self._router = router or Router(pool)
        self._pool, self._telemetry, self._limits, self._reader = pool, telemetry, limits, reader
        self._now, self._beside = clock.now, clock.beside
        self._predictions = msgspec.json.Decoder(PredictRequest)
        self._rankings = msgspec.json.Decoder(RankRequest)
        self._questions = msgspec.json.Decoder(NextRequest)
        self._inferences = msgspec.json.Decoder(InferRequest)
        self._encode = msgspec.json.Encoder().encode

    async def predict(
        self, body: bytes, headers: Headers, arrived: float, waited: float, explain: bool = False
    ) -> bytes:
        """Answer one row, or several; the deadline counts from when the request `arrived`, and it `waited` until it was
        looked at. `explain` adds what each purchase moved."""
        asked = read(self._predictions, body)
        budget, until = self._bounds(asked, headers, arrived, waited)
        if asked.rows is not None:
            answers, active = await self._predict_many(asked, budget, until, body, headers)
            each = [active.check.unknown_words(row) for row in asked.rows] if active.has_rows_at_hand else []
            sent = self._encode(many(answers, active.version, explain, each))
            self._telemetry.request("/v1/predict", 200, self._now() - arrived)
            return sent
        await self._pool.admission.enter()
        pool, delay = self._router.choose(body, headers), None
        active = pool.begin()
        try:
            _check_rows(active)
            given = active.check.features(asked.features)
            row = await self._row(active, asked.row, "row", until)
            answer = await self._answer(active, row, budget, until, given)
            self._look(active, row)
            words = active.check.unknown_words(row if active.has_rows_at_hand else None, given)
            sent = self._encode(prediction(answer, active.version, explain, words))
            delay = self._now() - arrived - min(answer.elapsed, answer.measured)
        except Exception as error:
            self._note_error(pool, active, error)
            raise
        finally:
            pool.end(active)
            self._pool.admission.leave(delay)
        self._router.compare(answer, active.version, lambda other: self._answer(other, row, budget, None, given))
        note(
            version=active.version,
            rows=1,
            budget=budget,
            cost=answer.cost,
            stopped=answer.stopped,
            value=_plain(answer.value),
        )
        if answer.probabilities is not None:
            note(confidence=float(answer.probabilities.max()))
        self._count([answer], active, budget)
        self._telemetry.request("/v1/predict", 200, self._now() - arrived)
        return sent

    async def _predict_many(
        self, asked: PredictRequest, budget: Any, until: float | None, body: bytes, headers: Headers
    ) -> tuple[list[Answer], ActivePlan]:
        """Answer several rows together, on a thread: extractors declared with `many` are called once for all."""
        await self._pool.admission.enter()
        pool = self._router.choose(body, headers)
        active = pool.begin()
        try:
            _check_rows(active)
            rows = await self._rows(active, asked, until)
            left = None if until is None else max(0.0, until - self._now())
            answers = await self._beside(lambda: active.runner.predict_many(rows, budget, left))
            for row in rows:
                self._look(active, row)
        except Exception as error:
            self._note_error(pool, active, error)
            raise
        finally:
            pool.end(active)
            self._pool.admission.leave(None)
        note(version=active.version, rows=len(rows), budget=budget, cost=math.fsum(answer.cost for answer in answers))
        self._count(answers, active, budget)
        return answers, active

    async def infer(self, body: bytes, headers: Headers, arrived: float, waited: float) -> bytes:
        """Answer tensors of the Open Inference Protocol."""
        size = json_size(headers, body)
        sent = read(self._inferences, body if size is None else body[:size])
        read_binary(sent.inputs, b"" if size is None else body[size:])
        asked = rows_of(sent, self._pool.active.plan)
        budget, until = self._bounds(asked, headers, arrived, waited)
        answers, active = await self._predict_many(asked, budget, until, body, headers)
        outputs = tensors_of(answers, active.plan)
        self._telemetry.request("/v2/infer", 200, self._now() - arrived)
        return infer_answer(sent, InferAnswer(self._limits.model_name, active.version, sent.id, outputs))

    async def _rows(self, active: ActivePlan, asked: PredictRequest, until: float | None) -> list[Any]:
        """The rows of a request as extractors take them."""
        given = asked.rows or []
        if asked.row is not None or asked.features:
            raise RefusedError("Got both rows and a row.", "rows", "Send `row` with `features`, or `rows` alone.")
        if len(given) > self._limits.max_documents:
            raise RefusedError(
                f"A request has at most {self._limits.max_documents} rows, got {len(given)}.",
                "rows",
                "Send fewer at once, or start the server with a higher --max-documents.",
            )
        rows = []
        for i, row in enumerate(given):
            found = await self._row(active, row, f"rows[{i}]", until)
            if found is UNREAD:
                raise RefusedError("The rows were not read in time.", f"rows[{i}]", "Send fewer at once.", 503)
            rows.append(found)
            if i % MANY == MANY - 1:
                await asyncio.sleep(0)
        return rows

    async def rank(self, body: bytes, headers: Headers, arrived: float, waited: float) -> bytes:
        """Rank a list; its deadline counts from when it `arrived`, and it `waited` until it was looked at."""
        asked = read(self._rankings, body)
        budget, until = self._bounds(asked, headers, arrived, waited)
        await self._pool.admission.enter()
        pool = self._router.choose(body, headers)
        active = pool.begin()
        try:
            await self._check_list(active, asked)
            documents = await self._documents(active, asked, until)
            left = None if until is None else max(0.0, until - self._now())
            ranked = await active.runner.arank(asked.query, documents, budget, left, asked.features)
            sent = self._encode(ranking(ranked, active.version))
        except Exception as error:
            self._note_error(pool, active, error)
            raise
        finally:
            pool.end(active)
            self._pool.admission.leave(None)
        note(version=active.version, rows=len(documents), budget=budget, cost=ranked.cost)
        self._count(ranked.answers, active, budget)
        self._telemetry.request("/v1/rank", 200, self._now() - arrived)
        return sent

    async def advise(self, body: bytes, headers: Headers, arrived: float, waited: float) -> bytes:
        """Say what to buy next for a row of which something is known."""
        asked = read(self._questions, body)
        budget = _smaller(asked.budget, read_header(headers, b"miserly-budget"), self._limits.budget)
        await self._pool.admission.enter()
        pool = self._router.choose(body, headers)
        active = pool.begin()
        try:
            known = active.check.features(asked.known, "known")
            costs = active.plan.costs
            _check_names(asked.unavailable, {**costs.prices, **costs.needs}, "unavailable", "acquisition or feature")
            _check_names(asked.owned, costs.prices, "owned", "acquisition")
            plan = active.menu or active.plan
            advice = await self._beside(lambda: advise(plan, known, asked.unavailable, budget, asked.owned))
            sent = self._encode(next_purchase(advice))
        except Exception as error:
            self._note_error(pool, active, error)
            raise
        finally:
            pool.end(active)
            self._pool.admission.leave(None)
        self._telemetry.request("/v1/next", 200, self._now() - arrived)
        return sent

    def _look(self, active: ActivePlan, row: Any) -> None:
        """Let the watch of drift look at a row that came with its features."""
        if active.has_rows_at_hand and row is not UNREAD and active.drift.takes_row:
            active.drift.row(row)

    def _count(self, answers: Sequence[Answer], active: ActivePlan, budget: float | None) -> None:
        """Rows were answered: into the metrics and, where extractors were called, into the trace."""
        self._telemetry.answers(answers, active.version, has_calls=not active.has_rows_at_hand)
        active.drift.answers(answers, budget)
        if not active.has_rows_at_hand and self._tracing.is_on:
            self._tracing.calls(answers)

    def _bounds(self, asked: R, headers: Headers, arrived: float, waited: float) -> tuple[Any, float | None]:
        """The budget, and when the time is up: of those in the body and in the headers, the smaller.

        A request whose time ran out while the server had too much to do is refused: the client may ask again.
        """
        budget = self._budget(asked, headers)
        deadline = _smaller(asked.deadline_ms, read_header(headers, b"miserly-deadline-ms"), self._limits.deadline_ms)
        if deadline is None:
            return budget, None
        until = arrived + 1e-3 * deadline
        if waited > QUEUED and self._now() >= until:
            self._pool.admission.n_shed += 1
            raise overloaded()
        return budget, until

    def _budget(self, asked: R, headers: Headers) -> float | dict[str, float] | None:
        """The budget in the body and in the headers: of two numbers the smaller, or all caps together."""
        if not isinstance(asked.budget, dict):
            return _smaller(asked.budget, read_header(headers, b"miserly-budget"), self._limits.budget)
        _check_names(list(asked.budget), self._pool.active.plan.currencies, "budget", "currency")
        total = read_header(headers, b"miserly-budget")
        caps = dict(asked.budget)
        return caps if total is None else caps | {"total": min(total, caps.get("total", total))}

    def _note_error(self, pool: RunnerPool, active: ActivePlan, error: Exception) -> None:
        if not isinstance(error, RefusedError):
            pool.note_error(active)

    async def _row(self, active: ActivePlan, row: Any, where: str, until: float | None) -> Any:
        if active.has_rows_at_hand:
            return active.check.row(row, where)
        return row if self._reader is None else await self._reader.read(row, where, until)

    async def _documents(self, active: ActivePlan, asked: RankRequest, until: float | None) -> list[Any]:
        documents = []
        for i, document in enumerate(asked.documents):
            documents.append(await self._row(active, document, f"documents[{i}]", until))
            if i % MANY == MANY - 1:
                await asyncio.sleep(0)
        return documents

    async def _check_list(self, active: ActivePlan, asked: RankRequest) -> None:
        n, most = len(asked.documents), self._limits.max_documents
        if n > most:
            raise RefusedError(
                f"A request ranks at most {most} documents, got {n}.",
                "documents",
                "Send the most promising ones, or start the server with a higher --max-documents.",
            )
        if asked.features is not None:
            if len(asked.features) != n:
                raise RefusedError(
                    f"Got features of {len(asked.features)} documents for {n}.",
                    "features",
                    "Send one object for each document; it may be empty.",
                )
            for i, features in enumerate(asked.features):
                asked.features[i] = dict(active.check.features(features, f"features[{i}]"))
                if i % MANY == MANY - 1:
                    await asyncio.sleep(0)

    async def _answer(
        self, active: ActivePlan, row: Any, budget: Any, until: float | None, features: Mapping[str, Any]
    ) -> Answer:
        """Rows at hand are answered on the spot, which takes less time than asking a thread to."""
        left = None if until is None else max(0.0, until - self._now())
        if row is UNREAD:
            return await active.runner.apredict(None, budget, 0.0, features)
        if active.has_rows_at_hand and left != 0.0:
            return active.runner.predict(row, budget, None, features)
        return await active.runner.apredict(row, budget, left, features)


def _check_names(names: Iterable[str], known: Container[str], where: str, what: str) -> None:
    for i, name in enumerate(names):
        if name not in known:
            raise RefusedError(f"There is no {what} {shorten(name)!r}.", f"{where}[{i}]", "GET /v1/plan lists them.")


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _check_rows(active: ActivePlan) -> None:
    """Refuse rows one by one where the plan compares documents: each would be a query of its own."""
    if active.by_query:
        raise RefusedError(
            "This plan compares the documents of a query, and rows come one by one here.",
            "body",
            'Send all documents of the query to POST /v1/rank: {"documents": [{…}, {…}]}.',
        )


def _smaller(first: float | None, second: float | None, otherwise: float | None) -> float | None:
    given = [number for number in (first, second) if number is not None]
    return min(given) if given else otherwise
