"""Contributions: for each row what each purchase moved the score, and what it cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from miserly import _display
from miserly._typing import Bools, Floats, Rows
from miserly.costs import set_bits
from miserly.kernels import policy as policy_kernels
from miserly.plan._attribution import add_nodes, by_acquisition, check_background, start_parts
from miserly.plan._program import Program, Step
from miserly.plan._run import Run, _Batch, _blocks

if TYPE_CHECKING:
    from miserly.plan._plan import Plan
    from miserly.plan._policy import PolicyPlan
    from miserly.plan._policy_walk import PolicyWalk
    from miserly.plan._walk import Walk


class Contribution(NamedTuple):
    """What one purchase moved, and what it cost.

    Parameters
    ----------
    acquisition : str
        What was bought.
    moved : array of float of shape (n_outputs,)
        How much it moved each score.
    paid : float
        Its price; 0 if the row owned it already.

    Examples
    --------
    >>> import numpy as np
    >>> from miserly.plan import Contribution
    >>> Contribution("crp", np.array([0.5]), 12.5).paid
    12.5
    """

    acquisition: str
    moved: Floats
    paid: float


@dataclass(frozen=True, eq=False, repr=False)
class Contributions:
    """What each purchase moved the scores of rows. For every row  base + free + sum of values = score.

    `plan.contributions(X)` makes them.

    Parameters
    ----------
    acquisitions : tuple of str
        What the plan may buy.
    outputs : tuple of str
        What the scores are of: the classes, or "score".
    base : array of float of shape (n_rows, n_outputs)
        What the nodes that scored the row predict when nothing is known.
    free : array of float of shape (n_rows, n_outputs)
        What values moved that nobody had to buy.
    values : array of float of shape (n_rows, n_acquisitions, n_outputs)
        What each acquisition moved; 0 where it was not bought.
    bought : array of bool of shape (n_rows, n_acquisitions)
        Which were bought.
    paid : array of float of shape (n_rows, n_acquisitions)
        What each cost the row.
    evaluation : array of float of shape (n_rows,)
        What the row paid for the evaluation of learners.
    score : array of float of shape (n_rows, n_outputs)
        The scores, as `plan.run(X).score`.
    unit : str
        The unit of the prices.

    Examples
    --------
    >>> import numpy as np
    >>> from miserly.costs import CostTable
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> costs = CostTable.per_feature({"age": 1.0, "crp": 12.5})
    >>> plan = Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [0.1, 1.0]),), [0.0], means=[40.0, 2.0])
    >>> found = plan.contributions(np.array([[50.0, 3.0]]))
    >>> found.base[0].tolist(), found.values[0, :, 0].tolist(), found.score[0].tolist()
    ([6.0], [1.0, 1.0], [8.0])
    >>> print(found.text(0))
    score          moved  paid
    nothing known  6
    age            +1     1
    crp            +1     12.5
    in all         8      13.5
    """

    acquisitions: tuple[str, ...]
    outputs: tuple[str, ...]
    base: Floats
    free: Floats
    values: Floats
    bought: Bools
    paid: Floats
    evaluation: Floats
    score: Floats
    unit: str

    def __len__(self) -> int:
        return len(self.score)

    def row(self, i: int) -> list[Contribution]:
        """The purchases of one row, the one that moved most first."""
        moved = np.abs(self.values[i]).sum(axis=1)
        order = sorted(np.flatnonzero(self.bought[i]), key=lambda a: (-moved[a], a))
        return [Contribution(self.acquisitions[a], self.values[i, a], float(self.paid[i, a])) for a in order]

    def frame(self) -> list[dict[str, Any]]:
        """One record for each purchase of each row: what it moved each score, and what it cost."""
        return [
            {"row": i, "acquisition": one.acquisition, **self._by_output(one.moved), "paid": one.paid}
            for i in range(len(self))
            for one in self.row(i)
        ]

    def summary(self) -> list[dict[str, Any]]:
        """One record for each acquisition: the share of rows that bought it, what it moved them in the mean (without
        its sign), and what all rows paid for it in the mean; the one that moved most first."""
        size = np.abs(self.values).sum(axis=2)
        records = []
        for a, name in enumerate(self.acquisitions):
            mine = self.bought[:, a]
            moved = float(size[mine, a].mean()) if mine.any() else 0.0
            share = float(mine.mean()) if len(self) else 0.0
            paid = float(self.paid[:, a].mean()) if len(self) else 0.0
            records.append({"acquisition": name, "bought": share, "moved": moved, "paid": paid})
        return sorted(records, key=lambda r: -r["moved"] * r["bought"])

    def to_dict(self, i: int = 0) -> dict[str, Any]:
        """One row as plain data, as the server sends it."""
        return {
            "outputs": list(self.outputs),
            "base": self.base[i].tolist(),
            "free": self.free[i].tolist(),
            "purchases": [
                {"acquisition": one.acquisition, "moved": one.moved.tolist(), "paid": one.paid} for one in self.row(i)
            ],
            "evaluation": float(self.evaluation[i]),
            "score": self.score[i].tolist(),
        }

    def text(self, i: int = 0) -> str:
        """One row as a small table; of several scores the one that is highest."""
        k = int(np.argmax(self.score[i])) if self.score.shape[1] > 1 else 0
        lines = [(self.outputs[k], "moved", "paid"), ("nothing known", f"{self.base[i, k]:.4g}", "")]
        if self.free[i, k]:
            lines.append(("what is free", f"{self.free[i, k]:+.4g}", ""))
        lines += [(one.acquisition, f"{one.moved[k]:+.4g}", f"{one.paid:g}") for one in self.row(i)]
        if self.evaluation[i]:
            lines.append(("evaluation", "", f"{self.evaluation[i]:g}"))
        total = math.fsum([*self.paid[i], self.evaluation[i]])
        lines.append(("in all", f"{self.score[i, k]:.4g}", f"{total:g}"))
        widths = [max(len(line[c]) for line in lines) for c in range(2)]
        return "\n".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in lines)

    def __repr__(self) -> str:
        first = ", ".join(r["acquisition"] for r in self.summary()[:3] if r["moved"])
        return f"<Contributions of {len(self)} rows, {len(self.acquisitions)} acquisitions; most by {first or 'none'}>"

    def _repr_html_(self) -> str:
        if len(self) == 1:
            return _display.text(self.text())
        records = self.summary()
        drawn = _display.bars(
            [(r["acquisition"], r["moved"] * r["bought"]) for r in records], "mean change of the score"
        )
        return drawn + _display.table(records, f"{len(self)} rows, {self.unit}")

    def _by_output(self, moved: Floats) -> dict[str, float]:
        if len(moved) == 1:
            return {"moved": float(moved[0])}
        return {f"moved {name}": float(m) for name, m in zip(self.outputs, moved)}


# ---- many rows ----------------------------------------------------------------------------------------------------


class _ExplainedBatch(_Batch):
    """A block of rows that keeps the parts of their scores."""

    def __init__(self, program: Program, X: NDArray[Any], query: Rows, budget: float, charge: str) -> None:
        self.parts = start_parts(program.plan, len(X))
        super().__init__(program, X, query, budget, charge)

    def _score(self, step: Step, rows: Rows) -> None:
        super()._score(step, rows)
        seen = self.seen[rows] if self.is_limited else self.program.seen[None]
        mine = self.parts[rows]
        add_nodes(self.plan, range(step.first, step.last + 1), self.X[rows], seen, mine)
        self.parts[rows] = mine

    def explained(self) -> Contributions:
        """What the rows' purchases moved."""
        run = self.run()
        wanted = _wanted(self.plan)
        values, free = by_acquisition(self.plan, self.parts, wanted)
        accounts = [_flags(account.owned, wanted) for account in self.accounts.accounts]
        bought = np.array(accounts, bool).reshape(len(accounts), len(wanted))[self.accounts.of_row]
        return _built(self.plan, wanted, self.parts[:, -1], free, values, bought, run)


