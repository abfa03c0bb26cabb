"""Look-up tables of a plan, made when they are first used: what nodes buy, what arrives with a purchase, programs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from miserly.costs import MOST, Caps, CurrencyLedger, Ledger, RowLedger, RowPrices, set_bits
from miserly.plan._node import EXIT, Node
from miserly.plan._one_row import OneRow
from miserly.plan._program import Join, Program

if TYPE_CHECKING:
    from miserly.plan._plan import Plan

remembered = lru_cache(1 << 14)
MOST_CAPS = 64  # caps by currency whose ledgers are kept


class PlanTables:
    """What running, describing and serving a plan look up in it. Sets of acquisitions and learners are bits."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    @cached_property
    def chain(self) -> tuple[int, ...]:
        """The nodes in their order if they are one chain of open gates, else nothing."""
        steps = list(self.plan.roots)
        while steps and self.plan.nodes[steps[-1]].passed != EXIT:
            steps.append(self.plan.nodes[steps[-1]].passed)
        is_chain = len(self.plan.roots) == 1 and all(self.plan.nodes[k].gate.kind == "open" for k in steps)
        return tuple(steps) if is_chain else ()

    @cached_property
    def replaces(self) -> bool:
        """Whether a stage of the chain puts its answer in place of an earlier one's."""
        return any(self.plan.nodes[k].combine == "replace" for k in self.chain[1:])

    @cached_property
    def briefs(self) -> dict[tuple[int, ...], Plan | None]:
        """What `brief` has found, by the stages that are run."""
        return {}

    @cached_property
    def ledger(self) -> Ledger:
        """The prices of everything that the plan may buy or evaluate."""
        return Ledger(self.plan.costs.price_list, self.evaluation)

    @cached_property
    def row_prices(self) -> RowPrices | None:
        """The prices that depend on the row, if there are any."""
        return RowPrices(self.plan.costs) if self.plan.costs.row_prices else None

    @cached_property
    def cautious(self) -> Plan:
        """The plan that decides by the upper quantiles of measured prices."""
        return replace(self.plan, costs=self.plan.costs.cautious())

    def ledger_under(self, limit: float | Caps) -> tuple[float, Ledger]:
        """The limit on totals of a row, and the ledger that it keeps: a new one if prices depend on the row."""
        if isinstance(limit, float) and self.row_prices is None:
            return limit, self.ledger
        if self.row_prices is not None:
            own = RowLedger(self.row_prices, self.evaluation, limit)
            return limit if isinstance(limit, float) else MOST, own
        assert isinstance(limit, Caps)
        if limit not in self._under_caps:
            if len(self._under_caps) >= MOST_CAPS:
                self._under_caps.clear()
            self._under_caps[limit] = CurrencyLedger(self.plan.costs, self.evaluation, limit)
        return MOST, self._under_caps[limit]

    @cached_property
    def _under_caps(self) -> dict[Caps, CurrencyLedger]:
        return {}

    @cached_property
    def evaluation(self) -> tuple[float, ...]:
        """The price of evaluating each learner."""
        return self.plan.costs.evaluation_prices(len(self.plan.dictionary))

    @cached_property
    def most_expensive(self) -> float:
        """The price of everything: what no row can exceed. Infinite if prices depend on the row."""
        if self.row_prices is not None and self._everything & self.row_prices.mask:
            return math.inf
        return self.ledger.price(self._everything, self._all_learners)

    @cached_property
    def _everything(self) -> int:
        everything = 0
        for bought, _ in self._purchases:
            everything |= bought
        return everything

    @cached_property
    def _all_learners(self) -> int:
        learners = 0
        for _, used in self._purchases:
            learners |= used
        return learners

    def rule_features(self, node: Node) -> list[int]:
        """The columns that a learned gate may look at."""
        used = [] if node.rule is None else node.rule.used.tolist()
        return [f for f in used if f < len(self.plan.costs.features)]

    @cached_property
    def masks(self) -> tuple[int, ...]:
        """The acquisitions that a row buys for each feature, as bit sets: none for those that are unavailable."""
        if not self.plan.unavailable:
            return self.plan.costs.feature_masks
        away = set(self.plan.unavailable)
        return tuple(0 if f in away else m for f, m in zip(self.plan.costs.features, self.plan.costs.feature_masks))

    def arriving(self, owned: int, asked: int) -> Mapping[str, int]:
        """The features in use (name → column) that a row gets when it owns some acquisitions and buys others; for
        neither, those that need nothing."""
        return self._arriving(owned, asked)

    @cached_property
    def _arriving(self) -> Callable[[int, int], Mapping[str, int]]:
        masks, names, features_of = self.masks, self.plan.costs.features, self._features_of

        @remembered
        def arriving(owned: int, asked: int) -> Mapping[str, int]:
            touched = {f for a in (set_bits(asked) if asked else [-1]) for f in features_of.get(a, [])}
            return {names[f]: f for f in sorted(touched) if not masks[f] & ~(owned | asked)}

        return arriving

    def known_at_first(self, owned: int) -> Mapping[str, int]:
        """The features in use that a row begins with: those that need nothing, and those of what it owns already."""
        return self._at_first(owned)

    @cached_property
    def _at_first(self) -> Callable[[int], Mapping[str, int]]:
        return remembered(lambda owned: {**self.arriving(0, 0), **self.arriving(0, owned)})

    def acquisition_names(self, acquisitions: int) -> tuple[str, ...]:
        """A set of acquisitions by name."""
        return self._names(acquisitions)

    @cached_property
    def _names(self) -> Callable[[int], tuple[str, ...]]:
        names = self.plan.costs.acquisitions
        return remembered(lambda acquisitions: tuple(names[a] for a in set_bits(acquisitions)))

    def acquisition_set(self, names: Iterable[str]) -> int:
        """Acquisitions as a bit set."""
        number, found = self.acquisition_numbers, 0
        for name in names:
            found |= 1 << number[name]
        return found

    @cached_property
    def acquisition_numbers(self) -> dict[str, int]:
        """The bit of each acquisition."""
        return {name: a for a, name in enumerate(self.plan.costs.acquisitions)}

    @cached_property
    def _features_of(self) -> dict[int, list[int]]:
        of: dict[int, list[int]] = {}
        for f in self.plan.used_features:
            for a in list(set_bits(self.masks[f])) or [-1]:
                of.setdefault(a, []).append(f)
        return of

    @cached_property
    def feature_numbers(self) -> dict[str, int]:
        """The column of each feature."""
        return {name: i for i, name in enumerate(self.plan.costs.features)}

    def program(self, join: Join) -> Program:
        """The plan ready to run; made once for each way of joining nodes."""
        if join not in self._programs:
            self._programs[join] = Program(self.plan, join)
        return self._programs[join]

    @cached_property
    def one_row(self) -> OneRow | None:
        """The plan ready for one row at a time, where it is a mere sum of trees."""
        return OneRow.of(self.plan)

    @cached_property
    def _programs(self) -> dict[Join, Program]:
        return {}

    @cached_property
    def _purchases(self) -> tuple[tuple[int, int], ...]:
        masks = self.masks
        of_learner: dict[int, int] = {}
        of_features: dict[bytes, int] = {}  # learners that look at the same features are looked at once
        for t in {int(t) for node in self.plan.nodes for t in node.learners}:
            features = self.plan.dictionary.features_of(t)
            key = features.tobytes()
            if key not in of_features:
                of_features[key] = 0
                for f in features:
                    of_features[key] |= masks[f]
            of_learner[t] = of_features[key]
        purchases = []
        for node in self.plan.nodes:
            acquisitions = learners = 0
            for t in node.learners:
                acquisitions |= of_learner[int(t)]
                learners |= 1 << int(t)
            for f in self.rule_features(node):
                acquisitions |= masks[f]
            purchases.append((acquisitions, learners))
        return tuple(purchases)

    def purchase(self, node: int) -> tuple[int, int]:
        """The acquisitions and the learners that a node needs, as bit sets."""
        return self._purchases[node]

    def owned_at(self, node: int) -> tuple[int, int]:
        """What every row that has been through a node owns for certain (acquisitions, learners)."""
        (have, learners), (bought, used) = self._owned_before[node], self.purchase(node)
        return have | bought, learners | used

    def new_acquisitions(self, node: int) -> int:
        """What a node buys for rows that own only what is certain."""
        return self.purchase(node)[0] & ~self._owned_before[node][0]

    @cached_property
    def _owned_before(self) -> tuple[tuple[int, int], ...]:
        before = dict.fromkeys(self.plan.roots, (0, 0))
        for k, node in enumerate(self.plan.nodes):
            have, bought = before.setdefault(k, (0, 0)), self.purchase(k)
            mine = (have[0] | bought[0], have[1] | bought[1])
            for way in node.ways:
                other = before.get(way, mine)
                before[way] = (mine[0] & other[0], mine[1] & other[1])
        return tuple(before[k] for k in range(len(self.plan.nodes)))
