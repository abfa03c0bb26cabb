"""What goes over the wire: requests, answers and refusals, as strict JSON."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, TypeVar

import msgspec

from miserly.runtime import Advice, Answer, Ranking

NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Features = dict[str, float | str | bool | None]
LONGEST_ECHO = 80  # characters
JSON_RULE = "Send one JSON object in UTF-8. JSON has no NaN and no Infinity: a missing value is null."


class _Request(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    budget: NotNegative | dict[str, NotNegative] | None = None
    deadline_ms: NotNegative | None = None


class PredictRequest(_Request, kw_only=True):
    """One row, or several as `rows`. `row` is what the extractors take; `features` are values that the caller has
    already, which are not bought again; `budget` is in the plan's unit, for each row; or an object with a cap on each
    currency, `rounds` and `total`."""

    row: Any = None
    features: Features = {}
    rows: list[Any] | None = None


class RankRequest(_Request, kw_only=True):
    """The documents of one query. The budget is for each document; `features`, if given, are one object for each."""

    query: Any = None
    documents: list[Any]
    features: list[Features] | None = None


class NextRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What is `known` of a row (null: bought, without a result), what is `unavailable` now (acquisitions or features),
    what may still be paid, and which acquisitions are `owned`, that is, were paid for already, beside those that known
    values need."""

    known: Features = {}
    unavailable: list[str] = []
    owned: list[str] = []
    budget: NotNegative | None = None


class NextCandidate(msgspec.Struct):
    """A purchase that could be made now: its price, and the expected drop of the loss with two bounds."""

    acquisitions: tuple[str, ...]
    price: float
    gain: float
    low: float
    high: float


class NextAnswer(msgspec.Struct):
    """The prediction from what is known, what to buy next (null: nothing more), and why; `ranking` lists all that could
    be bought, best gain per price first. `unknown_words` names columns whose word was not seen in training, so that it
    counts as missing."""

    value: Any
    probabilities: list[float | None] | None
    next: str | None
    together: tuple[str, ...]
    price: float
    expected_gain: float
    stop: bool
    why: str
    ranking: list[NextCandidate]
    unknown_words: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


class ExplainedPurchase(msgspec.Struct):
    """What one purchase moved each score, and what it cost."""

    acquisition: str
    moved: list[float]
    paid: float


class Explained(msgspec.Struct):
    """Sent for ?explain=1: `base`, `free` and what the purchases moved add up to `score`, for each of the `outputs`."""

    outputs: list[str]
    base: list[float]
    free: list[float]
    purchases: list[ExplainedPurchase]
    evaluation: float
    score: list[float]


class PredictAnswer(msgspec.Struct):
    """The value (null if it is no number), the probability of each of the plan's classes, what it cost, and why it
    stopped: answered, budget, deadline, spend-cap:… with the limit that left no money, or failed:… with the first
    acquisition that failed. `paid` is what the calls really cost, where that is counted. `unknown_words` names columns
    whose word was not seen in training, so that it counts as missing."""

    value: Any
    probabilities: list[float | None] | None
    cost: float
    measured_ms: float
    stopped: str
    acquired: tuple[str, ...]
    tier: int
    version: str = ""
    paid: float | msgspec.UnsetType = msgspec.UNSET
    contributions: Explained | msgspec.UnsetType = msgspec.UNSET
    unknown_words: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


class ManyAnswer(msgspec.Struct):
    """The answers of several rows as they stood in the request, what they cost together, and the reasons counted."""

    answers: list[PredictAnswer]
    cost: float
    stopped: dict[str, int]
    version: str


class RankAnswer(msgspec.Struct):
    """`order` lists the numbers of the documents, best first; `answers` stand as the documents did; `stopped` counts
    the reasons."""

    order: tuple[int, ...]
    cost: float
    measured_ms: float
    stopped: dict[str, int]
    answers: list[PredictAnswer]
    version: str = ""


class ErrorDetail(msgspec.Struct):
    """What is wrong, where in the request, and how to do it right."""

    what: str
    where: str
    remedy: str


class ErrorAnswer(msgspec.Struct):
    """Every answer that is not a success."""

    error: ErrorDetail