def contributions(plan: Plan, X: NDArray[Any], query: Rows, budget: float) -> Contributions:
    """Those of a plan that is a graph of nodes."""
    check_background(plan)
    if budget < math.inf and plan.tables.most_expensive <= budget:
        budget = math.inf
    program = plan.tables.program("all" if budget == math.inf else "none" if plan.charge == "path" else "free")
    width = (len(plan.used_features) + 1) * plan.n_outputs
    found, blocks = [], []
    for rows in _blocks(program, query, max(width, X.shape[1])):
        blocks.append(rows)
        found.append(_ExplainedBatch(program, X[rows], query[rows], budget, plan.charge).explained())
    if len(found) == 1:
        return found[0]
    return joined_rows(found, blocks)


def joined_rows(found: list[Contributions], rows: list[Rows]) -> Contributions:
    """Those of several parts of the rows, in the order of the rows."""
    back, first = np.argsort(np.concatenate(rows), kind="stable"), found[0]
    acquisitions = tuple(dict.fromkeys(name for one in found for name in one.acquisitions))
    found = [_widened(one, acquisitions) for one in found]
    names = ("base", "free", "values", "bought", "paid", "evaluation", "score")
    arrays = {name: np.concatenate([getattr(one, name) for one in found])[back] for name in names}
    return Contributions(acquisitions, first.outputs, unit=first.unit, **arrays)


def _widened(one: Contributions, acquisitions: tuple[str, ...]) -> Contributions:
    """With columns of zeros for acquisitions that only others buy."""
    if one.acquisitions == acquisitions:
        return one
    place = [acquisitions.index(name) for name in one.acquisitions]
    arrays: dict[str, Any] = {}
    for name in ("values", "bought", "paid"):
        old = getattr(one, name)
        arrays[name] = np.zeros((len(old), len(acquisitions), *old.shape[2:]), old.dtype)
        arrays[name][:, place] = old
    return replace(one, acquisitions=acquisitions, **arrays)


