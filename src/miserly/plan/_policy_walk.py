"""One row through a policy plan without any I/O, from any state of knowledge."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from miserly.costs import set_bits
from miserly.kernels import policy as kernels
from miserly.plan._contributions import Contributions, policy_walk_contributions
from miserly.plan._walk import NOTHING, Best, ListWalk, Walk

if TYPE_CHECKING:
    from miserly.plan._policy import PolicyPlan


class Offer(NamedTuple):
    """A purchase that a row could make now: its acquisitions, their price, the expected drop of loss by them alone, and
    the drop per price by which it is ranked (with the purchase after it where that is better)."""

    acquisitions: tuple[str, ...]
    price: float
    gain: float
    rate: float


class PolicyWalk(Walk):
    """The way of one row. `needs` names what is bought next; `ranking` all that could be; `best` is always there."""

    plan: PolicyPlan

    def __init__(
        self,
        plan: PolicyPlan,
        budget: float = math.inf,
        given: Mapping[str, float] = NOTHING,
        without: Iterable[str] = (),
        owned: Iterable[str] = (),
    ) -> None:
        self.plan, self.budget, self.by_path = plan, budget, False
        self.account = self._paid = plan.tables.ledger.empty
        self.tier = self.asked = self._dead = self._root = 0
        self.stopped: str | None = None
        self.needs: tuple[str, ...] = ()
        self.bought: list[str] = []
        self.exit = [-1]
        self.waiting = None
        self._reason = "answered"
        self._had = plan.tables.acquisition_set(owned)
        n_outputs, n_features, n = plan.n_outputs, len(plan.costs.features), len(plan.candidates)
        self._x = np.full(n_features, np.nan)  # values as they came
        self._seen = np.full(n_features + n_outputs + 1, np.nan)  # the same as the trees read them, then the scores
        self._knows = np.zeros(len(plan.used_features), bool)
        self._has, self._owns, self._barred = np.zeros((3, len(plan.costs.acquisitions)), bool)
        self._gain, self._price, self._rate = np.empty((3, n))
        self._row_score, self._z = plan.prior.copy(), plan.prior.copy()
        self._trail: list[tuple[int, NDArray[np.float64]]] = []  # what was bought, and the scores then
        self._begin(given, without)

    def _begin(self, given: Mapping[str, float], without: Iterable[str]) -> None:  # type: ignore[override]
        plan = self.plan
        for name in given:
            if name not in plan.tables.feature_numbers:
                raise KeyError(f"The plan knows no feature {name!r}.")
        for s, f in enumerate(plan.used_features):
            name = plan.costs.features[f]
            if name in given:
                self._x[f] = given[name]
                self._read(f)
                self._knows[s] = True
        for name in plan.tables.known_at_first(self._had):
            if name not in given:
                raise KeyError(f"Without any purchase there are the features [{name!r}], which were not supplied.")
        self._has[list(set_bits(self._had))] = True
        self._owns |= self._has
        for name in without:
            self._bar(name)
        first = plan.tables.ledger.after(self.account, 0, plan.evaluated)
        if first.total > self.budget:
            self.stop("budget")
            return
        self._evaluation = first.total
        self.account, self.exit = first, [0 if plan.nodes else -1]
        self._advance()

    def _read(self, f: int) -> None:
        """Take a value into the state."""
        value, (_, misses) = self._x[f], self.plan.model[3]
        self._seen[f] = kernels.BOUGHT_BUT_MISSING if np.isnan(value) and misses[f] else value

    # ---- what a driver uses ---------------------------------------------------------------------------------------

    @property
    def best(self) -> Best:
        """The prediction from what is known now."""
        plan, z = self.plan, self._z[None].copy()
        proba = plan.probabilities(z)[0] if plan.classes is not None else None
        return Best(plan.read_row(z), proba, z[0].copy(), 0)

    def contributions(self) -> Contributions:
        """What each purchase so far changed the score when it was made, and what it cost."""
        return policy_walk_contributions(self)

    @property
    def ranking(self) -> list[Offer]:
        """All that could be bought now and is available, best rate first, whether or not it fits the budget."""
        plan = self.plan
        if self.stopped == "budget" and not self.exit[0] >= 0:
            return []
        order = [c for c in np.argsort(-self._rate, kind="stable") if self._rate[c] >= 0.0]
        missing = [plan.candidates[c] & ~self.owned for c in order]
        return [
            Offer(plan.tables.acquisition_names(m), float(self._price[c]), float(self._gain[c]), float(self._rate[c]))
            for c, m in zip(order, missing)
        ]

    @property
    def expected_gain(self) -> float:
        """The expected drop of loss by what is asked for now; 0 if nothing is."""
        return float(self._gain[self._chosen]) if self.needs else 0.0

    def supply_columns(self, values: Iterable[tuple[NDArray[np.intp], Sequence[float]]]) -> None:
        """The values by the numbers of their columns, unchecked: for a driver that knows what arrives."""
        for columns, numbers in values:
            self._x[columns] = numbers
        self._pay()

    def fail(self, acquisition: str) -> None:
        """An acquisition is unavailable: nobody pays for it, and it is not asked for again."""
        if self.stopped is not None or self.plan.tables.acquisition_set([acquisition]) & self.owned:
            return
        if acquisition in self.needs and self._reason == "answered":
            self._reason = f"failed:{acquisition}"
        self._bar(acquisition)
        if self.needs:
            self._advance()

    def stop(self, reason: str) -> None:
        """End the walk with the best prediction so far, for the driver's own reason (a deadline, say)."""
        if self.stopped is None:
            self.needs, self.asked, self.stopped = (), 0, reason

    # ---- inside ---------------------------------------------------------------------------------------------------

    def _bar(self, acquisition: str) -> None:
        number = self.plan.tables.acquisition_numbers[acquisition]
        self._barred[number] = True
        self._dead |= 1 << number

    def _pay(self) -> None:
        self.account = self._paid
        self.bought += self.needs
        self._owns[list(set_bits(self.asked))] = True
        self._advance()

    def _advance(self) -> None:
        """Score the row from what is known, rate the candidates, and ask for the best or stop."""
        plan = self.plan
        predictor, values, offers, columns = plan.model
        policy, link, width = plan.policy, predictor[11], len(self._x)
        assert policy is not None
        n_known = kernels.reveal(self._x, self._seen, self._knows, self._owns, offers, columns)
        kernels.score_row(self._seen, n_known, predictor, self._row_score, self._z)
        self._trail.append((self.asked, self._z.copy()))
        most = kernels.append_scores(self._seen, width, link, self._z)
        state, rated = (self._seen, self._knows, self._owns, self._barred), (self._gain, self._price, self._rate)
        kernels.rate_candidates(*state, most, values, offers, *rated)
        limits = (policy.tradeoff, self.budget, self._evaluation)
        chosen, blocked = kernels.choose(self._rate, self._owns, self._has, offers, *limits)
        self._chosen = int(chosen)
        if kernels.is_confident(self._seen, width, link, self._z, policy.confidence):
            self.stop(self._reason)
        elif chosen < 0:
            self.stop("budget" if blocked and self._reason == "answered" else self._reason)
        else:
            self.asked = plan.candidates[self._chosen] & ~self.owned
            self.needs = plan.tables.acquisition_names(self.asked)
            self._paid = plan.tables.ledger.after(self.account, self.asked)


class PolicyListWalk(ListWalk):
    """Several rows, each on its own way."""

    def __init__(
        self,
        plan: PolicyPlan,
        given: Sequence[Mapping[str, float]],
        budget: float = math.inf,
        without: Sequence[str] = (),
        owned: Sequence[Iterable[str]] | None = None,
    ) -> None:
        had = owned if owned is not None else [()] * len(given)
        self.walks = [PolicyWalk(plan, budget, known, without, mine) for known, mine in zip(given, had)]
