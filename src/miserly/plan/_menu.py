"""A menu: the plans of a whole frontier in one thing that answers under any budget.

A table of validation results says how good each plan is under each cap; the menu takes the plan that is best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from miserly import _display
from miserly._typing import Array, Floats, Rows
from miserly.costs import Caps, read_budget, tighter, worth
from miserly.plan import _menu_file
from miserly.plan._certificate import Figure
from miserly.plan._contributions import Contributions, joined_rows
from miserly.plan._frozen import Frozen, frozen
from miserly.plan._measured import measured_prices, really_paid
from miserly.plan._plan import Budget, Plan
from miserly.plan._profile import Promise
from miserly.plan._reprice import Repricing, compared, new_costs, repriced_menu, shares_bought
from miserly.plan._run import Run
from miserly.plan._validation import as_matrix
from miserly.plan._walk import ListWalk, Walk

N_CAPS = 32
Quality = Callable[[Plan, Run], float]


class Choice(NamedTuple):
    """A plan, the cap under which it runs, and its quality and mean cost on validation rows under that cap."""

    number: int
    plan: Plan
    cap: Any
    quality: float
    cost: float


@dataclass(frozen=True, eq=False)
class Menu(Frozen):
    """The plans of a frontier as one predictor that keeps any budget.

    Parameters
    ----------
    plans : sequence of Plan
        At least one, with the same prices, link and classes. A plan without nodes, the free constant, should be one of
        them: it answers where nothing else fits.
    caps : array of shape (n_caps,)
        The hard caps that were tried on validation rows, rising; the last is infinite (no cap).
    quality : array of shape (n_plans, n_caps)
        The quality of each plan on validation rows under each cap; greater is better.
    cost : array of shape (n_plans, n_caps)
        The mean cost of each plan on validation rows under each cap.
    names : sequence of str, optional
        A name for each plan; by default the estimator in its notes.
    metric : str, default="quality"
        What `quality` measures, for people.
    bought : array of shape (n_plans, n_acquisitions), optional
        The share of validation rows that bought each acquisition without a cap, for `reprice`.
    repriced : Repricing, optional
        What new prices changed, after `reprice`; not saved.

    Examples
    --------
    >>> import numpy as np
    >>> from miserly.costs import CostTable
    >>> from miserly.plan import Menu, Node, Plan, RawFeatures
    >>> costs = CostTable.per_feature({"a": 1.0, "b": 5.0})
    >>> free = Plan(costs, RawFeatures([0]), (), [0.0], roots=())
    >>> both = Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [1.0, 1.0]),), [0.0], means=[0.0, 0.0])
    >>> menu = Menu([free, both], [0.0, 1.0, np.inf], [[-9, -9, -9], [-9, -4, -1]], [[0, 0, 0], [0, 1, 6]])
    >>> menu.predict(np.array([[2.0, 3.0]]), budget=1)
    array([2.])
    >>> menu.predict_cost(np.array([[2.0, 3.0]]))
    array([6.])
    """

    plans: tuple[Plan, ...]
    caps: Floats
    quality: Floats
    cost: Floats
    names: tuple[str, ...] = ()
    metric: str = "quality"
    bought: Floats | None = None
    repriced: Repricing | None = None

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "plans", tuple(self.plans))
        for name in ("caps", "quality", "cost"):
            set_(self, name, frozen(getattr(self, name), np.float64))
        if self.bought is not None:
            set_(self, "bought", frozen(self.bought, np.float64))
        named = self.names or [str(plan.notes.get("estimator", "Plan")) for plan in self.plans]
        set_(self, "names", tuple(str(name) for name in named))
        self._check()

    def __repr__(self) -> str:
        cheap, full = float(self.cost[:, -1].min()), float(self.cost[:, -1].max())
        unit = self.plans[0].costs.unit
        return (
            f"<Menu: {len(self.plans)} plans, mean costs {cheap:.4g} to {full:.4g} {unit}, measured by {self.metric}>"
        )

    def _repr_html_(self) -> str:
        lines = zip(self.names, self.quality[:, -1].tolist(), self.cost[:, -1].tolist())
        rows = [{"plan": name, self.metric: quality, "mean cost": cost} for name, quality, cost in lines]
        front = [(float(self.cost.ravel()[at]), float(self.quality.ravel()[at])) for at in self._hull]
        drawn = _display.steps(front, f"{self.metric} against mean cost")
        return drawn + _display.table(sorted(rows, key=lambda row: row["mean cost"]), repr(self)[1:-1])

    def _check(self) -> None:
        shape = (len(self.plans), len(self.caps) if self.caps.ndim == 1 else 0)
        if not self.plans or not shape[1] or not math.isinf(self.caps[-1]) or (np.diff(self.caps) <= 0).any():
            raise ValueError("A menu has at least one plan, and caps that rise to infinity.")
        if self.quality.shape != shape or self.cost.shape != shape or len(self.names) != shape[0]:
            raise ValueError(f"A menu's tables are plans × caps, here {shape}, and each plan has a name.")
        if np.isnan(self.caps).any() or not np.isfinite(self.quality).all() or not np.isfinite(self.cost).all():
            raise ValueError("A menu's caps, qualities and costs are numbers.")
        first = self.plans[0]
        if self.bought is not None and (
            self.bought.shape != (shape[0], len(first.costs.prices))
            or not ((self.bought >= 0) & (self.bought <= 1)).all()
        ):
            raise ValueError("What a menu's plans bought are shares from 0 to 1, plans × acquisitions.")
        for number, plan in enumerate(self.plans):
            if plan.costs != first.costs:
                raise ValueError(f"Plan {number} has other features or prices than the first.")
            if plan.link != first.link or not np.array_equal(plan.classes, first.classes):  # type: ignore[arg-type]
                raise ValueError(f"Plan {number} does not answer as the first does: another link, or other classes.")

    @classmethod
    def measured(
        cls,
        plans: Sequence[Plan],
        X: Any,
        quality: Quality,
        qid: Any = None,
        caps: Sequence[float] | None = None,
        names: Sequence[str] = (),
        metric: str = "quality",
        weights: Callable[[Run], Floats] | None = None,
    ) -> Menu:
        """The menu of some plans, with its tables measured on validation rows.

        Parameters
        ----------
        plans : sequence of Plan
            What the menu offers.
        X : array or frame
            Validation rows, which no plan was trained on.
        quality : callable
            `quality(plan, run)` says how good the run of a plan on `X` is; greater is better.
        qid : array, optional
            The query of each row, for plans that rank.
        caps : sequence of float, optional
            The caps to try; by default 0 and 31 that follow what rows pay, up to the most that any row pays.
        names, metric
            As in the constructor.
        weights : callable, optional
            `weights(run)` says how much each row counts for the mean cost; by default all count alike. Where none does,
            all do.
        """
        runs = [plan.run(X, qid) for plan in plans]
        tried = [*(_typical_caps(runs) if caps is None else sorted(set(caps) - {math.inf})), math.inf]
        table = np.zeros((2, len(plans), len(tried)))
        for i, (plan, whole) in enumerate(zip(plans, runs)):
            for j, cap in enumerate(tried):
                run = whole if cap >= plan.tables.most_expensive else plan.run(X, qid, cap)
                table[:, i, j] = quality(plan, run), _mean_cost(run, weights)
        bought = None
        if all(type(plan) is Plan for plan in plans):  # what a policy buys depends on the prices
            bought = np.array([shares_bought(plan, X, qid) for plan in plans])
        promised = [replace(p, promise=Promise.of(p, run)) if len(run.cost) else p for p, run in zip(plans, runs)]
        return cls(tuple(promised), np.array(tried), table[0], table[1], tuple(names), metric, bought)

    def certified(
        self,
        X_cal: Any,
        y_cal: Any = None,
        target: float = 0.95,
        of: Figure = "accuracy",
        delta: float = 0.05,
        positive: Any = None,
    ) -> Menu:
        """The menu of those plans that can be certified, all of them together with probability 1 − delta.

        Each plan gets an equal share of delta. The guarantee holds for whole plans: a cap that cuts into a plan's
        purchases voids it, and so the tables are measured on the calibration rows again.

        Parameters
        ----------
        X_cal, y_cal, target, of, delta, positive
            As in `Plan.certified`.
        """
        kept, errors = [], []
        for name, plan in zip(self.names, self.plans):
            try:
                kept.append((name, plan.certified(X_cal, y_cal, target, of, delta / len(self.plans), positive)))
            except ValueError as error:
                errors.append(error)
        if not kept:
            raise errors[-1]
        names, plans = zip(*kept)

        def right(plan: Plan, run: Run) -> float:
            assert plan.certificate is not None
            return plan.certificate.n_right / plan.certificate.n_counted - float(run.out_of_budget.mean())

        return Menu.measured(plans, X_cal, right, names=names, metric=of)

    def reprice(
        self,
        costs: Any,
        X: Any = None,
        quality: Quality | None = None,
        qid: Any = None,
    ) -> Menu:
        """The same plans under new prices, counted and chosen again; nothing is trained.

        `repriced` of the result, and `describe`, say what changed and whether retraining would pay. Without validation
        rows, figures are exact without a cap, and estimates under one unless all prices moved by one factor.

        Parameters
        ----------
        costs : CostTable or mapping of str to float
            The new prices of the same features and acquisitions; a mapping changes some of them.
        X : array or frame, default=None
            Validation rows to measure on again.
        quality : callable, default=None
            `quality(plan, run)` as in `measured`; given with X.
        qid : array, default=None
            The query of each row, for plans that rank.
        """
        if (X is None) != (quality is None):
            raise ValueError("reprice measures again on rows: give both X and quality(plan, run), or neither.")
        known = self
        if self.bought is None and X is not None:
            known = replace(self, bought=np.array([shares_bought(plan, X, qid) for plan in self.plans]))
        if X is None or quality is None:
            table, caps, qualities, cost, change = repriced_menu(known, costs)
            plans = tuple(plan.reprice(table) for plan in self.plans)
            made = Menu(plans, caps, qualities, cost, self.names, self.metric, known.bought)
        else:
            table = new_costs(self.costs, costs)
            plans = tuple(plan.reprice(table) for plan in self.plans)
            made = Menu.measured(plans, X, quality, qid, names=self.names, metric=self.metric)
            before = self.cost[:, -1]
            rates = np.divide(made.cost[:, -1], before, out=np.ones(len(before)), where=before > 0)
            change = compared(known, table, rates)
        return replace(made, repriced=change)

    # ---- choosing ---------------------------------------------------------------------------------------------

    @property
    def costs(self) -> Any:
        """The prices that all plans share."""
        return self.plans[0].costs

    @property
    def classes(self) -> NDArray[Any] | None:
        """The classes that all plans answer with, if they do."""
        return self.plans[0].classes

    def choose(self, budget: Budget = None, mean_budget: float | None = None) -> Choice:
        """The plan that is best on validation rows under a hard cap per row, within a mean, or without any limit. Caps
        by currency choose as what they are worth together does, and are kept all the same.

        More money never gives a plan that was worse on validation rows: a larger budget may still run a plan under a
        smaller cap. Where nothing fits, the cheapest plan is taken, under the cap.
        """
        limit = read_budget(budget, self.costs.exchange, self.costs.unit)
        if isinstance(limit, Caps):
            chosen = self.choose(worth(limit, self.costs.exchange), mean_budget)
            return chosen._replace(cap=tighter(chosen.cap, limit))
        cap, mean = limit, _number(mean_budget)
        allowed = (self.caps <= cap) | (self._most_paid[:, None] <= np.minimum(cap, self.caps))
        allowed &= self.cost <= mean
        if not allowed.any():
            cheapest = int(np.lexsort((-self.quality[:, 0], self.cost[:, 0]))[0])
            return self._choice(cheapest, 0)._replace(cap=min(cap, float(self.caps[0])))
        quality = np.where(allowed, self.quality, -np.inf)
        best = np.flatnonzero((quality == quality.max()).ravel())
        at = best[np.argmin(self.cost.ravel()[best])]
        chosen = self._choice(*divmod(int(at), len(self.caps)))
        return chosen._replace(cap=min(chosen.cap, cap))

    def neighbours(self, mean_budget: float) -> tuple[Choice, Choice, float]:
        """Two choices between which a mean cost lies on the upper hull of the validation table, and the share of rows
        that take the second so that the mean is hit."""
        hull = self._hull
        costs = [self.cost.ravel()[at] for at in hull]
        k = int(np.searchsorted(costs, _number(mean_budget), side="right"))
        low, high = (self._choice(*divmod(hull[max(0, min(i, len(hull) - 1))], len(self.caps))) for i in (k - 1, k))
        gap = high.cost - low.cost
        return low, high, 0.0 if gap <= 0 else float(np.clip((mean_budget - low.cost) / gap, 0.0, 1.0))

    def _choice(self, plan: int, cap: int) -> Choice:
        at = plan, cap
        return Choice(plan, self.plans[plan], float(self.caps[cap]), float(self.quality[at]), float(self.cost[at]))

    @cached_property
    def _most_paid(self) -> Floats:
        """What no row of each plan can exceed."""
        return np.array([plan.tables.most_expensive for plan in self.plans])

    @cached_property
    def _hull(self) -> list[int]:
        """The points of the table (plan × cap) on the upper concave hull of quality over mean cost, by rising cost."""
        cost, quality = self.cost.ravel(), self.quality.ravel()
        hull: list[int] = []
        for at in np.lexsort((-quality, cost)).tolist():
            if hull and quality[at] <= quality[hull[-1]]:
                continue
            while len(hull) > 1 and _is_below(cost, quality, hull[-2], hull[-1], at):
                hull.pop()
            hull.append(at)
        return hull

    # ---- answering --------------------------------------------------------------------------------------------

    def predict(self, X: Any, **how: Any) -> NDArray[Any]:
        """Labels, or numbers where there are no classes.

        Parameters
        ----------
        X : array or frame, rows × features
            The rows; each reads only what it pays for.
        **how
            `budget`, the most that any row may pay; or `mean_budget`, what rows may pay in the mean (as measured on
            validation rows); with `mix=True` some rows, drawn by a hash, take the next larger plan so that the mean is
            used up. `key`, one per row, is hashed instead of the row's values. `qid`, the query of each row.
        """
        return self._answers(X, lambda plan, run: plan.read(run.z), **how)

    def predict_proba(self, X: Any, **how: Any) -> Floats:
        """Probability of each class, rows × classes; arguments as in `predict`."""
        return self._answers(X, lambda plan, run: plan.probabilities(run.z), **how)

    def score(self, X: Any, **how: Any) -> Floats:
        """Raw scores; arguments as in `predict`."""
        return self._answers(X, lambda plan, run: run.score[:, 0] if run.score.shape[1] == 1 else run.score, **how)

    def predict_cost(self, X: Any, *, prices: Any = None, **how: Any) -> Floats:
        """What each row pays; arguments as in `predict`. With measured `prices`, as in `Plan.predict_cost`, what each
        row really paid for what it bought."""
        if prices is None:
            return self._answers(X, lambda plan, run: run.cost, **how)
        first = self.plans[0]
        matrix = as_matrix(X, first.costs.features, first.costs.named, first.schema)
        named = measured_prices(first.costs, prices, len(matrix)).items()
        measured = {first.costs.acquisitions[a]: values for a, values in named}

        def paid(plan: Plan, run: Run, rows: Rows) -> Floats:
            return really_paid(plan, run, matrix[rows], {a: values[rows] for a, values in measured.items()})

        return self._answers_by_row(X, paid, **how)

    def contributions(self, X: Any, qid: Any = None, **how: Any) -> Contributions:
        """What each purchase moved the scores, and what it cost, by the plans that the budget chooses; see
        `Plan.contributions`. Other arguments as in `predict`."""
        matrix = as_matrix(X, self.costs.features, self.costs.named, self.plans[0].schema)
        query = None if qid is None else np.asarray(qid)
        parts = list(self._parts(matrix, **how))
        found = [
            plan.contributions(matrix[rows], None if query is None else query[rows], cap) for rows, plan, cap in parts
        ]
        return joined_rows(found, [rows for rows, _, _ in parts])

    def _answers(self, X: Any, read: Callable[[Plan, Run], Array], **how: Any) -> Array:
        return self._answers_by_row(X, lambda plan, run, rows: read(plan, run), **how)

    def _answers_by_row(
        self, X: Any, read: Callable[[Plan, Run, Rows], Array], qid: Any = None, strict: bool = False, **how: Any
    ) -> Array:
        first = self.plans[0]
        matrix = as_matrix(X, first.costs.features, first.costs.named, first.schema)
        query = None if qid is None else np.asarray(qid)
        out: Array | None = None
        for rows, plan, cap in self._parts(matrix, **how):
            run = plan.run(matrix[rows], None if query is None else query[rows], cap, strict=strict)
            part = read(plan, run, rows)
            if out is None:
                out = np.empty((len(matrix), *part.shape[1:]), part.dtype)
            out[rows] = part
        assert out is not None
        return out

    def _parts(
        self,
        X: Array,
        budget: Budget = None,
        mean_budget: float | None = None,
        mix: bool = False,
        key: Any = None,
    ) -> Iterator[tuple[Rows, Plan, Any]]:
        """Which rows go through which plan, under which cap."""
        everyone = np.arange(len(X))
        if not mix:
            chosen = self.choose(budget, mean_budget)
            yield everyone, chosen.plan, chosen.cap
            return
        if mean_budget is None or budget is not None:
            raise ValueError("mix=True draws plans so that a mean is hit: give mean_budget, and no budget.")
        low, high, share = self.neighbours(mean_budget)
        takes_high = (_row_hash(X) if key is None else np.array([key_hash(k) for k in key])) < share
        for chosen, who in ((low, ~takes_high), (high, takes_high)):
            if who.any() or (chosen is low and not len(X)):
                yield np.flatnonzero(who), chosen.plan, chosen.cap

    def start(
        self,
        budget: Budget = None,
        given: Mapping[str, float] | None = None,
        without: Sequence[str] = (),
        owned: Sequence[str] = (),
        *,
        mean_budget: float | None = None,
        key: Any = None,
    ) -> Walk:
        """Begin one row without its values, with the plan that the budget chooses.

        Parameters
        ----------
        budget : float, optional
            The most that the row may pay.
        given, without, owned
            What is known, unavailable and owned already: as in `Plan.start`.
        mean_budget : float, optional
            What rows may pay in the mean.
        key : hashable, optional
            Draws the plan so that the mean over keys is `mean_budget`, as `mix=True` does.
        """
        if key is not None and mean_budget is not None:
            low, high, share = self.neighbours(mean_budget)
            chosen = high if key_hash(key) < share else low
        else:
            chosen = self.choose(budget, mean_budget)
        return chosen.plan.start(chosen.cap, given, without, owned)

    def start_list(self, n_rows: int, budget: Budget = None, **how: Any) -> ListWalk:
        """Begin the documents of one query, with the plan that the budget chooses; see `Plan.start_list`."""
        chosen = self.choose(budget)
        return chosen.plan.start_list(n_rows, chosen.cap, **how)

    # ---- words and files --------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Menu) and (
            self.plans == other.plans
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in ("caps", "quality", "cost"))
            and (self.names, self.metric) == (other.names, other.metric)
        )

    def describe(self) -> str:
        """The menu in words: each plan with its mean cost and quality, and which is best under which cap."""
        unit = self.costs.unit
        lines = [f"A menu of {len(self.plans)} plans; costs in {unit}, {self.metric} on validation rows."]
        for i, name in enumerate(self.names):
            most = f"at most {self._most_paid[i]:g}"
            lines.append(f"  plan {i}, {name}: mean cost {self.cost[i, -1]:g} ({most}), {self.quality[i, -1]:.4g}")
        last = None
        for cap in self.caps:
            chosen = self.choose(float(cap))
            if chosen[:2] + chosen[3:] != last:
                last = chosen[:2] + chosen[3:]
                limit = "without a cap" if math.isinf(cap) else f"under a cap of {cap:g}"
                lines.append(f"  {limit}: plan {chosen.number}, mean cost {chosen.cost:g}, {chosen.quality:.4g}")
        if self.repriced is not None:
            lines.append(self.repriced.describe())
        return "\n".join(lines)

    def save(self, path: str | Path) -> None:
        """Write one file with all plans and the tables; the old file stays whole if anything goes wrong."""
        _menu_file.save_menu(self, path)


def load_menu(path: str | Path) -> Menu:
    """Read the file that `Menu.save` wrote; one that is no menu, or is damaged, gives a `PlanFileError`.

    Parameters
    ----------
    path : str or Path
        The file.

    Examples
    --------
    >>> menu = load_menu("triage.menu")  # doctest: +SKIP
    """
    menu: Menu = _menu_file.read_menu(path, Menu)
    return menu


def key_hash(key: Any) -> float:
    """A number in [0, 1) that depends on a key alone, the same in every process."""
    return int.from_bytes(blake2b(str(key).encode(), digest_size=8).digest(), "little") / 2.0**64


def _row_hash(X: Array) -> Floats:
    """A number in [0, 1) for each row that depends on its values alone."""
    numbers = np.asarray(X, np.float64) + 0.0  # there is one zero
    numbers = np.where(np.isnan(numbers), np.nan, numbers)
    mixed = np.full(len(numbers), 0x9E3779B97F4A7C15, np.uint64)
    for column in np.ascontiguousarray(numbers.T).view(np.uint64):
        mixed = (mixed ^ column) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((mixed >> np.uint64(11)).astype(np.float64) / 2.0**53)


def _mean_cost(run: Run, weights: Callable[[Run], Floats] | None) -> float:
    counted = None if weights is None else weights(run)
    return float(run.cost.mean() if counted is None or not counted.any() else np.average(run.cost, weights=counted))


def _typical_caps(runs: Sequence[Run]) -> list[float]:
    """Nothing, and amounts between the least and the most that rows pay."""
    paid = np.unique(np.concatenate([run.cost for run in runs]))
    paid = paid[paid > 0]
    if not len(paid):
        return [0.0]
    spaced = np.geomspace(paid[0], paid[-1], N_CAPS - 1)
    nearest = paid[np.clip(np.searchsorted(paid, spaced * (1 + 1e-12), side="right") - 1, 0, None)]
    return [0.0, *np.unique(nearest).tolist()]


def _number(limit: float | None) -> float:
    if limit is not None and math.isnan(limit):
        raise ValueError("The budget is not a number.")
    return math.inf if limit is None else float(limit)


def _is_below(cost: Floats, quality: Floats, a: int, b: int, c: int) -> bool:
    """Whether point b lies on or below the line from a to c."""
    return bool((quality[b] - quality[a]) * (cost[c] - cost[a]) <= (quality[c] - quality[a]) * (cost[b] - cost[a]))