def _wanted(plan: Plan) -> list[int]:
    """The acquisitions that a plan may buy."""
    bought = 0
    for k in range(len(plan.nodes)):
        bought |= plan.tables.purchase(k)[0]
    return list(set_bits(bought))


def _flags(owned: int, wanted: list[int]) -> list[bool]:
    return [bool(owned >> a & 1) for a in wanted]


def _built(
    plan: Plan, wanted: list[int], base: Floats, free: Floats, values: Floats, bought: Bools, run: Run
) -> Contributions:
    prices = np.array([plan.costs.price_list[a] for a in wanted], np.float64)
    paid = bought * prices
    evaluation = run.cost - paid.sum(axis=1)
    evaluation[np.abs(evaluation) <= 1e-12 * np.maximum(1.0, run.cost)] = 0.0
    names = tuple(plan.costs.acquisitions[a] for a in wanted)
    return Contributions(
        names, _outputs(plan), base.copy(), free, values, bought, paid, evaluation, run.score, plan.costs.unit
    )


def _outputs(plan: Plan) -> tuple[str, ...]:
    n, classes = plan.n_outputs, plan.classes
    if classes is not None and len(classes) == n:
        return tuple(str(c) for c in classes)
    if classes is not None and n == 1:
        return (str(classes[-1]),)
    return ("score",) if n == 1 else tuple(f"score {k}" for k in range(n))


# ---- policies -----------------------------------------------------------------------------------------------------


def policy_contributions(plan: PolicyPlan, X: NDArray[Any], budget: float) -> Contributions:
    """Those of a policy, which predicts in every state: what each purchase changed when it was made, in the order of
    the row. Acquisitions that are bought in one step divide the change equally."""
    wanted = list(range(len(plan.costs.acquisitions)))
    run, owns, _ = plan.walk_all(X, budget, steps=0)
    base = np.tile(_nothing_known(plan), (len(X), 1)) if plan.nodes else run.score.copy()
    base[run.out_of_budget & (run.exit[:, 0] < 0)] = plan.prior
    free, values = run.score - base, np.zeros((len(X), len(wanted), plan.n_outputs))
    for step in range(1, len(plan.candidates) + 1):
        after, now, _ = plan.walk_all(X, budget, steps=step)
        new = now & ~owns
        share = new / np.maximum(new.sum(axis=1, keepdims=True), 1)
        values += share[:, :, None] * (after.score - run.score)[:, None, :]
        run, owns = after, now
        if not new.any():
            break
    run = plan.walk_all(X, budget)[0]
    return _built(plan, wanted, base, free, values, owns, run)


def _nothing_known(plan: PolicyPlan) -> Floats:
    """The calibrated score of a row of which nothing is known."""
    x = np.full(len(plan.costs.features) + plan.n_outputs + 1, np.nan)
    score, z = plan.prior.copy(), plan.prior.copy()
    policy_kernels.score_row(x, 0, plan.model[0], score, z)
    return z


# ---- one row ------------------------------------------------------------------------------------------------------


def walk_contributions(walk: Walk) -> Contributions:
    """Those of one row on its way, from the nodes that scored it and what it knew."""
    plan = walk.plan
    check_background(plan)
    best = walk.best
    parts, seen = start_parts(plan, 1), walk._known_features()[None]
    for nodes in walk._scored_nodes:
        add_nodes(plan, nodes, walk._x[None], seen, parts)
    wanted = _wanted(plan)
    apart = np.zeros(len(plan.costs.features), bool)
    apart[walk._apart] = True
    values, free = by_acquisition(plan, parts, wanted, apart)
    return _of_walk(walk, wanted, parts[:, -1], free, values, best.score)


def policy_walk_contributions(walk: PolicyWalk) -> Contributions:
    """Those of one row of a policy, from its scores after each purchase."""
    plan = walk.plan
    wanted = list(range(len(plan.costs.acquisitions)))
    base = (_nothing_known(plan) if plan.nodes and walk.exit[0] >= 0 else plan.prior)[None]
    values, before, free = np.zeros((1, len(wanted), plan.n_outputs)), base[0], np.zeros((1, plan.n_outputs))
    for asked, z in walk._trail:
        bought = list(set_bits(asked))
        if bought:
            values[0, bought] += (z - before) / len(bought)
        else:
            free[0] += z - before
        before = z
    return _of_walk(walk, wanted, base, free, values, walk.best.score)


def _of_walk(walk: Walk, wanted: list[int], base: Floats, free: Floats, values: Floats, score: Floats) -> Contributions:
    plan = walk.plan
    paid = np.array([_flags(walk.account.owned, wanted)], bool).reshape(1, len(wanted))
    owned = np.array([_flags(walk.owned, wanted)], bool).reshape(1, len(wanted))
    cost, none = np.array([walk.cost]), np.zeros((1, 1), np.int64)
    run = Run(score[None], score[None], cost, none[0], none, np.zeros(1, bool))
    found = _built(plan, wanted, base, free, values, paid, run)
    return replace(found, bought=owned)
