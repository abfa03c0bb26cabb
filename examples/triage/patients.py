"""Patients and what it costs to know them better: those of ann-thyroid where it is at hand, made-up ones otherwise."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import miserly as ms
from miserly.datasets import triage_like


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
    data = triage_like(n, seed)
    return Patients(data.X, data.y, data.costs, "made-up patients")


def one_by_one(costs: ms.CostTable) -> ms.CostTable:
    """The same prices for somebody who does not know that tests share anything: each feature at its full price."""
    return replace(ms.CostTable.per_feature({f: costs.price([f]) for f in costs.features}), unit=costs.unit)
