"""Guarantees: thresholds that keep a figure on new rows with probability 1 − δ.

Settings are tested in a fixed order, from the safest to the cheapest, each by an exact binomial test on calibration
rows; a sequence ends at its first failure, so that all that it certifies holds together (Angelopoulos et al., Learn
Then Test, 2021). Several sequences share δ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from miserly._typing import Array, Bools, Floats
from miserly.plan._mistakes import for_threshold
from miserly.plan._node import EXIT, Gate

if TYPE_CHECKING:
    from miserly.plan._plan import Plan

Figure = Literal["accuracy", "precision", "recall", "agreement"]
FIGURES = ("accuracy", "precision", "recall", "agreement")
N_THRESHOLDS = 40  # finer steps than 2 % of the log-odds change the cost hardly
HIGHEST_ODDS = 7.0  # log-odds of the highest threshold, 0.999: probabilities above it are rarely calibrated
STARTS = (0, 10, 20, 30)  # where sequences of precision begin: high thresholds may leave too few rows to test
MOST_ROWS = 1 << 40  # of a search for the number of rows


@dataclass(frozen=True)
class Certificate:
    """What was shown about a plan: `of` is at least `target` on new rows, with probability 1 − `delta` over the draw of
    the calibration rows.

    Parameters
    ----------
    of : {"accuracy", "precision", "recall", "agreement"}
        The figure.
    target : float
        What it reaches, between 0 and 1.
    delta : float
        The probability that the guarantee is wrong, between 0 and 1.
    n_rows : int
        CalibrationRows rows.
    n_counted : int
        Those that the figure counts: all, those predicted positive (precision), or those that are positive (recall).
    n_right : int
        Those of them that are right.
    bound : float
        The exact lower bound of the figure.
    cost : float
        The mean cost of the calibration rows.
    confidence : float or None, default=None
        The probability at which rows stop; None if none stops early.
    threshold : float or None, default=None
        The probability from which the positive class is predicted; None if the plan decides as before.
    positive : str or None, default=None
        The positive class, for precision and recall.
    budget : float or None, default=None
        The cap under which rows ran. The guarantee holds for this cap only.

    Examples
    --------
    >>> from miserly.plan import Certificate
    >>> Certificate("accuracy", 0.9, 0.05, 500, 500, 470, 0.919, 2.5).describe()
    'Certified: accuracy of at least 0.9 on new rows with probability 0.95 (470 of 500 calibration rows: 0.919 or more)'
    """

    of: Figure
    target: float
    delta: float
    n_rows: int
    n_counted: int
    n_right: int
    bound: float
    cost: float
    confidence: float | None = None
    threshold: float | None = None
    positive: str | None = None
    budget: float | None = None

    def __post_init__(self) -> None:
        if self.of not in FIGURES or not 0 < self.target < 1 or not 0 < self.delta < 1:
            raise ValueError("A certificate has a known figure, a target and a delta between 0 and 1.")
        if not 0 <= self.n_right <= self.n_counted <= self.n_rows:
            raise ValueError("A certificate counts at most its calibration rows.")

    def describe(self) -> str:
        """The certificate in one sentence."""
        of = self.of + ("" if self.positive is None else f" of {self.positive}")
        cap = "" if self.budget is None else f" under a cap of {self.budget:g}"
        return (
            f"Certified: {of} of at least {self.target:g} on new rows{cap} with probability {1 - self.delta:g} "
            f"({self.n_right} of {self.n_counted} calibration rows: {self.bound:.3g} or more)"
        )


class Setting(NamedTuple):
    """A plan to be tested, the confidence at which its rows stop, and from which probability it says positive."""

    plan: Plan
    confidence: float | None
    threshold: float | None


@dataclass(frozen=True)
class CalibrationRows:
    """Rows to calibrate on, and what is asked of them."""

    X: Any
    y: Array | None
    of: Figure
    target: float
    delta: float
    positive: int
    budget: float | None

    def count(self, plan: Plan, whole: Array) -> tuple[int, int, float]:
        """How many rows the figure counts, how many of them are right, and the mean cost."""
        run = plan.run(self.X, budget=self.budget)
        predicted, classes = plan.read(run.z), plan.classes
        assert classes is not None
        truth = whole if self.y is None else self.y
        counted: Bools = np.ones(len(truth), bool)
        if self.of == "precision":
            counted = np.asarray(predicted == classes[self.positive])
        elif self.of == "recall":
            counted = np.asarray(truth == classes[self.positive])
        right = int((predicted == truth)[counted].sum())
        return int(counted.sum()), right, float(run.cost.mean()) if len(run.cost) else 0.0


def certified(plan: Plan, calibration: CalibrationRows) -> Plan:
    """The plan with the cheapest thresholds that are certified; an error that says how many rows it would take."""
    sequences = list(_sequences(plan, calibration))
    share = calibration.delta / len(sequences)
    opened = _opened(plan)
    whole = (plan if opened is None else opened).predict(calibration.X, budget=calibration.budget)
    found: list[tuple[bool, float, Plan]] = []
    first: list[tuple[int, int]] = []
    for sequence in sequences:
        for number, setting in enumerate(sequence):
            tried = _set(setting)
            n_counted, n_right, cost = calibration.count(tried, whole)
            if not number:
                first.append((n_counted, n_right))
            if tail(n_right, n_counted, calibration.target) > share:
                break
            proof = _proof(plan, calibration, setting, n_counted, n_right, cost, share)
            found.append((setting.threshold is not None, cost, replace(tried, certificate=proof)))
    if not found:
        raise ValueError(_refusal(calibration, first, share, len(whole)))
    return min(found, key=lambda item: item[:2])[2]  # plans that decide as before come first


def _proof(
    plan: Plan, calibration: CalibrationRows, setting: Setting, n_counted: int, n_right: int, cost: float, share: float
) -> Certificate:
    by_class = calibration.of in ("precision", "recall")
    assert plan.classes is not None
    positive = str(plan.classes[calibration.positive]) if by_class else None
    bound = lower_bound(n_right, n_counted, share)
    n_rows = len(calibration.X)
    settings = (setting.confidence, setting.threshold, positive, calibration.budget)
    figures = (n_rows, n_counted, n_right, bound, cost)
    return Certificate(calibration.of, calibration.target, calibration.delta, *figures, *settings)


def _set(setting: Setting) -> Plan:
    plan = setting.plan if setting.confidence is None else setting.plan.stopping(setting.confidence)
    if setting.threshold is not None:
        plan = plan.with_error_costs(for_threshold(setting.threshold))
    return replace(plan, certificate=None)


def _sequences(plan: Plan, calibration: CalibrationRows) -> Iterator[list[Setting]]:
    """The orders in which settings are tested. They depend on the plan alone, never on the rows."""
    grid = confidences(0 if plan.classes is None else len(plan.classes))
    opened = _opened(plan)
    for base in [plan] if opened is None else [plan, opened]:
        yield [Setting(base, None, None), *(Setting(base, c, None) for c in grid)]
    base = plan if opened is None else opened
    if calibration.positive == 1 and calibration.of == "recall":
        yield [Setting(base, c, 1.0 - c) for c in grid]
    if calibration.positive == 1 and calibration.of == "precision":
        for start in STARTS:
            yield [Setting(base, c, c) for c in grid[start:]]


def confidences(n_classes: int) -> list[float]:
    """Thresholds from almost certain down to a guess, evenly spaced in log-odds."""
    odds = np.linspace(HIGHEST_ODDS, -math.log(max(1, n_classes - 1)), N_THRESHOLDS)
    return [float(1.0 / (1.0 + math.exp(-v))) for v in odds]


def _opened(plan: Plan) -> Plan | None:
    """The plan without gates that let rows leave early; None if it has no such gate."""
    early = [n.gate.kind in ("confidence", "learned") and n.failed == EXIT and n.passed != EXIT for n in plan.nodes]
    if not any(early):
        return None
    nodes = [replace(n, gate=Gate(), rule=None) if gated else n for n, gated in zip(plan.nodes, early)]
    return replace(plan, nodes=tuple(nodes), certificate=None)


# ---- the exact test -----------------------------------------------------------------------------------------------


def tail(n_right: int, n: int, target: float) -> float:
    """The probability that at least `n_right` of n rows are right if each is with probability `target`."""
    if n_right <= 0:
        return 1.0
    k = np.arange(n_right, n + 1)
    logs = _log_factorial(n)
    terms = logs[n] - logs[k] - logs[n - k] + k * math.log(target) + (n - k) * math.log1p(-target)
    return min(1.0, float(np.exp(terms).sum()))


def lower_bound(n_right: int, n: int, delta: float) -> float:
    """Clopper and Pearson's lower bound of a share."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(n_right, n, middle) <= delta else (low, middle)
    return low