class RefusedError(Exception):
    """A request that is not answered, with the status and the words that the client gets."""

    def __init__(self, what: str, where: str, remedy: str, status: int = 400) -> None:
        super().__init__(what)
        self.status, self.detail = status, ErrorDetail(what, where, remedy)


R = TypeVar("R", bound=msgspec.Struct)
_PLACE = re.compile(r" - at `\$\.?(.*)`$")


def read(decoder: msgspec.json.Decoder[R], body: bytes) -> R:
    """A request, or a refusal that says what is wrong with it."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        text = str(error)
        place = _PLACE.search(text)
        where = place[1] if place else ""
        what = shorten(_PLACE.sub("", text)) + "."
        raise RefusedError(what, where or "body", "See /openapi.json for the fields and their types.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RefusedError(f"The body is not JSON: {shorten(str(error))}.", "body", JSON_RULE) from None
    except RecursionError:
        raise RefusedError("The body is nested too deeply.", "body", JSON_RULE) from None


def read_header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> float | None:
    """A number of zero or more in a header, if it is there; of several the smallest."""
    smallest = None
    for value in (part for key, values in headers if key == name for part in values.split(b",")):
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not 0 <= number < math.inf:
            what = f"{shorten(value.decode('latin-1'))!r} is not a number of zero or more."
            raise RefusedError(what, f"header {name.decode()}", "Send one, or leave it out.")
        smallest = number if smallest is None else min(smallest, number)
    return smallest


def shorten(text: str) -> str:
    """A client's own words as they are sent back: not more than a line."""
    return text if len(text) <= LONGEST_ECHO else text[:LONGEST_ECHO] + "…"


def prediction(answer: Answer, version: str = "", explain: bool = False, words: tuple[str, ...] = ()) -> PredictAnswer:
    """One answer as it is sent, with the version of the plan that gave it and the columns with unknown words."""
    probabilities, value = answer.probabilities, answer.value
    return PredictAnswer(
        value.tolist() if hasattr(value, "tolist") else value,
        None if probabilities is None else probabilities.tolist(),
        answer.cost,
        1e3 * answer.measured,
        answer.stopped,
        answer.acquired,
        answer.tier,
        version,
        answer.paid if any(call.paid is not None for call in answer.calls) else msgspec.UNSET,
        explained(answer) if explain else msgspec.UNSET,
        words or msgspec.UNSET,
    )


def explained(answer: Answer) -> Explained:
    """What the purchases of an answer moved."""
    try:
        return msgspec.convert(answer.contributions().to_dict(), Explained)
    except ValueError as error:
        raise RefusedError(f"This plan cannot explain its answers: {error}", "explain", "Leave explain out.") from None


def next_purchase(advice: Advice) -> NextAnswer:
    """Advice as it is sent."""
    value, probabilities = advice.value, advice.probabilities
    return NextAnswer(
        value.tolist() if hasattr(value, "tolist") else value,
        None if probabilities is None else probabilities.tolist(),
        advice.next,
        advice.together,
        advice.price,
        advice.expected_gain,
        advice.stop,
        advice.why,
        [NextCandidate(c.acquisitions, c.price, c.gain, c.low, c.high) for c in advice.ranking],
        advice.unknown_words or msgspec.UNSET,
    )


def many(
    answers: Sequence[Answer], version: str, explain: bool = False, words: Sequence[tuple[str, ...]] = ()
) -> ManyAnswer:
    """The answers of several rows as they are sent; `words` has the columns with unknown words of each row."""
    each = words or [()] * len(answers)
    sent = [prediction(answer, version, explain, mine) for answer, mine in zip(answers, each)]
    return ManyAnswer(sent, math.fsum(a.cost for a in answers), dict(Counter(a.stopped for a in sent)), version)


def ranking(ranked: Ranking, version: str = "") -> RankAnswer:
    """A list as it is sent."""
    answers = [prediction(answer, version) for answer in ranked.answers]
    reasons = Counter(answer.stopped for answer in answers)
    measured = sum(answer.measured_ms for answer in answers)
    return RankAnswer(ranked.order, ranked.cost, measured, dict(reasons), answers, version)
