"""A scenario of the ASlib format: features, the seconds of each probing step by row, and what each solver needs."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import miserly as ms

SHARED = Path(__file__).parent.parent.parent.parent / "shared" / "data"


@dataclass(frozen=True)
class Scenario:
    """Instances: their features, what each step took, and the penalised seconds (PAR10) of each solver."""

    name: str
    features: np.ndarray
    seconds: np.ndarray
    par10: np.ndarray
    steps: tuple[str, ...]
    needs: dict[str, tuple[str, ...]]

    def costs(self, rows: np.ndarray) -> ms.CostTable:
        """The mean seconds of each step on some rows as its price."""
        means = dict(zip(self.steps, self.seconds[rows].mean(axis=0).tolist()))
        return ms.CostTable(list(self.needs), self.needs, means, unit="s")


def folder() -> Path:
    """Where the scenarios lie."""
    return Path(os.environ.get("MISERLY_DATA", SHARED)) / "aslib"


def load(name: str) -> Scenario:
    """Read a scenario."""
    place = folder() / name
    features = pd.read_csv(place / "features.csv.gz")
    seconds = pd.read_csv(place / "seconds.csv.gz").fillna(0.0)  # a step that did not run took nothing
    par10 = pd.read_csv(place / "par10.csv.gz")
    steps = tomllib.loads((place / "steps.toml").read_text(encoding="utf-8"))["steps"]
    needs = {f: (*step["requires"], name) for name, step in steps.items() for f in step["provides"]}
    return Scenario(
        name,
        features.to_numpy(float),
        seconds[list(steps)].to_numpy(float),
        par10.to_numpy(float),
        tuple(steps),
        {f: needs[f] for f in features.columns},
    )