def _log_factorial(n: int) -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])


def rows_needed(share: float, target: float, delta: float) -> int | None:
    """The number of rows from which this share of right ones certifies the target; None if no number does."""
    if share <= target:
        return None

    def enough(n: int) -> bool:
        if n <= 1 << 20:
            return tail(math.floor(share * n), n, target) <= delta
        z = (share - target) * math.sqrt(n / (target * (1 - target)))
        return 0.5 * math.erfc(z / math.sqrt(2)) <= delta

    high = 1
    while not enough(high) and high < MOST_ROWS:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _refusal(calibration: CalibrationRows, first: Sequence[tuple[int, int]], share: float, n_rows: int) -> str:
    of, target = calibration.of, calibration.target
    what = f"{of} {target:g} cannot be certified with delta {calibration.delta:g} on {n_rows} rows"
    needed = []
    for n_counted, n_right in first:
        n = rows_needed(n_right / n_counted, target, share) if n_counted else None
        if n is not None:
            needed.append(math.ceil(n * n_rows / n_counted))
    if needed:
        return f"{what}: about {min(needed)} calibration rows would be needed. Give more rows, or a lower target."
    reached = [f"{right / counted:.4g}" for counted, right in first if counted]
    seen = f"it reaches {max(reached)} there" if reached else "it counts no row there"
    return f"{what}: {seen}, and no number of rows would do. Give a lower target, or a better plan."


