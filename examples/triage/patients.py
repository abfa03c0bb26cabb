"""Patients and what it costs to know them better: those of ann-thyroid where it is at hand, made-up ones otherwise."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import miserly as ms

CLASSES = np.array(["hyper", "hypo", "well"])
QUESTIONS = ("age", "sex", "on_thyroxine", "pregnant", "goitre")
TESTS = {"TSH": 20.68, "T3": 9.31, "TT4": 12.41, "T4U": 9.31}  # CAD beyond the draw (Turney 1995)
DRAW = 2.10


class Patients(NamedTuple):
    """Values, diagnoses, prices, and where they are from."""

    X: np.ndarray
    y: np.ndarray
    costs: ms.CostTable
    source: str


def patients(n: int, seed: int = 0) -> Patients:
    """The 7200 patients of ann-thyroid if MISERLY_DATA names a folder with them, else n made-up ones."""
    place = Path(os.environ.get("MISERLY_DATA", ""), "ann_thyroid_cost")
    return _read(place) if (place / "ann-train.data").exists() else _make_up(n, seed)


def _read(place: Path) -> Patients:
    rows = np.concatenate([np.loadtxt(place / f"ann-{part}.data") for part in ("train", "test")])
    labels = np.array(["primary hypo", "compensated hypo", "well"])[rows[:, -1].astype(int) - 1]
    return Patients(rows[:, :-1], labels, ms.CostTable.from_toml(place / "costs.toml"), "ann-thyroid")


def _make_up(n: int, seed: int) -> Patients:
    """Illness moves TSH and the hormones; thyroxine hides it from TSH; pregnancy raises TT4 and T4U alike, so that only
    their quotient, FTI, tells it from illness."""
    rng = np.random.default_rng(seed)
    state = rng.choice(3, n, p=[0.04, 0.08, 0.88])
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
    return Patients(X, CLASSES[state], made_up_prices(), "made-up patients")


def made_up_prices() -> ms.CostTable:
    """A question costs 1. The blood tests share one draw; FTI is TT4 by T4U and costs nothing beyond them."""
    prices = {f"ask_{q}": 1.0 for q in QUESTIONS} | {"draw": DRAW} | {f"{t}_test": p for t, p in TESTS.items()}
    needs = {q: [f"ask_{q}"] for q in QUESTIONS} | {t: ["draw", f"{t}_test"] for t in TESTS}
    needs["FTI"] = ["draw", "TT4_test", "T4U_test"]
    return ms.CostTable(tuple(needs), needs, prices, unit="CAD")


def one_by_one(costs: ms.CostTable) -> ms.CostTable:
    """The same prices for somebody who does not know that tests share anything: each feature at its full price."""
    return replace(ms.CostTable.per_feature({f: costs.price([f]) for f in costs.features}), unit=costs.unit)
