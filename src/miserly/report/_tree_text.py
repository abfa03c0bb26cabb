"""The trees of a plan as text, as scikit-learn's `export_text` writes one."""

from __future__ import annotations

from collections.abc import Iterator

from miserly.frontiers import figure
from miserly.plan import Plan, Trees
from miserly.report._wording import question


def export_text(plan: Plan, tree: int = 0) -> str:
    """Write one tree of a plan: questions, thresholds and leaf values.

    Parameters
    ----------
    plan : Plan
        A plan over trees.
    tree : int, default=0
        The number of the tree, from 0.

    Returns
    -------
    str
        One line for each question and leaf; "or missing" stands where a missing value goes.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.baselines import PathTreeRegressor
    >>> X = np.arange(20.0)[:, None]
    >>> costs = ms.CostTable.per_feature({"age": 1.0})
    >>> model = PathTreeRegressor(costs, tradeoff=0.0, max_leaf_nodes=2).fit(X, X[:, 0] > 9)
    >>> print(export_text(model.plan_))
    ├─ age ≤ 9.5 or missing
    │  └─ value 0
    └─ age > 9.5
       └─ value 1
    """
    trees = plan.dictionary
    if not isinstance(trees, Trees):
        raise ValueError(f"The plan weighs {trees.kind} learners, not trees. Use plan.describe().")
    if not 0 <= tree < len(trees):
        raise ValueError(f"The plan has {len(trees)} trees, numbered from 0: there is no tree {tree}.")
    return "\n".join(_lines(plan, trees, int(trees.start[tree]), ""))


def _lines(plan: Plan, trees: Trees, place: int, indent: str) -> Iterator[str]:
    left = int(trees.left[place])
    if left == place:
        yield f"{indent}└─ value {figure(float(trees.value[place]))}"
        return
    yes, no = question(plan, int(trees.feature[place]), float(trees.threshold[place]))
    right_too = bool(trees.missing_right[place])
    yield f"{indent}├─ {yes}{'' if right_too else ' or missing'}"
    yield from _lines(plan, trees, left, f"{indent}│  ")
    yield f"{indent}└─ {no}{' or missing' if right_too else ''}"
    yield from _lines(plan, trees, left + 1, f"{indent}   ")
