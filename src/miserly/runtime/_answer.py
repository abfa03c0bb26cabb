"""What a request gets back: the answer, what it cost, and how it came about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from miserly import _display
from miserly.plan import Contributions, Walk


class Call(NamedTuple):
    """One call of an extractor for one row.

    Parameters
    ----------
    name : str
        The extractor's.
    price : float
        Of its acquisition; 0 without one.
    began : float
        Seconds after the request.
    seconds : float
        How long it took; a call for several rows counts for each with its share.
    outcome : str
        "ok", "cached", "running" (nobody waited for its end), "waiting" (no worker began it) or what went wrong.
    stage : int, default=0
        How many purchases the row had made before; calls of one purchase have the same number.
    paid : float or None, default=None
        What it really cost, by the extractor's `usage`, or what a spending cap counted for it. None: nobody asked.

    Examples
    --------
    >>> from miserly.runtime import Call
    >>> Call("parse", price=2.0, began=0.0, seconds=0.001, outcome="ok").outcome
    'ok'
    """

    name: str
    price: float
    began: float
    seconds: float
    outcome: str
    stage: int = 0
    paid: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What one row gets.

    Parameters
    ----------
    value : object
        The predicted class or number.
    probabilities : array or None
        One for each class, in the order of the plan's classes; None without classes.
    score : array
        The raw scores.
    tier : int
        The tier of the node that answered; later tiers rank before earlier ones.
    cost : float
        What the row cost by the plan's prices, in its `unit`.
    stopped : str
        Why it stopped: "answered", "budget", "deadline", "spend-cap:…" with the limit that left no money, or "failed:…"
        with the first acquisition that failed.
    acquired : tuple of str
        What was bought, in this order.
    elapsed : float
        Seconds from the request to the answer.
    calls : tuple of Call
        All calls of extractors, with times and errors.
    unit : str
        The unit of prices and of the cost.
    walk : Walk or None, default=None
        The way of the row through the plan, for `contributions()`.

    Examples
    --------
    >>> import numpy as np
    >>> from miserly.runtime import Answer, Call
    >>> call = Call("parse", price=2.0, began=0.0, seconds=0.001, outcome="ok")
    >>> answer = Answer(1.0, None, np.ones(1), 0, 2.0, "answered", ("parse",), 0.002, (call,), "ms")
    >>> answer
    <Answer: 1.0 for 2 ms, answered; bought parse>
    >>> print(answer.trace())
    call    ms  began ms  took ms  outcome
    parse    2     0.000    1.000  ok
    in all   2     2.000    1.000  answered: 1.0
    """

    value: Any
    probabilities: NDArray[np.float64] | None
    score: NDArray[np.float64]
    tier: int
    cost: float
    stopped: str
    acquired: tuple[str, ...]
    elapsed: float
    calls: tuple[Call, ...]
    unit: str
    walk: Walk | None = field(default=None, repr=False, compare=False)

    def contributions(self) -> Contributions:
        """What each purchase moved the score, and what it cost; see `Plan.contributions`."""
        if self.walk is None:
            raise ValueError("This answer was made by hand: contributions belong to answers of `OnDemand.predict`.")
        return self.walk.contributions()

    @property
    def measured(self) -> float:
        """The seconds that its calls took, one after the other."""
        return sum(call.seconds for call in self.calls)

    @property
    def paid(self) -> float:
        """What its calls really cost: what each `usage` gave, otherwise the price of those that went well."""
        amounts = (c.paid if c.paid is not None else c.price if c.outcome == "ok" else 0.0 for c in self.calls)
        return math.fsum(amounts)

    def __repr__(self) -> str:
        bought = ", ".join(self.acquired) or "nothing"
        return f"<Answer: {self.value} for {self.cost:g} {self.unit}, {self.stopped}; bought {bought}>"

    def _repr_html_(self) -> str:
        spent = [(call.name, call.price) for call in self.calls]
        return _display.text(f"{repr(self)[1:-1]}\n\n{self.trace()}") + _display.bars(spent, f"paid, in {self.unit}")

    def trace(self) -> str:
        """The calls as a table, then the sum."""
        head = ("call", self.unit, "began ms", "took ms", "outcome")
        lines = [
            (c.name, f"{c.price:g}", f"{c.began * 1e3:.3f}", f"{c.seconds * 1e3:.3f}", c.outcome) for c in self.calls
        ]
        total = ("in all", f"{self.cost:g}", f"{self.elapsed * 1e3:.3f}", f"{self.measured * 1e3:.3f}")
        table = [head, *lines, (*total, f"{self.stopped}: {self.value}")]
        return aligned(table)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The documents of one query.

    Parameters
    ----------
    order : tuple of int
        The numbers of the documents, best first.
    answers : tuple of Answer
        One for each document, in the order in which they were sent.
    elapsed : float
        Seconds from the request to the ranking.

    Examples
    --------
    >>> import numpy as np
    >>> from miserly.runtime import Answer, Call, Ranking
    >>> call = Call("parse", price=2.0, began=0.0, seconds=0.001, outcome="ok")
    >>> answer = Answer(1.0, None, np.ones(1), 0, 2.0, "answered", ("parse",), 0.002, (call,), "ms")
    >>> Ranking(order=(1, 0), answers=(answer, answer), elapsed=0.004).cost
    4.0
    """

    order: tuple[int, ...]
    answers: tuple[Answer, ...]
    elapsed: float

    @property
    def cost(self) -> float:
        """What all documents cost together."""
        return sum(answer.cost for answer in self.answers)


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as text: names to the left, figures to the right, the last cell as long as it is."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]) - 1)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:-1], widths[1:])), line[-1]])
        for line in lines
    )
