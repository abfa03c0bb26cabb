"""How much faster ASTC is than our CSTC at equal budgets of each node: the table of Kusner et al. (2014).

As there: a CSTC tree for each λ; what each of its nodes newly buys is the budget of the same node for ASTC, which may
then spend all of it (`penalty=0`, half the rows either way). CPU time of the fits on `yahoo_like`, 20,000 × 519,
three levels. Cost and error are those of rows that neither was trained on. The paper's figures on Yahoo's own data
(141,397 × 519): 119 times faster at the smallest budget, 6.6 times at the largest.
"""

import time
from typing import Any

import numpy as np

from miserly.datasets import yahoo_like
from miserly.estimators import ASTCRegressor, CSTCRegressor
from miserly.experiments.papers.astc import node_budgets

N_ROWS, DEPTH = 20_000, 3
TRADEOFFS = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4)


def fitted(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[Any, float]:
    """The model and the CPU seconds of its fit."""
    began = time.process_time()
    model.fit(X, y)
    return model, time.process_time() - began


def main() -> None:
    data, others = yahoo_like(850, seed=0), yahoo_like(100, seed=1)
    X, y = data.X[:N_ROWS], data.y[:N_ROWS]
    print(f"ASTC against CSTC at equal node budgets, {X.shape[0]} × {X.shape[1]}, {DEPTH} levels")
    print(f"  {'λ':>7} {'cost':>7} {'CSTC':>8} {'ASTC':>8} {'faster':>8} {'soft':>8}   error, CSTC / ASTC (its cost)")
    for tradeoff in TRADEOFFS:
        cstc, slow = fitted(CSTCRegressor(data.costs, tradeoff=tradeoff, max_depth=DEPTH), X, y)
        given = {
            "node_budget": node_budgets(cstc.plan_),
            "max_depth": DEPTH,
            "penalty": 0,
            "l2_regularization": 0,
            "threshold": "half",
        }
        astc, fast = fitted(ASTCRegressor(data.costs, **given), X, y)
        _, soft = fitted(ASTCRegressor(data.costs, soft=True, **given), X, y)
        cost, less = (float(model.predict_cost(others.X).mean()) for model in (cstc, astc))
        errors = [float(np.mean((model.predict(others.X) - others.y) ** 2)) for model in (cstc, astc)]
        print(
            f"  {tradeoff:7g} {cost:7.0f} {slow:6.2f} s {fast:6.2f} s {slow / fast:7.1f}× {slow / soft:7.1f}×"
            f"   {errors[0]:.3f} / {errors[1]:.3f} ({less:.0f})"
        )


if __name__ == "__main__":
    main()
