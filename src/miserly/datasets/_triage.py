"""Patients with named tests and prices: a generated stand-in for thyroid records, with shared and derived tests."""

from __future__ import annotations

import numpy as np

from miserly.costs import CostTable
from miserly.datasets._dataset import Dataset

CLASSES = np.array(["hyper", "hypo", "well"])
SHARES = (0.04, 0.08, 0.88)
QUESTIONS = ("age", "sex", "on_thyroxine", "pregnant", "goitre")
TESTS = {"TSH": 20.68, "T3": 9.31, "TT4": 12.41, "T4U": 9.31}  # CAD beyond the draw, as published (Turney 1995)
DRAW = 2.10


def triage_like(n: int, seed: int) -> Dataset:
    """Draw patients of a thyroid clinic.

    Illness moves TSH and the hormones. Treatment with thyroxine hides it from TSH. Pregnancy raises TT4 and T4U alike,
    so that only their quotient FTI separates it from illness. Questions cost 1 CAD; the blood tests share one draw; FTI
    is computed from two of them. The prices are those published for ann-thyroid; the patients are generated.

    Parameters
    ----------
    n : int
        Patients, 1 or more.
    seed : int
        Seed of the generator.

    Returns
    -------
    Dataset
        Ten features, the classes "hyper", "hypo" and "well", and the prices.

    Examples
    --------
    >>> data = triage_like(100, seed=0)
    >>> data.costs.price(["TSH", "TT4"])
    35.19
    """
    rng = np.random.default_rng(seed)
    state = rng.choice(3, n, p=SHARES)
    age, sex = rng.integers(18, 90, n), rng.integers(0, 2, n)
    treated = rng.random(n) < np.array([0.1, 0.3, 0.05])[state]
    pregnant = (sex == 1) & (age < 45) & (rng.random(n) < 0.2)
    goitre = rng.random(n) < np.array([0.2, 0.1, 0.03])[state]
    tsh = np.exp(np.array([-1.5, 2.6, 0.5])[state] * ~treated + 0.6 * rng.normal(size=n))
    hormone = np.exp(np.array([0.5, -0.6, 0.0])[state] + 0.12 * rng.normal(size=n))
    binding = np.exp(0.4 * pregnant + 0.1 * rng.normal(size=n))
    t3 = 2.0 * hormone**0.7 * np.exp(0.15 * rng.normal(size=n))
    tt4, t4u = 110 * hormone * binding, binding
    X = np.column_stack([age, sex, treated, pregnant, goitre, tsh, t3, tt4, t4u, tt4 / t4u]).astype(float)
    return Dataset(X, CLASSES[state], triage_prices(), name="triage_like")


def triage_prices() -> CostTable:
    """A question costs 1. The blood tests share one draw; FTI costs nothing beyond the two tests that it is made of."""
    prices = {f"ask_{q}": 1.0 for q in QUESTIONS} | {"draw": DRAW} | {f"{t}_test": p for t, p in TESTS.items()}
    needs: dict[str, tuple[str, ...]] = {q: (f"ask_{q}",) for q in QUESTIONS}
    needs |= {t: ("draw", f"{t}_test") for t in TESTS} | {"FTI": ("draw", "TT4_test", "T4U_test")}
    return CostTable(tuple(needs), needs, prices, unit="CAD")
