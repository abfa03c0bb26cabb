"""Whether what a plan does in use is what was promised: rows or a log, compared in plain words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from miserly._typing import Array, Floats
from miserly.plan import Menu, Plan, Promise, content_hash, predictions_and_scores, quality_of

MODERATE, LARGE = 0.1, 0.25  # the usual rules of thumb for the population stability index
SPENDING, SHARE = 0.1, 0.05  # changes that are said: a tenth of the cost, five rows in a hundred
SURE = 4.0  # standard errors beyond which a change is not chance
FEWEST = 30  # rows
MOST_SAID = 10  # classes and features that are named


class Expectation(NamedTuple):
    """What an answer under some budget is compared with: the number of the plan, its promise, its mean cost."""

    number: int
    promise: Promise | None
    cost: float | None


@dataclass(frozen=True)
class Finding:
    """Something that was compared.

    Parameters
    ----------
    about : str
        "spending", "scores", "classes", "quality", "failures", "rows" or "feature NAME".
    text : str
        What was found, in words.
    is_drift : bool
        Whether it is not as promised.

    Examples
    --------
    >>> from miserly.runtime import Finding
    >>> Finding("spending", "Rows cost 7 ms, as promised.", False).is_drift
    False
    """

    about: str
    text: str
    is_drift: bool


def expected(model: Plan | Menu, budget: float | None) -> Expectation:
    """What is to be expected under a budget; a plan under a cap that cuts into its purchases was not measured."""
    if isinstance(model, Menu):
        choice = model.choose(budget)
        promise = choice.plan.promise if choice.cap >= choice.plan.tables.most_expensive else None
        return Expectation(choice.number, promise, choice.cost)
    promise = model.promise if budget is None or budget >= model.tables.most_expensive else None
    return Expectation(0, promise, None if promise is None else promise.cost)


def compare_rows(
    model: Plan | Menu, X: Any, y: Any = None, qid: Any = None, budget: float | None = None
) -> list[Finding]:
    """Compare rows with all their features, and their outcomes if known, with what a plan was made for.

    Parameters
    ----------
    model : Plan or Menu
        With a profile and a promise, as estimators and `with_promise` give them.
    X : array or frame, rows × features
        The rows.
    y : array or None, default None
        Their outcomes.
    qid : array or None, default None
        The query of each row.
    budget : float or None, default None
        The most that a row may cost.

    Returns
    -------
    list of Finding
        What drifted first.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> from miserly.runtime import compare_rows
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> model = ms.GreedyMiserRegressor(ms.CostTable.per_feature({"a": 1.0, "b": 2.0}), n_estimators=5)
    >>> plan = model.fit(X, X[:, 0]).plan_.with_promise(X, X[:, 0])
    >>> any(finding.is_drift for finding in compare_rows(plan, X, X[:, 0]))
    False
    """
    from miserly.plan import as_matrix

    choice = model.choose(budget) if isinstance(model, Menu) else None
    plan, cap = (model, budget) if choice is None else (choice.plan, choice.cap)
    assert isinstance(plan, Plan)
    _, promise, cost = expected(model, budget)
    if promise is None and plan.profile is None:
        raise ValueError("The plan has no promise and no profile. Fit it again, or add plan.with_promise(X, y).")
    matrix = as_matrix(X, plan.costs.features, plan.costs.named, plan.schema)
    run = plan.run(matrix, qid, cap)
    said, scores = predictions_and_scores(plan, run.z)
    found = _features(plan, matrix)
    if cost is not None:
        found.append(_spending(run.cost, cost, promise, plan.costs.unit))
    if promise is not None:
        found += _predictions(promise, scores, said if plan.classes is not None else None)
        if y is not None:
            found += _quality(plan, promise, said, np.asarray(y))
    return sorted(found, key=lambda finding: not finding.is_drift)


def compare_log(
    model: Plan | Menu, lines: Iterable[Mapping[str, Any]], outcomes: Mapping[str, Any] | None = None
) -> list[Finding]:
    """Compare the lines of an access log with what a plan promised.

    Parameters
    ----------
    model : Plan or Menu
        With a promise.
    lines : iterable of mappings
        As `miserly serve --access-log` writes them. Those of other versions or without an answer are left out; a line
        may have an `outcome`.
    outcomes : mapping or None, default None
        What came true, by request id.

    Returns
    -------
    list of Finding
        What drifted first.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> from miserly.runtime import compare_log
    >>> plan = Plan(ms.CostTable.per_feature({"age": 2.0}), RawFeatures([0]), (Node([0], [1.0]),), [0.0])
    >>> plan = plan.with_promise(np.ones((100, 1)))
    >>> lines = [{"status": 200, "rows": 1, "cost": 3.0, "stopped": "answered", "value": 1.0}] * 100
    >>> print(compare_log(plan, lines)[0].text)
    Rows cost 3 units in the mean of 100, 2 promised: 50 % more.
    """
    plans = model.plans if isinstance(model, Menu) else [model]
    if all(plan.promise is None for plan in plans):
        raise ValueError("The plan has no promise to compare with. Add plan.with_promise(X, y) on validation rows.")
    version = content_hash(model)
    answered = [line for line in lines if line.get("status", 200) == 200 and line.get("cost") is not None]
    ours = [line for line in answered if line.get("version", version) == version]
    found = []
    if len(ours) < len(answered):
        others = len(answered) - len(ours)
        found.append(Finding("rows", f"{others} of {len(answered)} lines are of other versions than {version}.", False))
    if len(ours) < FEWEST:
        raise ValueError(f"The log has {len(ours)} answers of version {version}: too few, {FEWEST} are needed.")
    looked = [(line, expected(model, line.get("budget"))) for line in ours]
    found += _log_spending(looked, model.costs.unit)
    found += _failures(ours)
    for number, plan in enumerate(plans):
        mine = [line for line, e in looked if e.promise is not None and e.number == number and "value" in line]
        if plan.promise is not None and len(mine) >= FEWEST:
            found += _log_predictions(plan, plan.promise, mine, outcomes or {})
    return sorted(found, key=lambda finding: not finding.is_drift)


def _log_spending(looked: list[tuple[Mapping[str, Any], Expectation]], unit: str) -> list[Finding]:
    lines = [(line, e) for line, e in looked if e.cost is not None]
    n = math.fsum(line.get("rows", 1) for line, _ in lines)
    if not n:
        return []
    paid = np.repeat(
        [line["cost"] / line.get("rows", 1) for line, _ in lines], [line.get("rows", 1) for line, _ in lines]
    )
    meant = math.fsum(line.get("rows", 1) * float(e.cost or 0.0) for line, e in lines) / n
    return [_spending(paid, meant, lines[0][1].promise, unit)]


def _log_predictions(
    plan: Plan, promise: Promise, lines: list[Mapping[str, Any]], outcomes: Mapping[str, Any]
) -> list[Finding]:
    scores = [line.get("confidence") if plan.classes is not None else line["value"] for line in lines]
    numbers = np.array([np.nan if s is None or isinstance(s, list) else float(s) for s in scores])
    said = np.array([str(line["value"]) for line in lines]) if plan.classes is not None else None
    found = _predictions(promise, numbers[np.isfinite(numbers)], said)
    known = [(line["value"], outcomes.get(line.get("request_id", ""), line.get("outcome"))) for line in lines]
    known = [(value, outcome) for value, outcome in known if outcome is not None]
    if known:
        values, came = zip(*known)
        found += _quality(plan, promise, np.array(values), np.array(came))
    return found


def _spending(paid: Floats, promised: float, promise: Promise | None, unit: str) -> Finding:
    mean, n = float(np.mean(paid)), len(paid)
    spread = float(np.std(paid)) if promise is None else max(float(np.std(paid)), promise.spread)
    error = spread * math.sqrt(1.0 / n + (0.0 if promise is None else 1.0 / promise.n_rows))
    change = mean / promised - 1.0 if promised else math.copysign(math.inf, mean) if mean else 0.0
    is_drift = n >= FEWEST and abs(change) > SPENDING and abs(mean - promised) > SURE * error
    how = "as promised" if not is_drift else f"{abs(change):.0%} {'more' if change > 0 else 'less'}".replace("%", " %")
    money = f" {unit}" if unit else ""
    text = f"Rows cost {mean:.4g}{money} in the mean of {n}, {promised:.4g} promised: {how}."
    return Finding("spending", text, is_drift)


def _predictions(promise: Promise, scores: Floats, said: Array | None) -> list[Finding]:
    found = []
    if len(scores) >= FEWEST:
        index = promise.score.stability(promise.score.counts(scores), promise.n_rows)
        text = f"Scores of {len(scores)} rows have a stability index of {index:.2f}: {_size(index)}."
        found.append(Finding("scores", text, index > LARGE))
    if said is not None and len(said) >= FEWEST:
        counted, changes = Counter(map(str, said.tolist())), []
        for name in {*counted, *promise.classes}:
            now, then = counted[name] / len(said), promise.classes.get(name, 0.0)
            if _has_changed(now, len(said), then, promise.n_rows):
                changes.append((abs(now - then), f"{name!r} {_percent(now)}, {_percent(then)} promised"))
        worst = [text for _, text in sorted(changes, reverse=True)[:MOST_SAID]]
        text = f"Predicted classes: {'; '.join(worst)}." if worst else "Classes are predicted as often as promised."
        found.append(Finding("classes", text, bool(worst)))
    return found


def _quality(plan: Plan, promise: Promise, said: Array, y: Array) -> list[Finding]:
    if promise.quality is None or len(y) < FEWEST or (plan.classes is None and plan.n_outputs > 1):
        return []
    quality = quality_of(plan, said, y)
    if plan.classes is not None:
        name, is_worse = "Accuracy", quality < promise.quality
        is_drift = is_worse and _has_changed(quality, len(y), promise.quality, promise.n_rows, least=0.0)
    else:
        name, is_worse = "The mean squared error", quality > promise.quality
        each = (said - y.astype(np.float64)) ** 2
        error = float(np.std(each)) * math.sqrt(1.0 / len(y) + 1.0 / promise.n_rows)
        is_drift = is_worse and quality - promise.quality > SURE * error
    how = "worse" if is_drift else "as promised"
    text = f"{name} is {quality:.4g} on {len(y)} rows with outcomes, {promise.quality:.4g} promised: {how}."
    return [Finding("quality", text, is_drift)]


def _failures(lines: list[Mapping[str, Any]]) -> list[Finding]:
    reasons = Counter(str(line["stopped"]) for line in lines if "stopped" in line)
    n = sum(reasons.values())
    found = []
    for reason, count in reasons.most_common():
        if reason.startswith("failed:") and count > SHARE * n:
            name = reason.removeprefix("failed:")
            found.append(Finding("failures", f"{name!r} failed for {_percent(count / n)} of {n} rows.", True))
    return found


def _features(plan: Plan, X: Floats) -> list[Finding]:
    if plan.profile is None or len(X) < FEWEST:
        return []
    found, profile = [], plan.profile
    for histogram in profile.features:
        counts = histogram.counts(X[:, plan.tables.feature_numbers[histogram.name]])
        index, missing = histogram.stability(counts, profile.n_rows), counts[-1] / len(X)
        has_gaps = _has_changed(missing, len(X), histogram.missing, profile.n_rows)
        if index > MODERATE or has_gaps:
            text = f"{histogram.name!r} has a stability index of {index:.2f} ({_size(index)})"
            text += f"; missing {_percent(missing)}, {_percent(histogram.missing)} in training" if has_gaps else ""
            found.append((index, Finding(f"feature {histogram.name}", text + ".", index > LARGE or has_gaps)))
    found.sort(key=lambda pair: (not pair[1].is_drift, -pair[0]))
    rest = len(profile.features) - len(found)
    same = [Finding("features", f"{rest} features are distributed as in training.", False)] if rest else []
    return [finding for _, finding in found] + same


def _has_changed(now: float, n: int, then: float, m: int, least: float = SHARE) -> bool:
    """Whether a share differs by more than `least` and than chance."""
    p = (n * now + m * then + 1.0) / (n + m + 2.0)
    return n >= FEWEST and abs(now - then) > max(least, SURE * math.sqrt(p * (1.0 - p) * (1.0 / n + 1.0 / m)))


def _size(index: float) -> str:
    return "a large change" if index > LARGE else "a moderate change" if index > MODERATE else "no change to speak of"


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g} %"
