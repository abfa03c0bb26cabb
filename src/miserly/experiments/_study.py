"""The frame of all figures: a study computes curves and claims on a bench; what it found is written, and printed."""

from __future__ import annotations

import copy
import csv
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from miserly import __version__
from miserly.experiments._claims import Claim, Curves, claim_line
from miserly.experiments._measure import curve
from miserly.experiments._parts import LearningProblem
from miserly.experiments._published import Departures, stem_of
from miserly.experiments._sets import Labels, Size, data_folder, mq2008, yahoo
from miserly.experiments._store import ResultStore
from miserly.frontiers import Frontier
from miserly.plan import Plan
from miserly.report import FrontierPanel, Panel, plot_panels

Progress = Callable[[str], None]


@dataclass
class StudyResult:
    """What a study found: lines of a table, panels of a picture, claims; and what the data stand in for."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    panels: list[Panel] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    stand_ins: set[str] = field(default_factory=set)

    def uses(self, problem: LearningProblem) -> None:
        """Remember what a data set stands in for."""
        if problem.stand_in:
            self.stand_ins.add(f"{problem.name.split()[0]} in place of {problem.stand_in}")


@dataclass(frozen=True)
class Study:
    """One figure or table of a paper."""

    name: str
    title: str
    run: Callable[[Bench], StudyResult]


class Bench:
    """Where studies work: the user's data, the sizes, and what was measured already."""

    def __init__(
        self,
        data: Path | None,
        out: Path,
        quick: bool,
        progress: Progress = lambda _: None,
        real: bool = False,
        reverted: Departures | None = None,
    ) -> None:
        self.data, self.quick, self.out, self.real = data_folder(data), quick, out, real
        self.reverted = reverted or {}
        self.store = ResultStore(out / "points")
        self.progress = progress
        self._sets: dict[tuple[Labels, Size], list[list[LearningProblem]]] = {}

    def reverting(self, departures: Departures) -> Bench:
        """The same bench with some of our departures from the papers taken back."""
        other = copy.copy(self)
        other.reverted = departures
        return other

    def prepared(self, model: Any) -> Any:
        """The model with those parameters as published that this bench takes back."""
        return model.set_params(**self.reverted.get(stem_of(model), {}))

    def trees(self, problem: LearningProblem, full: int, quick: int) -> int:
        """Numbers of trees, as the paper has them, or as many as the data bear, or for a quick look."""
        return quick if self.quick else min(full, problem.most_trees or full)

    def levels(self, problem: LearningProblem, full: int, quick: int) -> int:
        """The same for the levels of CSTC."""
        return quick if self.quick else min(full, problem.most_levels or full)

    @property
    def n_points(self) -> int:
        """How many tradeoffs a curve has where the paper's own cannot be used."""
        return 4 if self.quick else 10

    @property
    def n_lambdas(self) -> int:
        """The same for the miser, which is quick to fit."""
        return 5 if self.quick else 12

    @property
    def n_swept(self) -> int:
        """How many plans the curve of a cascade or a tree of classifiers has."""
        return 5 if self.quick else 8

    def ranking(self, labels: Labels, size: Size) -> list[list[LearningProblem]]:
        """The Yahoo! set, and MQ2008 beside it if it is there: a list of splits for each."""
        if (labels, size) not in self._sets:
            groups = [[yahoo(self.data, labels, size, self.quick)], mq2008(self.data, labels, 2 if self.quick else 5)]
            self._sets[labels, size] = [group for group in groups if group and self.wants(group[0])]
        return self._sets[labels, size]

    def wants(self, problem: LearningProblem) -> bool:
        """Whether a data set is looked at: all are, unless drawn ones were to be left out."""
        return problem.is_real or not self.real

    def record(self, what: str, problem: LearningProblem | None, make: Callable[[], Any], **key: Any) -> Any:
        """Plain data that are kept; the key names all that they depend on."""
        return self.store.record(self._key({"what": what}, what, problem, key), make)

    def plan(self, what: str, problem: LearningProblem, make: Callable[[], Plan], **key: Any) -> Plan:
        """A fitted plan that is kept."""
        return self.store.plan(self._key({"plan": what}, what, problem, key), make)

    def _key(
        self, head: dict[str, Any], what: str, problem: LearningProblem | None, key: dict[str, Any]
    ) -> dict[str, Any]:
        place = {} if problem is None else {"set": problem.key}
        self.progress(f"{what} {place.get('set', '')} {' '.join(f'{k}={_short(v)}' for k, v in key.items())}")
        reverted = {"reverted": {stem: dict(of) for stem, of in self.reverted.items()}} if self.reverted else {}
        return {**head, "version": __version__, "quick": self.quick, **place, **reverted, **key}


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


# ---- curves -------------------------------------------------------------------------------------------------------


def compare(
    out: StudyResult,
    group: Sequence[LearningProblem],
    methods: Callable[[LearningProblem], Mapping[str, Sequence[Sequence[float]]]],
    claims: Callable[[Curves], Iterable[Claim]],
) -> Curves:
    """Several methods on the splits of one data set: a panel of the first split, lines of the table, claims.

    `methods` gives the points of each method on one split; a method without points is left out.
    """
    out.uses(group[0])
    curves: dict[str, list[Frontier]] = {}
    for problem in group:
        for name, points in methods(problem).items():
            if points:
                curves.setdefault(name, []).append(curve(name, problem, points))
    out.panels.append(FrontierPanel(group[0].key, [fronts[0] for fronts in curves.values()]))
    out.rows += named(curve_rows(curves), group[0].name)
    out.claims += claims(curves)
    return curves


def curve_rows(curves: Curves) -> list[dict[str, Any]]:
    """The points of curves as lines of a table."""
    return [
        {
            "data": "",
            "split": split,
            "method": name,
            "validation_cost": p.validation.cost["mean"],
            "validation": p.validation.quality,
            "test_cost": p.on("test").cost["mean"],
            "test": p.on("test").quality,
        }
        for name, fronts in curves.items()
        for split, front in enumerate(fronts)
        for p in front.points
    ]


def named(rows: list[dict[str, Any]], data: str) -> list[dict[str, Any]]:
    """The same lines of one data set."""
    return [{**row, "data": data} for row in rows]


# ---- running ------------------------------------------------------------------------------------------------------


def perform(study: Study, bench: Bench) -> StudyResult:
    """Run a study; write its CSV, its PNG and its lines *the paper says / we see*."""
    began = time.perf_counter()
    outcome = study.run(bench)
    folder = bench.out
    _write_csv(folder / f"{study.name}.csv", outcome.rows)
    stamp = "Stand-in data: " + "; ".join(sorted(outcome.stand_ins)) if outcome.stand_ins else ""
    if bench.quick:
        stamp = f"{stamp}{'. ' if stamp else ''}Quick look: small sizes"
    if outcome.panels:
        plot_panels(outcome.panels, folder / f"{study.name}.png", study.title, stamp)
    lines = [f"{study.title}", *(claim_line(c) for c in outcome.claims), stamp, f"{time.perf_counter() - began:.0f} s"]
    (folder / f"{study.name}.txt").write_text("\n".join(line for line in lines if line) + "\n", encoding="utf-8")
    return outcome


def _write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
