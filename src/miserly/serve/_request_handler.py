"""What the two routes that answer do, from the bytes of a request to the bytes of its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import msgspec

from miserly.runtime import Answer
from miserly.serve._messages import PredictRequest, RankRequest, RefusedError, prediction, ranking, read, read_header
from miserly.serve._metrics import Telemetry
from miserly.serve._runner_pool import ActivePlan, RunnerPool

Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Limits:
    """What a request gets that does not say, and how many documents it may have."""

    budget: float | None
    deadline_ms: float | None
    max_documents: int


class RequestHandler:
    """Answers requests at a pool. `read_row` turns what JSON can say into what the extractors take."""

    def __init__(
        self, pool: RunnerPool, telemetry: Telemetry, limits: Limits, read_row: Callable[[Any], Any] | None
    ) -> None:
        self._pool, self._telemetry, self._limits, self._read_row = pool, telemetry, limits, read_row
        self._predictions = msgspec.json.Decoder(PredictRequest)
        self._rankings = msgspec.json.Decoder(RankRequest)
        self._encode = msgspec.json.Encoder().encode

    async def predict(self, body: bytes, headers: Headers) -> bytes:
        """Answer one row."""
        began = perf_counter()
        with self._pool.place() as active:
            await asyncio.sleep(0)  # those who came at the same moment take their places first, so that all are counted
            asked = read(self._predictions, body)
            budget, until = self._bounds(asked, headers, began)
            active.check.features(asked.features)
            row = self._row(active, asked.row, "row")
            answer = await _answer(active, row, budget, until, asked.features)
            sent = self._encode(prediction(answer))
        self._telemetry.answers([answer])
        self._telemetry.request("/v1/predict", 200, perf_counter() - began)
        return sent

    async def rank(self, body: bytes, headers: Headers) -> bytes:
        """Rank a list."""
        began = perf_counter()
        with self._pool.place() as active:
            await asyncio.sleep(0)
            asked = read(self._rankings, body)
            budget, until = self._bounds(asked, headers, began)
            self._check_list(active, asked)
            documents = [self._row(active, d, f"documents[{i}]") for i, d in enumerate(asked.documents)]
            left = None if until is None else max(0.0, until - perf_counter())
            ranked = await active.runner.arank(asked.query, documents, budget, left, asked.features)
            sent = self._encode(ranking(ranked))
        self._telemetry.answers(ranked.answers)
        self._telemetry.request("/v1/rank", 200, perf_counter() - began)
        return sent

    def _bounds(
        self, asked: PredictRequest | RankRequest, headers: Headers, began: float
    ) -> tuple[float | None, float | None]:
        """The budget, and when the time is up: of those in the body and in the headers, the smaller."""
        budget = _smaller(asked.budget, read_header(headers, b"miserly-budget"), self._limits.budget)
        deadline = _smaller(asked.deadline_ms, read_header(headers, b"miserly-deadline-ms"), self._limits.deadline_ms)
        return budget, None if deadline is None else began + 1e-3 * deadline

    def _row(self, active: ActivePlan, row: Any, where: str) -> Any:
        if active.has_rows_at_hand:
            return active.check.row(row, where)
        if self._read_row is None:
            return row
        try:
            return self._read_row(row)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise RefusedError(f"This is no row: {error}.", where, "See how this server reads rows.") from None

    def _check_list(self, active: ActivePlan, asked: RankRequest) -> None:
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
                active.check.features(features, f"features[{i}]")


async def _answer(
    active: ActivePlan, row: Any, budget: float | None, until: float | None, features: Mapping[str, Any]
) -> Answer:
    """Rows at hand are answered on the spot, which takes less time than asking a thread to."""
    left = None if until is None else max(0.0, until - perf_counter())
    if active.has_rows_at_hand and left != 0.0:
        return active.runner.predict(row, budget, None, features)
    return await active.runner.apredict(row, budget, left, features)


def _smaller(first: float | None, second: float | None, otherwise: float | None) -> float | None:
    said = [number for number in (first, second) if number is not None]
    return min(said) if said else otherwise
