"""What next? The prediction from whatever is known of a row, and what is worth buying."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from miserly import _display
from miserly._typing import Floats
from miserly.plan import Menu, Plan, PolicyWalk, gains_of_unknowns
from miserly.runtime._extractor_set import did_you_mean

LEAST_GAIN = 1e-9  # of expected loss; less is the rounding of a purchase that moves nothing
NOISE = 1e-4  # of the expected loss now, or of the best gain: less is no reason to buy


class Candidate(NamedTuple):
    """A purchase that could be made now.

    Parameters
    ----------
    acquisitions : tuple of str
        What is bought together, at least one.
    price : float
        What they cost, 0 or more.
    gain : float
        The expected drop of the loss (log loss for classes, squared error for numbers).
    low, high : float
        A lower and an upper estimate of it; equal to `gain` where there is only one estimate.

    Examples
    --------
    >>> from miserly.runtime import Candidate
    >>> Candidate(("crp",), price=10.0, gain=2.0, low=1.0, high=3.0).rate
    0.2
    """

    acquisitions: tuple[str, ...]
    price: float
    gain: float
    low: float
    high: float

    @property
    def rate(self) -> float:
        """The expected gain per price; infinite if it gains something for nothing."""
        return self.gain / self.price if self.price > 0 else math.inf if self.gain > 0 else 0.0


@dataclass(frozen=True, repr=False)
class Advice:
    """What is known, and what to do next.

    Parameters
    ----------
    value : label or float
        The prediction from what is known now.
    probabilities : array of shape (n_classes,) or None
        The probability of each class; None for numbers.
    next : str or None
        The acquisition to buy next; None if it is time to stop.
    together : tuple of str
        All acquisitions of that purchase: `next`, and those that are of use only with it. Empty at a stop.
    price : float
        What they cost; 0 at a stop.
    expected_gain : float
        The expected drop of the loss (log loss for classes, squared error for numbers) by that purchase; 0 at a stop.
    ranking : tuple of Candidate
        All that could be bought within the budget, best gain per price first; those that gain next to nothing come
        last.
    stop : bool
        Whether nothing more should be bought.
    why : str
        The reason in one sentence.
    plan : Plan
        The plan that advises; of a menu, the one that the budget chooses.
    unknown_words : tuple of str, default=()
        The known features with a word that was not seen in training: they count as missing.

    Examples
    --------
    >>> import miserly as ms
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> costs = ms.CostTable.per_feature({"age": 0.0, "crp": 10.0}, unit="usd")
    >>> plan = Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [0.1, 2.0]),), [0.0], means=[40.0, 1.0])
    >>> advice = ms.advise(plan, known={"age": 60, "crp": 3.0})
    >>> print(advice.value, advice.next, advice.stop)
    12.0 None True
    >>> advice.why
    'Stop: the plan asks for nothing more; its prediction is final.'
    """

    value: Any
    probabilities: Floats | None
    next: str | None
    together: tuple[str, ...]
    price: float
    expected_gain: float
    ranking: tuple[Candidate, ...]
    stop: bool
    why: str
    plan: Plan
    unknown_words: tuple[str, ...] = ()

    def __repr__(self) -> str:
        buy = f"buy {self.next} for {self.price:g} {self.plan.costs.unit}" if self.price else f"look at {self.next}"
        what = buy if self.next else "stop"
        return f"<Advice: now {self.value}; {what}; {len(self.ranking)} candidates>"

    def _repr_html_(self) -> str:
        rows = [
            {"acquisitions": list(c.acquisitions), "price": c.price, "expected gain": c.gain, "gain per price": c.rate}
            for c in self.ranking
        ]
        gains = [(" + ".join(c.acquisitions), c.gain) for c in self.ranking]
        drawn = _display.bars(gains, "expected gain of what could be bought")
        return _display.text(f"{repr(self)[1:-1]}\n{self.why}") + drawn + (_display.table(rows) if rows else "")


def advise(
    plan_or_menu: Plan | Menu,
    known: Mapping[str, Any] | None = None,
    unavailable: Iterable[str] = (),
    budget: float | None = None,
    owned: Iterable[str] = (),
) -> Advice:
    """The prediction from what is known of a row, and what to buy next.

    Any state of knowledge is valid: values may have come in any order, and need not be those that the plan would buy.

    Parameters
    ----------
    plan_or_menu : Plan or Menu
        What predicts. Of a menu, the plan that is best within the budget says what to buy.
    known : mapping of feature to value, optional
        The values that are known. Neither they nor what they need, such as a blood draw, are paid for. None means that
        the value was bought, without a result.
    unavailable : iterable of str, optional
        Acquisitions or features that are not available now; they are never advised.
    budget : float, optional
        What may still be paid; without limit by default.
    owned : iterable of str, optional
        More acquisitions that were bought already; they are not charged again. Features of what is owned that are not
        `known` count as missing.

    Returns
    -------
    Advice

    Examples
    --------
    >>> import miserly as ms
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> costs = ms.CostTable.per_feature({"age": 0.0, "crp": 10.0}, unit="usd")
    >>> plan = Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [0.1, 2.0]),), [0.0], means=[40.0, 1.0])
    >>> advice = ms.advise(plan, known={"age": 60}, budget=20)
    >>> print(advice.value, advice.next, advice.price)
    8.0 crp 10.0
    """
    limit = math.inf if budget is None else float(budget)
    had = _bought(plan_or_menu, known or {}, owned)
    plan = _choose(plan_or_menu, limit, had) if isinstance(plan_or_menu, Menu) else plan_or_menu
    values = _numbers(plan, known or {})
    arrived = plan.tables.arriving(0, plan.tables.acquisition_set(had)) if had else ()
    values = {**dict.fromkeys(arrived, math.nan), **values}
    away = [a for a in _acquisitions(plan, unavailable, values) if a not in had]
    answering = _answering(plan_or_menu, values) if isinstance(plan_or_menu, Menu) else plan
    best = _now(answering, values)

    def walk(without: Sequence[str]) -> Any:
        return plan.start(limit, {**_free(plan, values), **values}, without, had)

    here = walk(away)
    offers = _within(plan, here, values, set(away), set(had), limit)
    noise = _noise(best, offers)
    ranking = tuple(sorted(offers, key=lambda c: (c.gain <= noise, -c.rate, -c.gain, c.price)))
    first = _asked_for(here, ranking)
    if first is not None and not first.price and first.gain <= noise and not isinstance(here, PolicyWalk):
        # what is free and tells nothing does not stand before what is worth its price
        idle = [a for c in ranking if not c.price and c.gain <= noise for a in c.acquisitions]
        other = _asked_for(walk([*away, *idle]), ranking)
        first = other if other is not None and other.gain > noise else first
    words = () if plan.schema is None else plan.schema.unknown_words(known or {})
    if first is None:
        why = _why_stop(here.stopped, limit, plan)
        return Advice(best.value, best.probabilities, None, (), 0.0, 0.0, ranking, True, why, plan, words)
    last, why = first.acquisitions[-1], _why_buy(first, plan, ranking, noise)
    now = best.value, best.probabilities, last, first.acquisitions, first.price, first.gain
    return Advice(*now, ranking, False, why, plan, words)


def _bought(plan_or_menu: Plan | Menu, known: Mapping[str, Any], owned: Iterable[str]) -> list[str]:
    """The acquisitions that are paid for, each one that there is: those that are owned, and what known values need."""
    prices, needs = plan_or_menu.costs.prices, plan_or_menu.costs.needs
    for name in owned:
        if name not in prices:
            raise ValueError(f"There is no acquisition {name!r}.{did_you_mean(name, list(prices))}")
    return list(dict.fromkeys([*owned, *(a for name in known for a in needs.get(name, ()))]))


def _noise(best: Any, offers: Sequence[Candidate]) -> float:
    """Gains up to this are no reason to buy: a small part of the loss that is expected now; of numbers, whose loss is
    not known, of the best gain."""
    if best.probabilities is None:
        return max([LEAST_GAIN, *(NOISE * c.gain for c in offers)])
    p = np.asarray(best.probabilities)
    return max(LEAST_GAIN, NOISE * float(-np.sum(p * np.log(np.maximum(p, 1e-300)))))


def _choose(menu: Menu, limit: float, had: Sequence[str]) -> Plan:
    """The plan of a menu that is best within what may be paid and what was paid: one consultation follows one plan."""
    paid = menu.costs.price_of(had)
    return menu.choose(None if math.isinf(limit) else limit + paid).plan


def _asked_for(walk: Any, ranking: Sequence[Candidate]) -> Candidate | None:
    """The best of what the plan asks for; of purchases that hold more than that, only where there is no other."""
    needs = set(walk.needs)
    whole = [c for c in ranking if set(c.acquisitions) <= needs]
    return next(iter(whole or [c for c in ranking if set(c.acquisitions) & needs]), None)


def _why_buy(first: Candidate, plan: Plan, ranking: Sequence[Candidate], noise: float) -> str:
    names = " and ".join(map(repr, first.acquisitions))
    if not first.price:
        gain = f" It is expected to lower the loss by {first.gain:.3g}." if first.gain > noise else ""
        return f"Look at {names}, which is free.{gain}"
    free = [repr(a) for c in ranking if not c.price for a in c.acquisitions]
    free_too = f" Look at {', '.join(dict.fromkeys(free))} too, which is free." if free else ""
    buy = f"Buy {names} for {first.price:g} {plan.costs.unit}:"
    if first.gain <= noise:
        needed = "the plan needs it to decide what comes next; by itself it is not expected to lower the loss."
        return f"{buy} {needed}{free_too}"
    gain = f"it is expected to lower the loss by {first.gain:.3g}, the most for its price of what the plan asks for."
    return f"{buy} {gain}{free_too}"


def _numbers(plan: Plan, known: Mapping[str, Any]) -> dict[str, float]:
    """Values as the plan reads them."""
    values = {}
    for name, value in known.items():
        if name not in plan.costs.needs:
            raise ValueError(f"The plan knows no feature {name!r}.{did_you_mean(name, plan.costs.features)}")
        if plan.schema is not None:
            values[name] = plan.schema.number(name, value)
        else:
            try:
                values[name] = math.nan if value is None else float(value)
            except (TypeError, ValueError):
                raise ValueError(
                    f"The value of {name!r} is not a number: {value!r}. The plan knows no words: fit on data.frame(), "
                    "or add the schema of the table, replace(plan, schema=data.schema)."
                ) from None
    return values


def _acquisitions(plan: Plan, unavailable: Iterable[str], values: Mapping[str, float]) -> list[str]:
    """What must not be asked for: the acquisitions by name, and those without which a named feature cannot be known."""
    away: list[str] = []
    prices, needs = plan.costs.prices, plan.costs.needs
    for name in unavailable:
        if name in prices:
            away.append(name)
        elif name in needs:
            serving = [a for a in needs[name] if sum(a in others for others in needs.values()) == 1]
            away += serving or list(needs[name])
        else:
            known = [*prices, *needs]
            raise ValueError(f"There is no acquisition or feature {name!r}.{did_you_mean(name, known)}")
    return list(dict.fromkeys(away))


def _free(plan: Plan, values: Mapping[str, float]) -> dict[str, float]:
    """Features that need nothing and are not known count as missing: nobody can buy them."""
    return {name: math.nan for name in plan.tables.arriving(0, 0) if name not in values}


def _now(plan: Plan, values: Mapping[str, float]) -> Any:
    """The prediction if nothing more is bought."""
    if isinstance(plan.start(0.0, {**_free(plan, values), **values}), PolicyWalk):
        return plan.start(0.0, {**_free(plan, values), **values}, plan.costs.acquisitions).best
    if plan.costs.evaluation:  # predicting costs nothing here
        plan = replace(plan, costs=replace(plan.costs, evaluation=0.0))
    at_no_price = [a for a, price in plan.costs.prices.items() if not price]
    return plan.start(0.0, {**_free(plan, values), **values}, at_no_price).best


def _answering(menu: Menu, values: Mapping[str, float]) -> Plan:
    """The plan that predicts best with what is known: under a cap of what its known features would cost."""
    best, found = -math.inf, menu.plans[0]
    for i, plan in enumerate(menu.plans):
        used = [plan.costs.features[f] for f in plan.used_features]
        worth = plan.costs.price([f for f in used if f in values])
        is_whole = all(f in values for f in used)
        column = len(menu.caps) - 1 if is_whole else max(0, int(np.searchsorted(menu.caps, worth, side="right")) - 1)
        if menu.quality[i, column] > best:
            best, found = float(menu.quality[i, column]), plan
    return found


def _within(
    plan: Plan, walk: Any, values: Mapping[str, float], away: set[str], had: set[str], limit: float
) -> list[Candidate]:
    """All that could be bought within the budget."""
    if isinstance(walk, PolicyWalk):
        offers = [Candidate(o.acquisitions, o.price, o.gain, o.gain, o.gain) for o in walk.ranking]
    else:
        offers = _offers(plan, values, away, had)
    return [c for c in offers if c.price <= limit and c.acquisitions]


def _offers(plan: Plan, values: Mapping[str, float], away: set[str], had: set[str]) -> list[Candidate]:
    gains = gains_of_unknowns(plan, values)
    lacking = {f: frozenset(plan.costs.needs[f]) - had for f in gains}
    unknown = [f for f in gains if lacking[f] and not lacking[f] & away]
    offers = []
    for needs in dict.fromkeys(lacking[f] for f in unknown):
        served = [gains[f] for f in unknown if needs >= lacking[f]]
        low, gain, high = (math.fsum(each) for each in zip(*served))
        names = sorted(needs, key=lambda a: (-_uses(plan, a), plan.costs.acquisitions.index(a)))
        offers.append(Candidate(tuple(names), plan.costs.price_of(needs), gain, low, high))
    return offers


def _uses(plan: Plan, acquisition: str) -> int:
    return sum(acquisition in needs for needs in plan.costs.needs.values())


def _why_stop(reason: str | None, limit: float, plan: Plan) -> str:
    if reason == "budget":
        return f"Stop: what the plan would buy next does not fit the {limit:g} {plan.costs.unit} that are left."
    if reason is not None and reason.startswith("failed:"):
        return f"Stop: {reason.removeprefix('failed:')!r} is unavailable, and the plan asks for nothing else."
    return "Stop: the plan asks for nothing more; its prediction is final."
