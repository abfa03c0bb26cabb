"""Fast-and-frugal trees: one cue a level, an exit at every level, prices for the cues.

N. D. Phillips, H. Neth, J. K. Woike, W. Gaissmaier: FFTrees: A toolbox to create, visualize, and evaluate
fast-and-frugal decision trees. Judgment and Decision Making 12 (2017).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse

from miserly.costs import CostTable, Ledger, total_price
from miserly.estimators._base import TwoClasses, constraints, row_weights
from miserly.estimators.fast_frugal._growing import grow
from miserly.estimators.fast_frugal._levels import CueRows, FrugalLevel, Levels
from miserly.plan import Node, Plan, stack_trees

SURE = 1e-6  # log-odds that an exit has at least, on the side that it says


class FastFrugalTreeClassifier(TwoClasses):
    """A fast-and-frugal tree: one cue a level, and at each level one of its two answers ends the tree.

    It maximises  w · sensitivity + (1 − w) · specificity − λ · mean cost  on the training rows. A row pays for the cues
    on its way and for nothing else; one that lacks a value goes on to the next level.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating the tree. None is refused: `CostTable.uniform()` says that all cost
        the same.
    tradeoff : float, default=0.0001
        λ, 0 or more: the weighted accuracy that a unit of cost per row must save.
    max_levels : int, default=4
        Most levels, 1 to 8.
    sensitivity_weight : float or None, default=0.5
        w, above 0 and below 1: 0.5 is balanced accuracy. None is the share of the second class, which makes it plain
        accuracy.
    algorithm : {"auto", "ifan", "dfan", "best"}, default="auto"
        "ifan" and "dfan" are the paper's: cues are ranked once, or again for the rows that are left at each level, and
        all structures of exits are tried. "best" also tries all orders of the best cues, and then changes one level at
        a time as long as the objective grows. "auto" is "best" from 1000 rows, otherwise "ifan".
    n_candidates : int, default=6
        How many cues "best" puts in all orders, 1 to 8.
    min_samples_leaf : int, default=5
        Fewest training rows on each side of a cue, 1 or more.

    Attributes
    ----------
    plan_ : Plan
        The fitted model, one tree charged by path. Its probabilities are shares of rows weighted as in the goal.
    levels_ : tuple of FrugalLevel
        The levels, the first one first; empty if no cue is worth its price.
    classes_ : ndarray
        The classes; the second is the positive one.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> y = (X[:, 0] > 0) & (X[:, 2] > -0.5)
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = ms.FastFrugalTreeClassifier(costs, tradeoff=0.001).fit(X, y)
    >>> [(level.feature, level.exit) for level in model.levels_]
    [(0, 'negative'), (2, 'both')]
    >>> float((model.predict(X) == y).mean())
    1.0
    """

    cost_axis = "tradeoff"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "costs": constraints.COSTS,
        "tradeoff": [constraints.not_negative()],
        "max_levels": [constraints.whole(1, 8)],
        "sensitivity_weight": [constraints.inside(0, 1), None],
        "algorithm": [constraints.one_of("auto", "best", "ifan", "dfan")],
        "n_candidates": [constraints.whole(1, 8)],
        "min_samples_leaf": [constraints.at_least(1)],
    }

    def __init__(
        self,
        costs: CostTable | None = None,
        tradeoff: float = 1e-4,
        max_levels: int = 4,
        sensitivity_weight: float | None = 0.5,
        algorithm: str = "auto",
        n_candidates: int = 6,
        min_samples_leaf: int = 5,
    ) -> None:
        self.costs = costs
        self.tradeoff = tradeoff
        self.max_levels = max_levels
        self.sensitivity_weight = sensitivity_weight
        self.algorithm = algorithm
        self.n_candidates = n_candidates
        self.min_samples_leaf = min_samples_leaf

    def suggest_grid(self, y: Any, n_points: int = 8, sample_weight: Any = None) -> np.ndarray:
        """Values of `tradeoff` from nearly cost-blind to nearly nothing bought, whatever the unit of the prices."""
        costs = self._given_costs()
        prices = [p for p in costs.price_list if p > 0] or [costs.each or 1.0]
        return np.geomspace(1e-3, 1.0, n_points) * 0.5 * len(prices) / total_price(prices)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FastFrugalTreeClassifier:
        """Grow the tree."""
        X, y, weight = self._fit_data(X, y, sample_weight, y_numeric=False)
        self.classes_ = self._find_classes(y)
        values = np.asarray(X.toarray() if issparse(X) else X, np.float64)
        positive = y == self.classes_[1]
        share = row_weights(1.0 if weight is None else weight, len(y))
        assert share is not None
        share = share / share.sum()
        w = float(share[positive].sum()) if self.sensitivity_weight is None else self.sensitivity_weight
        worth = np.where(positive, w * share / share[positive].sum(), (w - 1.0) * share / share[~positive].sum())
        costs = self._bound_costs()
        if isinstance(costs.evaluation, tuple):
            raise ValueError("One tree has one evaluation price: give a number, not one per learner.")
        ledger = Ledger(costs.price_list, costs.evaluation_prices(1))
        rows = CueRows(values, worth, share, 1.0 - w, costs.feature_masks, ledger, self.tradeoff, self.min_samples_leaf)
        levels = grow(rows, self.algorithm, self.max_levels, self.n_candidates)
        evaluating = self.tradeoff * ledger.price(0, 1)
        if levels and rows.objective(levels) - evaluating <= rows.objective(()):
            levels = ()
        self.levels_ = levels
        self.plan_ = self._plan_of(rows, levels, w, costs)
        return self

    def _plan_of(self, rows: CueRows, levels: Levels, w: float, costs: CostTable) -> Plan:
        """The tree as a plan: one learner, charged by path."""
        tables = [_table(rows, levels, w)] if levels else []
        nodes = (Node(np.zeros(1, np.int32), np.ones(1), combine="replace"),) if levels else ()
        return self._with_background(
            Plan(
                costs=costs,
                dictionary=stack_trees(tables),
                nodes=nodes,
                prior=np.array([_log_odds(w)]),
                link="logistic",
                classes=self.classes_,
                roots=tuple(range(len(nodes))),
                charge="path",
                notes={"estimator": type(self).__name__, "tradeoff": float(self.tradeoff), **self._category_notes()},
            )
        )


def _log_odds(p: float) -> float:
    return float(np.log(p) - np.log1p(-p))


def _table(rows: CueRows, levels: Levels, w: float) -> dict[str, np.ndarray]:
    """The tree as a table of places: at each level the exit, and beside it the level after."""
    n = 2 * len(levels) + 1
    feature, left = np.zeros(n, np.int32), np.arange(n, dtype=np.int32)
    threshold, missing_right, value = np.full(n, np.inf), np.zeros(n, bool), np.zeros(n)
    here, place = np.ones(len(rows.X), bool), 0
    for k, level in enumerate(levels):
        first = 2 * k + 1
        feature[place], threshold[place], left[place] = level.feature, level.threshold, first
        yes, known = rows.says(level)
        lacking = here & ~known
        goes_positive = level.exit == "negative" or (level.exit == "both" and rows.missing_positive(lacking))
        missing_right[place] = goes_positive == level.above
        sides = {True: here & (yes | (~known & goes_positive)), False: here & ~(yes | (~known & goes_positive))}
        for is_positive, leaves in ((True, level.exit != "negative"), (False, level.exit != "positive")):
            if leaves:
                value[first + (is_positive == level.above)] = _exit_score(rows, sides[is_positive], is_positive, w)
        goes_on = level.exit == "negative"
        here, place = sides[goes_on], first + (goes_on == level.above)
    return {
        "feature": feature,
        "threshold": threshold,
        "left": left,
        "missing_right": missing_right,
        "value": value,
    }


def _exit_score(rows: CueRows, here: np.ndarray, is_positive: bool, w: float) -> float:
    """Log-odds of the weighted share of positive rows at an exit, on the side that the exit says."""
    worth, n = rows.worth[here], int(here.sum())
    for_it, against = float(worth[worth > 0].sum()), float(-worth[worth < 0].sum())
    share = for_it / (for_it + against) if for_it + against > 0 else w
    least = 1e-3 / (n + 1.0)
    score = _log_odds(float(np.clip((share * n + w) / (n + 1.0), least, 1.0 - least)))
    return max(score, SURE) if is_positive else min(score, -SURE)


__all__ = ["FastFrugalTreeClassifier", "FrugalLevel"]
