"""One row through a policy plan without any I/O, from any state of knowledge."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from miserly.kernels import policy as kernels
from miserly.plan._contributions import Contributions, policy_walk_contributions
from miserly.plan._state_walk import StateWalk
from miserly.plan._walk import NOTHING, Best, ListWalk

if TYPE_CHECKING:
    from miserly.plan._policy import PolicyPlan


class Offer(NamedTuple):
    """A purchase that a row could make now: its acquisitions, their price, the expected drop of loss by them alone, and
    the drop per price by which it is ranked (with the purchase after it where that is better)."""

    acquisitions: tuple[str, ...]
    price: float
    gain: float
    rate: float


class PolicyWalk(StateWalk):
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
        self._set_out(plan, budget, owned)
        n_outputs, n_features, n = plan.n_outputs, len(plan.costs.features), len(plan.candidates)
        self._seen = np.full(n_features + n_outputs + 1, np.nan)  # the values as the trees read them, then the scores
        self._knows = np.zeros(len(plan.used_features), bool)
        self._barred = np.zeros(len(plan.costs.acquisitions), bool)
        self._gain, self._price, self._rate = np.empty((3, n))
        self._row_score, self._z = plan.prior.copy(), plan.prior.copy()
        self._trail: list[tuple[int, NDArray[np.float64]]] = []  # what was bought, and the scores then
        self._begin_row(given, without, plan.evaluated)

    def _know(self, f: int, value: float) -> None:
        if f in self.plan.slots:
            self._x[f] = value
            self._read(f)
            self._knows[self.plan.slots[f]] = True

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

    # ---- inside ---------------------------------------------------------------------------------------------------

    def _bar(self, acquisition: str) -> None:
        super()._bar(acquisition)
        self._barred[self.plan.tables.acquisition_numbers[acquisition]] = True

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
            self._ask_for(plan.candidates[self._chosen])


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
