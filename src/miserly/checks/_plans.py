"""The battery for plans. Each check raises AssertionError with what went wrong; data are a few dozen rows."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from miserly.plan import Plan, PlanFileError, Walk, load_plan

Check = Callable[[Plan, np.ndarray, np.ndarray], None]


def check_plan(plan: Plan, X: np.ndarray, qid: Any = None) -> list[str]:
    """Run the whole battery on a plan.

    Each check raises AssertionError with what went wrong.

    Parameters
    ----------
    plan : Plan
        The plan to check.
    X : array of shape (n_rows, n_features)
        Rows to run it on; a few dozen are enough.
    qid : array of shape (n_rows,), default=None
        The query of each row. By default all rows are of one query.

    Returns
    -------
    list of str
        The names of the checks that ran.

    Examples
    --------
    >>> import numpy as np
    >>> from miserly.costs import CostTable
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> costs = CostTable.per_feature({"age": 1.0, "crp": 12.5})
    >>> plan = Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [0.1, 1.0]),), [0.0], means=[40.0, 2.0])
    >>> check_plan(plan, np.array([[50.0, 3.0], [30.0, 1.0]]))[-1]
    'check_file_is_the_plan'
    """
    X = np.asarray(X, dtype=np.float64)
    query = np.zeros(len(X), np.intp) if qid is None else np.asarray(qid)
    for check in PLAN_CHECKS:
        check(plan, X, query)
    return [check.__name__ for check in PLAN_CHECKS]


def check_unpaid_values_do_not_matter(plan: Plan, X: np.ndarray, qid: np.ndarray) -> None:
    """Poison: NaN or garbage in place of every value that a row did not pay for changes nothing."""
    for budget in _budgets(plan, X, qid):
        unpaid = ~_paid_values(plan, X, qid, budget)
        honest = plan.run(X, qid, budget)
        for poison in (np.nan, 1e9, -1e9):
            poisoned = plan.run(np.where(unpaid, poison, X), qid, budget)
            assert np.array_equal(honest.score, poisoned.score, equal_nan=True), f"unpaid values matter at {budget}"
            assert np.array_equal(honest.cost, poisoned.cost), f"unpaid values change the cost at budget {budget}"


def check_each_acquisition_is_charged_once(plan: Plan, X: np.ndarray, qid: np.ndarray) -> None:
    """A row's cost is the price of the set it bought, plus the evaluation of the learners used for it, each once."""
    ledger = plan.tables.ledger
    number = {a: i for i, a in enumerate(plan.costs.acquisitions)}
    for walk, cost in zip(_walked(plan, X, qid, None), plan.predict_cost(X, qid)):
        assert len(set(walk.bought)) == len(walk.bought), f"bought twice: {walk.bought}"
        owned = sum(1 << number[a] for a in walk.bought)
        assert walk.account.owned == owned, "the account owns what was not bought"
        assert cost == ledger.price(owned, walk.account.evaluated), "the cost is not the price of what was bought"


def check_one_row_is_a_batch(plan: Plan, X: np.ndarray, qid: np.ndarray) -> None:
    """One row at a time (one query, where gates compare documents), walked without I/O: the same bits as a batch."""
    for budget in _budgets(plan, X, qid):
        batch = plan.run(X, qid, budget)
        for i, walk in enumerate(_walked(plan, X, qid, budget)):
            assert np.array_equal(walk.best.score, batch.score[i], equal_nan=True), f"row {i} differs at {budget}"
            assert walk.cost == batch.cost[i], f"row {i} pays {walk.cost} alone, {batch.cost[i]} in a batch"
            assert (walk.stopped == "budget") == batch.out_of_budget[i], f"row {i} stops for another reason"
        for rows in _queries(plan, qid):
            part = plan.run(X[rows], qid[rows], budget)
            assert np.array_equal(part.score, batch.score[rows], equal_nan=True), "a part differs from the whole"
            assert np.array_equal(part.cost, batch.cost[rows]), "a part costs other than in the whole"


