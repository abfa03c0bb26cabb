"""Plans in which some prices depend on the row: any random plan with two more features that prices depend on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from miserly.costs import CostTable, LinearPrice
from oracles.random_plans import random_plan, random_rows


def row_priced(seed, *, charge="learner", queries=False, paid=False, kind=None):
    """A plan, rows and their queries. Prices depend on features that are free, or that "pre" must be `paid` for."""
    plan = random_plan(seed, kind=kind, queries=queries, charge=charge)
    X, qid = random_rows(plan, seed)
    rng = np.random.default_rng(seed + 7)
    costs = plan.costs
    names = [a for a in costs.prices if not a.startswith("unused")]
    chosen = [a for a in names if rng.random() < 0.6] or names[:1]
    prices = dict(costs.prices) | {"pre": 0.25 if paid else 0.0}
    for a in chosen:
        per = {"size": float(rng.choice([0.5, 1.0])), "rate": float(rng.choice([-0.25, 0.125]))}
        prices[a] = LinearPrice(float(rng.choice([0.25, 0.5])), per, float(rng.choice([0.25, 1.5])))
    before = ("pre",) if paid else ()
    needs = {f: (*(before if set(wanted) & set(chosen) else ()), *wanted) for f, wanted in costs.needs.items()}
    needs |= {"size": before, "rate": before}
    table = CostTable((*costs.features, "size", "rate"), needs, prices, costs.evaluation)
    means = None if plan.means is None else np.append(plan.means, [1.0, 1.0])
    extra = np.column_stack([rng.integers(0, 5, len(X)) / 2.0, rng.integers(0, 2, len(X)) / 1.0])
    return replace(plan, costs=table, means=means), np.column_stack([X, extra]), qid


def constant_for(plan, x):
    """The plan with the prices of one row as constants."""
    at = dict(zip(plan.costs.features, x.tolist()))
    own = {a: rule.base + sum(v * at[f] for f, v in rule.per.items()) for a, rule in plan.costs.row_prices.items()}
    table = plan.costs
    costs = CostTable(table.features, table.needs, {**table.prices, **own}, table.evaluation)
    return replace(plan, costs=costs)
