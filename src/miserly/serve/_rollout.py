"""Checks before a new plan takes over: it can answer what clients send, as they read it, and known rows as expected."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from miserly.plan import Menu, Plan, load_menu, load_plan
from miserly.runtime import OnDemand


class Canary(msgspec.Struct, forbid_unknown_fields=True):
    """A request with its expected answer, which a new plan must give before it is served.

    Parameters
    ----------
    value : object
        The expected prediction: a class, a number or a list of numbers.
    row : object, default None
        What extractors take.
    features : dict, default {}
        Features that are known already, by name: numbers, text or None.
    tolerance : float, default 1e-9
        How far a number may be from the expected one, 0 or more. Other values must be equal.
    max_cost : float, default inf
        The most that the answer may cost, in the plan's unit.

    Examples
    --------
    >>> from miserly.serve import Canary
    >>> canary = Canary(value=1.5, features={"age": 60.0}, max_cost=10.0)
    >>> canary.tolerance
    1e-09
    """

    value: Any
    row: Any = None
    features: dict[str, float | str | None] = {}
    tolerance: float = 1e-9
    max_cost: float = math.inf


def read_canaries(path: str | Path) -> list[Canary]:
    """Read canaries from a file of JSON lines.

    Parameters
    ----------
    path : str or Path
        One object in each line: `{"row": …, "value": …}`, with `features`, `tolerance` and `max_cost` if wanted. Empty
        lines are skipped.

    Returns
    -------
    list of Canary
        In the order of the file.

    Raises
    ------
    ValueError
        If a line is not such an object.

    Examples
    --------
    >>> from pathlib import Path
    >>> from miserly.serve import read_canaries
    >>> _ = Path("canaries.jsonl").write_text('{"features": {"age": 60}, "value": 1.5}')
    >>> read_canaries("canaries.jsonl")[0].value
    1.5
    """
    lines = [line for line in Path(path).read_bytes().splitlines() if line.strip()]
    try:
        return [msgspec.json.decode(line, type=Canary) for line in lines]
    except msgspec.MsgspecError as error:
        raise ValueError(f"Canary file '{path}': {error}. Each line is an object with 'row' and 'value'.") from None


def check_compatible(at_work: Plan | Menu, coming: Plan | Menu, needs_features: bool) -> None:
    """Refuse a plan that clients of the one at work could not use: other features to send, other answers to read."""
    (served, *_), new_plans = _plans(at_work), _plans(coming)
    new = new_plans[0]
    if needs_features:
        known = set(served.costs.features)
        more = sorted({new.costs.features[f] for plan in new_plans for f in plan.used_features} - known)
        if more:
            raise ValueError(
                f"It looks at {len(more)} features that clients do not send, such as {more[0]!r}. "
                "Start a server of its own for it."
            )
    before, after = (None if p.classes is None else list(p.classes.tolist()) for p in (served, new))
    if before != after:
        raise ValueError(f"Its classes are {_short(after)}, those of the plan at work {_short(before)}.")
    if served.n_outputs != new.n_outputs:
        raise ValueError(f"It gives {new.n_outputs} scores, the plan at work {served.n_outputs}.")
    if served.costs.unit != new.costs.unit:
        raise ValueError(
            f"Its prices are in {new.costs.unit!r}, budgets of clients in {served.costs.unit!r}: "
            "restart the server if that is meant."
        )


def _plans(plan: Plan | Menu) -> Sequence[Plan]:
    return plan.plans if isinstance(plan, Menu) else [plan]


async def check_canaries(runner: OnDemand, canaries: Sequence[Canary]) -> None:
    """Refuse a plan that answers a canary otherwise than expected."""
    for i, canary in enumerate(canaries):
        answer = await runner.apredict(canary.row, None, 30.0, canary.features or None)
        value = answer.value.tolist() if hasattr(answer.value, "tolist") else answer.value
        if not _is_near(value, canary.value, canary.tolerance):
            raise ValueError(f"Canary {i + 1}: expected {canary.value!r}, got {value!r} ({answer.stopped}).")
        if answer.cost > canary.max_cost:
            raise ValueError(f"Canary {i + 1} costs {answer.cost:g}, expected at most {canary.max_cost:g}.")


def _is_near(value: Any, expected: Any, tolerance: float) -> bool:
    if isinstance(value, float | int) and isinstance(expected, float | int) and not isinstance(value, bool):
        return bool(abs(value - expected) <= tolerance)
    if isinstance(value, list) and isinstance(expected, list) and len(value) == len(expected):
        return bool(np.all(np.abs(np.subtract(value, expected)) <= tolerance))
    return bool(value == expected)


def _short(classes: list[Any] | None) -> str:
    if classes is None:
        return "none"
    return ", ".join(map(repr, classes[:5])) + (" …" if len(classes) > 5 else "")


def load_plan_or_menu(path: str | Path) -> Plan | Menu:
    """Read a plan file or a menu file, whichever it is."""
    try:
        with zipfile.ZipFile(path) as archive:
            is_menu = "menu.json" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        is_menu = False
    return load_menu(path) if is_menu else load_plan(path)