def calibration_of(
    plan: Plan, X: Any, y: Any, target: float, of: Figure, delta: float, positive: Any, budget: float | None
) -> CalibrationRows:
    """The user's wishes, checked."""
    if plan.classes is None or plan.by_query:
        raise ValueError("Only classifiers whose rows are independent can be certified; this plan predicts numbers or "
                         "compares the documents of a query.")  # fmt: skip
    if of not in FIGURES:
        raise ValueError(f"of is one of {', '.join(FIGURES)}, got {of!r}.")
    for name, value in (("target", target), ("delta", delta)):
        if not 0.0 < value < 1.0:
            raise ValueError(f"{name} lies between 0 and 1, got {value:g}.")
    n_rows = len(X)
    if not n_rows:
        raise ValueError("X_cal has no rows. Give rows that the plan was not fitted on.")
    if y is None and of != "agreement":
        raise ValueError(f"{of} is measured against labels: give y_cal. Only agreement does without.")
    labels = None if of == "agreement" else np.asarray(y)
    if labels is not None and labels.shape != (n_rows,):
        raise ValueError(f"y_cal has the shape {labels.shape}, X_cal {n_rows} rows. Give one label per row.")
    number = len(plan.classes) - 1
    if of in ("precision", "recall"):
        number = _number_of(plan.classes, positive)
    return CalibrationRows(X, labels, of, float(target), float(delta), number, budget)


def _number_of(classes: Array, positive: Any) -> int:
    if positive is None:
        if len(classes) == 2:
            return 1
        raise ValueError("precision and recall are of one class: name it, as in positive='ill'.")
    found = np.flatnonzero(classes == positive)
    if not len(found):
        raise ValueError(f"positive={positive!r} is none of the classes {classes.tolist()}.")
    return int(found[0])