def check_budget_is_kept(plan: Plan, X: np.ndarray, qid: np.ndarray) -> None:
    """No row pays more than its budget; an unlimited budget changes nothing."""
    for budget in _budgets(plan, X, qid):
        if budget is not None:
            for charge in ("learner", "path"):
                cost = plan.predict_cost(X, qid, budget, charge)
                assert (cost <= budget).all(), f"a budget of {budget} was exceeded: {cost.max()}"
    free, unlimited = plan.run(X, qid), plan.run(X, qid, math.inf)
    assert np.array_equal(free.score, unlimited.score, equal_nan=True), "an unlimited budget changes the answers"


def check_cost_is_one_number(plan: Plan, X: np.ndarray, qid: np.ndarray) -> None:
    """`predict_cost`, `run` and the walk tell the same cost, and a path never costs more than the learners."""
    cost = plan.predict_cost(X, qid)
    assert np.array_equal(cost, plan.run(X, qid).cost), "run and predict_cost differ"
    assert np.array_equal(cost, [walk.cost for walk in _walked(plan, X, qid, None)]), "walk and predict_cost differ"
    by_path, by_learner = (plan.predict_cost(X, qid, charge=c) for c in ("path", "learner"))
    assert (by_path <= by_learner).all(), "walking the paths costs more than owning everything"


def check_file_is_the_plan(plan: Plan, X: np.ndarray, qid: np.ndarray) -> None:
    """Plan → file → plan is the identity; a damaged file gives a clear error."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.plan"
        plan.save(path)
        again = load_plan(path)
        assert again == plan, "the plan changed on its way through a file"
        assert np.array_equal(again.run(X, qid).score, plan.run(X, qid).score, equal_nan=True)
        path.write_bytes(path.read_bytes()[:-40])
        try:
            load_plan(path)
        except PlanFileError:
            return
        raise AssertionError("a damaged plan file was accepted")


PLAN_CHECKS: tuple[Check, ...] = (
    check_unpaid_values_do_not_matter,
    check_each_acquisition_is_charged_once,
    check_one_row_is_a_batch,
    check_budget_is_kept,
    check_cost_is_one_number,
    check_file_is_the_plan,
)


def _budgets(plan: Plan, X: np.ndarray, qid: np.ndarray) -> list[float | None]:
    """No budget, nothing, and amounts around what rows pay."""
    costs = np.unique(plan.predict_cost(X, qid))
    some = costs[np.unique(np.linspace(0, len(costs) - 1, 4).astype(int))]
    return [None, 0.0, *(float(c) for c in some), *(float(c) * 0.6 for c in some)]


def _walked(plan: Plan, X: np.ndarray, qid: np.ndarray, budget: float | None) -> Iterator[Walk]:
    """Each row walked to its end, given only what it asked for."""
    walks: dict[int, Walk] = {}
    for rows in _queries(plan, qid):
        together = plan.start_list(len(rows), budget, given=[_values(plan, X[i], set()) for i in rows])
        while together.needs:
            for i, needs in together.needs.items():
                owned = {*together.walks[i].bought, *needs}
                together.supply(i, _values(plan, X[rows[i]], owned))
        walks.update(zip(rows.tolist(), together.walks))
    return iter(walks[i] for i in range(len(X)))


def _values(plan: Plan, row: np.ndarray, owned: set[str]) -> dict[str, float]:
    """The features that a set of acquisitions gives."""
    return {f: row[i] for i, f in enumerate(plan.costs.features) if owned.issuperset(plan.costs.needs[f])}


def _paid_values(plan: Plan, X: np.ndarray, qid: np.ndarray, budget: float | None) -> np.ndarray:
    paid = np.zeros(X.shape, bool)
    for i, walk in enumerate(_walked(plan, X, qid, budget)):
        given = _values(plan, X[i], set(walk.bought))
        paid[i] = [f in given for f in plan.costs.features]
    return paid


def _queries(plan: Plan, qid: np.ndarray) -> list[np.ndarray]:
    """Rows that must be run together: those of a query if gates compare documents, else each alone."""
    if not plan.by_query:
        return [np.array([i]) for i in range(len(qid))]
    return [np.flatnonzero(qid == q) for q in np.unique(qid)]
