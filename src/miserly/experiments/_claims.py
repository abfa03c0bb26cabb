"""What the papers say, asked of what was measured: seen, undecided or contradicted, by the 95 % interval."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from miserly.experiments._measure import area
from miserly.experiments._parts import LearningProblem
from miserly.frontiers import Frontier, Verdict, common_range, interval, within

TOLERANCE = 0.01  # "as good as" allows a loss of this share of the other's area
FACTOR_SLACK = 1.5  # "at a tenth of the cost" allows 1.5 tenths: the papers read their factors off a figure
N_BUDGETS = 3  # equal-budget differences that are shown beside an area
Curves = Mapping[str, Sequence[Frontier]]


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, what we see, and the verdict. `is_real`: it was asked of measured data."""

    data: str
    says: str
    sees: str
    verdict: Verdict
    is_real: bool


def fact(data: str, says: str, sees: str, holds: bool, is_real: bool = True) -> Claim:
    """A claim about one fact: it is seen or contradicted."""
    return Claim(data, says, sees, Verdict.of_fact(bool(holds)), is_real)


def above(
    first: str,
    second: str,
    curves: Curves,
    group: Sequence[LearningProblem],
    says: str = "",
    as_good: bool = False,
) -> Claim:
    """That one curve lies above another, or, with `as_good`, at most 1 % below it.

    Measured by the difference of areas over the logarithm of the budget, from the first purchase of either; mean over
    splits with its 95 % interval. Beside it stand differences of test quality at equal budgets.
    """
    pairs = list(zip(curves[first], curves[second]))
    ranges = [common_range(pair) for pair in pairs]
    levels = [area(b, *limits) for (_, b), limits in zip(pairs, ranges)]
    differences = [area(a, *limits) - level for (a, _), limits, level in zip(pairs, ranges, levels)]
    overlap, level = group[0].overlap, sum(levels) / len(levels)
    mean, half = interval(differences, overlap)
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    budgets = np.geomspace(low, high, N_BUDGETS + 2)[1:-1]
    at = (interval([within(a, b) - within(c, b) for a, c in pairs], overlap) for b in budgets)
    equal = ", ".join(f"{_plus_minus(*pair)} within {b:.3g}" for b, pair in zip(budgets, at))
    sees = f"{first} − {second}: {_plus_minus(mean, half)} of {level:.4f} ({group[0].metric.name}, area); {equal}"
    least = -TOLERANCE * abs(level) if as_good else 0.0
    verdict = Verdict.of_interval(mean, half, least)
    return Claim(group[0].name, says or f"{first} is above {second}", sees, verdict, group[0].is_real)


def factor(what: str, shares: Sequence[float], goal: float, group: Sequence[LearningProblem], slack: float) -> Claim:
    """That a method comes within `slack` of the reference's quality at a share of its cost, or at most 1.5 times it."""
    reached = [share for share in shares if math.isfinite(share)]
    mean, half = interval(reached, group[0].overlap) if reached else (math.inf, math.nan)
    sees = (
        f"at {mean:.2f}{'' if math.isnan(half) else f' ± {half:.2f}'} of its cost" if reached else "not on validation"
    )
    if reached and len(reached) < len(shares):
        sees += f", and not in {len(shares) - len(reached)} of {len(shares)} splits"
    verdict = Verdict.of_interval(-mean, half, -FACTOR_SLACK * goal)
    if not reached:
        verdict = Verdict.CONTRADICTED
    elif len(reached) < len(shares) and verdict is Verdict.SEEN:
        verdict = Verdict.UNDECIDED
    says = f"{what} comes to {1 - slack:.0%} of the full quality at {goal:.2f} of its cost"
    return Claim(group[0].name, says, sees, verdict, group[0].is_real)


def _plus_minus(mean: float, half: float) -> str:
    return f"{mean:+.4f}" + ("" if math.isnan(half) else f" ± {half:.4f}")


# ---- as text ------------------------------------------------------------------------------------------------------


def claim_line(claim: Claim) -> str:
    """One claim on one line."""
    kind = "" if claim.is_real else ", stand-in"
    return f"[{claim.data}{kind}] paper: {claim.says}; we: {claim.sees}; verdict: {claim.verdict}"


def claims_table(found: Mapping[str, Any]) -> str:
    """All claims as a table in Markdown; `found` maps the names of studies to their results."""
    lines = ["| figure | data | the paper says | we see | verdict |", "|---|---|---|---|---|"]
    for name, result in found.items():
        for claim in result.claims:
            data = claim.data if claim.is_real else f"{claim.data} (stand-in)"
            verdict = f"**{claim.verdict}**" if claim.verdict is Verdict.CONTRADICTED else str(claim.verdict)
            lines.append(f"| {name} | {data} | {claim.says} | {claim.sees} | {verdict} |")
    return "\n".join(lines)


def verdict_counts(claims: Iterable[Claim]) -> str:
    """How many claims are seen, undecided and contradicted, in words."""
    counts = Counter(claim.verdict for claim in claims)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
