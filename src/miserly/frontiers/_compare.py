"""Several methods on the same folds: areas and equal-budget differences, each pair on the same rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing

from miserly import _display
from miserly.files import write_whole
from miserly.frontiers._folds import divide
from miserly.frontiers._front import Frontier, Measured, Point, figure
from miserly.frontiers._job import Data, Job
from miserly.frontiers._sweep import frontier
from miserly.frontiers._verdicts import Verdict, common_range, interval, within
from miserly.metrics import Metric, get_metric
from miserly.plan import draw

WORDS = {Verdict.SEEN: "better", Verdict.UNDECIDED: "undecided", Verdict.CONTRADICTED: "worse"}
N_BUDGETS = 3
CHOOSING = 4  # one in so many training rows is kept from fitting, to choose on
PAGE_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}th,td{text-align:left;padding:.2em 1em .2em 0;border-bottom:1px solid #ccc}"
    "svg{max-width:100%;height:auto}"
)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """What methods reached on the same folds.

    `compare` makes one.

    Parameters
    ----------
    curves : mapping of str to sequence of Frontier
        For each method its frontier on each fold: chosen on validation, read on test, with the free constant.
    reference : str
        The method that the others are compared with.
    budgets : tuple of float
        The budgets of the equal-budget differences.
    overlap : float
        Test rows over training rows: corrects intervals for the training rows that folds share.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> X = np.random.default_rng(0).normal(size=(150, 2))
    >>> costs = ms.CostTable.per_feature([1.0, 5.0])
    >>> many, few = (ms.GreedyMiserRegressor(costs, n_estimators=n) for n in (5, 2))
    >>> found = ms.compare({"many": many, "few": few}, (X, X[:, 0]), cv=3)
    >>> found.reference, [record["verdict"] for record in found.records()]
    ('many', ['reference', 'worse'])
    """

    curves: Mapping[str, Sequence[Frontier]]
    reference: str
    budgets: tuple[float, ...]
    overlap: float

    @property
    def metric(self) -> Metric:
        """What quality is measured by."""
        return self.curves[self.reference][0].metric

    @property
    def unit(self) -> str:
        """The unit of the costs."""
        return self.curves[self.reference][0].unit

    @property
    def n_folds(self) -> int:
        """How many folds there are."""
        return len(self.curves[self.reference])

    @property
    def limits(self) -> tuple[float, float]:
        """The budgets that areas go over: from the first purchase of any method to the most expensive model of all."""
        return common_range([front for fronts in self.curves.values() for front in fronts])

    def areas(self, name: str) -> np.ndarray:
        """The area of a method on each fold: mean test quality over the logarithm of the budget."""
        return np.array([front.area(*self.limits, on="test") for front in self.curves[name]])

    def difference(self, name: str, other: str, budget: float | None = None) -> tuple[float, float, str]:
        """How much better a method is than another, above 0 if it is: mean over folds, half the 95 % interval, verdict.

        Parameters
        ----------
        name, other : str
            The methods.
        budget : float or None, default=None
            Compare what each reaches within this budget; None compares the areas.
        """
        sign = 1.0 if self.metric.greater_is_better else -1.0
        if budget is None:
            pairs = self.areas(name), self.areas(other)
        else:
            one, two = (np.array([within(front, budget) for front in self.curves[n]]) for n in (name, other))
            pairs = one, two
        mean, half = interval(sign * (pairs[0] - pairs[1]), self.overlap)
        return mean, half, WORDS[Verdict.of_interval(mean, half)]

    def records(self) -> list[dict[str, Any]]:
        """One record for each method, best area first: its area, the difference from the reference with half the 95 %
        interval and the verdict, then the same within each budget."""
        sign = 1.0 if self.metric.greater_is_better else -1.0
        records = []
        for name in sorted(self.curves, key=lambda n: -sign * float(self.areas(n).mean())):
            area, half = interval(self.areas(name), self.overlap)
            record: dict[str, Any] = {"method": name, "area": area, "area_half": half}
            record |= self._against(name, None, "")
            for budget in self.budgets:
                record[f"within {figure(budget)}"] = float(np.mean([within(f, budget) for f in self.curves[name]]))
                record |= self._against(name, budget, f" within {figure(budget)}")
            records.append(record)
        return records

    def _against(self, name: str, budget: float | None, where: str) -> dict[str, Any]:
        if name == self.reference:
            return {f"difference{where}": 0.0, f"half{where}": 0.0, f"verdict{where}": "reference"}
        mean, half, verdict = self.difference(name, self.reference, budget)
        return {f"difference{where}": mean, f"half{where}": half, f"verdict{where}": verdict}

    def frame(self) -> Any:
        """The records as a pandas data frame."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("A data frame needs pandas: pip install pandas. Or use records().") from None
        return pd.DataFrame(self.records())

    def _table(self) -> tuple[list[str], list[list[str]]]:
        heads = ["method", f"area ({self.metric.name})", f"difference from {self.reference}", "verdict"]
        heads += [f"within {figure(b)} {self.unit}" for b in self.budgets]
        lines = []
        for record in self.records():
            is_reference = record["verdict"] == "reference"
            line = [record["method"], _plus_minus(record["area"], record["area_half"])]
            line += ["" if is_reference else _plus_minus(record["difference"], record["half"], True), record["verdict"]]
            for budget in self.budgets:
                where = f" within {figure(budget)}"
                gap = _plus_minus(record[f"difference{where}"], record[f"half{where}"], True)
                quality = f"{record[where.strip()]:.4g}"
                line.append(quality if is_reference else f"{quality} ({gap}, {record[f'verdict{where}']})")
            lines.append(line)
        return heads, lines

    def text(self) -> str:
        """The table as plain text."""
        heads, lines = self._table()
        widths = [max(len(line[i]) for line in [heads, *lines]) for i in range(len(heads))]
        table = ("  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() for line in [heads, *lines])
        return "\n".join([*table, self._note()])

    def markdown(self) -> str:
        """The table as Markdown."""
        heads, lines = self._table()
        rows = [heads, ["---"] * len(heads), *([cell.replace("|", "\\|") for cell in line] for line in lines)]
        return "\n".join([*(f"| {' | '.join(row)} |" for row in rows), "", self._note()]) + "\n"

    def latex(self) -> str:
        """The table as LaTeX, for the package booktabs."""
        heads, lines = self._table()
        rows = [" & ".join(_latex(cell) for cell in line) + r" \\" for line in [heads, *lines]]
        columns = "l" * len(heads)
        body = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", rows[0], r"\midrule", *rows[1:], r"\bottomrule"]
        return "\n".join([*body, r"\end{tabular}", f"% {self._note()}"]) + "\n"

    def html(self) -> str:
        """A page with the picture and the table, which needs no other file."""
        heads, lines = self._table()
        head = "".join(f"<th>{escape(h)}</th>" for h in heads)
        rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
        picture = draw("comparison_svg", self)
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Methods compared</title>'
            f"<style>{PAGE_STYLE}</style></head><body><h1>Methods compared</h1>{picture}"
            f"<table><tr>{head}</tr>{rows}</table><p>{escape(self._note())}</p></body></html>\n"
        )

    def _note(self) -> str:
        low, high = (figure(limit) for limit in self.limits)
        return (
            f"Areas: mean {self.metric.name} over the logarithm of the budget from {low} to {high} {self.unit}; "
            f"{self.n_folds} folds, 95 % intervals, differences above 0 are better."
        )

    def plot(self, path: str | Path | None = None, ax: Any = None) -> Any:
        """Draw the mean quality of each method over the budget; with a path, write the picture there."""
        return draw("comparison", self, path=path, ax=ax)

    def save(self, path: str | Path) -> None:
        """Write a file; the end of its name says how: .html, .md, .tex, .csv, .txt, or a picture (.svg, .png, .pdf)."""
        suffix = Path(path).suffix.lower()
        kinds: dict[str, Callable[[], str]] = {
            ".html": self.html,
            ".md": self.markdown,
            ".tex": self.latex,
            ".txt": self.text,
            ".csv": self._csv,
        }
        if suffix in (".svg", ".png", ".pdf"):
            self.plot(path)
        elif suffix in kinds:
            write_whole(path, kinds[suffix]())
        else:
            known = ", ".join([*kinds, ".svg", ".png", ".pdf"])
            raise ValueError(f"A comparison is written as {known}, got {str(path)!r}. Change the suffix.")

    def _csv(self) -> str:
        records = self.records()
        lines = [",".join(records[0]), *(",".join(str(v) for v in record.values()) for record in records)]
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        best = self.records()[0]
        area = _plus_minus(best["area"], best["area_half"])
        return f"<Comparison of {len(self.curves)} methods on {self.n_folds} folds: {best['method']} has area {area}>"

    def _repr_html_(self) -> str:
        heads, lines = self._table()
        return _display.table([dict(zip(heads, line)) for line in lines], self._note())


def compare(
    methods: Mapping[str, Any] | Sequence[Any],
    data: Sequence[Any],
    cv: int | None = 5,
    metric: str | Metric | None = None,
    budgets: Sequence[float] | None = None,
    reference: str | None = None,
    random_state: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
) -> Comparison:
    """Measure several methods on the same folds, and compare them in pairs.

    Parameters
    ----------
    methods : mapping of str to estimator, or sequence of estimators
        Any estimators with `fit`, `predict` and `predict_cost`, with a plan or without. Those with a cost axis are
        swept; others are one point. A sequence is named by class.
    data : (X, y) or (X, y, qid); or (train, validation, test) if `cv` is None
        The rows.
    cv : int or None, default=5
        Number of folds, 2 or more. Each is the test set once; a quarter of the others is kept to choose models on.
        None: `data` is three sets, and there are no intervals.
    metric : str, Metric or None, default=None
        The quality; None is accuracy for classifiers, NDCG@5 with queries, the mean squared error for others.
    budgets : sequence of float or None, default=None
        Budgets at which methods are compared; None takes three, evenly on the logarithm.
    reference : str or None, default=None
        The method that others are compared with; None is the one with the best area.
    random_state : int, default=0
        Divides the rows.
    progress : callable or None, default=None
        Called as `progress(method, done, of)` after each sweep.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> X = np.random.default_rng(0).normal(size=(150, 2))
    >>> costs = ms.CostTable.per_feature([1.0, 5.0])
    >>> one, other = (ms.GreedyMiserRegressor(costs, n_estimators=n) for n in (5, 2))
    >>> ms.compare({"five": one, "two": other}, (X, X[:, 0]), cv=3).difference("five", "two")[2]
    'better'
    """
    named = _named(methods)
    chosen = get_metric(metric or _usual(next(iter(named.values())), data if cv else data[0]))
    splits, overlap = _splits(named, data, cv, random_state)
    curves: dict[str, list[Frontier]] = {name: [] for name in named}
    done = 0
    for train, validation, test in splits:
        constant = FreeConstant(any(is_classifier(m) for m in named.values())).fit(*train[:2])
        for name, model in named.items():
            curves[name].append(_swept(name, model, Job(model, train, validation, test, chosen), constant))
            done += 1
            if progress is not None:
                progress(name, done, len(splits) * len(named))
    low, high = common_range([front for fronts in curves.values() for front in fronts])
    at = tuple(float(b) for b in (np.geomspace(low, high, N_BUDGETS + 2)[1:-1] if budgets is None else budgets))
    found = Comparison(curves, next(iter(named)), at, overlap)
    if reference is None:
        reference = found.records()[0]["method"]
    elif reference not in named:
        raise ValueError(f"The reference is one of {', '.join(named)}, got {reference!r}.")
    return Comparison(curves, reference, at, overlap)


def _named(methods: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    if not isinstance(methods, Mapping):
        names = [type(model).__name__ for model in methods]
        methods = {f"{n} {i}" if names.count(n) > 1 else n: m for i, (n, m) in enumerate(zip(names, methods))}
    if not methods:
        raise ValueError("Give at least one method: {'name': estimator}.")
    for name, model in methods.items():
        if not hasattr(model, "predict_cost"):
            raise ValueError(f"{name} has no predict_cost(X), the cost of each row. Wrap it in a class that has.")
    return dict(methods)


def _usual(model: Any, data: Sequence[Any]) -> str:
    if len(data) == 3:
        return "ndcg@5"
    return "accuracy" if is_classifier(model) else "mse"


def _three(data: Sequence[Any]) -> Data:
    return data[0], np.asarray(data[1]), np.asarray(data[2]) if len(data) == 3 else None


def _splits(named: Mapping[str, Any], data: Sequence[Any], cv: int | None, seed: int) -> tuple[list[Any], float]:
    """Training, validation and test rows of each fold, and the overlap for intervals."""
    if cv is None:
        if len(data) != 3:
            raise ValueError("Without cv, data is (train, validation, test), each (X, y) or (X, y, qid).")
        return [tuple(_three(part) for part in data)], math.nan
    if cv < 2:
        raise ValueError(f"cv is a number of folds, 2 or more, got {cv!r}.")
    X, y, qid = _three(data)
    by_class = any(is_classifier(model) for model in named.values())
    folds = divide(y, qid, cv, seed, by_class)
    if len(folds) < 2:
        raise ValueError("There are too few rows, or queries, to divide into folds. Give more rows, or cv=None.")
    splits = []
    for rest, test in folds:
        inner = divide(y[rest], None if qid is None else qid[rest], CHOOSING, seed, by_class)
        fit, choose = (rest[rows] for rows in inner[0])
        splits.append(tuple((_safe_indexing(X, r), y[r], None if qid is None else qid[r]) for r in (fit, choose, test)))
    return splits, 1.0 / (len(folds) - 1)


def _swept(name: str, model: Any, job: Job, constant: FreeConstant) -> Frontier:
    """The frontier of a method on one fold, with the free constant in it."""
    assert job.validation is not None
    free = Point({}, constant, job.measure(constant, job.validation), _on_test(job, constant), 0.0)
    if hasattr(model, "time_limit"):
        extra = {} if job.train[2] is None else {"qid": job.train[2]}
        kept = [part for part in job.validation if part is not None]
        fitted = clone(model).fit(*job.train[:2], **extra, eval_set=tuple(kept)).frontier_
        points = [
            Point(p.params, p.model, job.measure(p.model, job.validation), _on_test(job, p.model), 0.0)
            for p in fitted.points
        ]
        return Frontier(tuple(points), job.metric, fitted.unit, name, baseline=free)
    if hasattr(model, "cost_axis") and hasattr(model, "suggest_grid"):
        train, validation, test = (_given(part) for part in (job.train, job.validation, job.test))
        front = frontier(model, train, validation, test, metric=job.metric, name=name, progress=lambda *_: None)
        return Frontier(front.points, job.metric, front.unit, name, baseline=free)
    point = job.prepared({}).point({})
    return Frontier((point,), job.metric, _unit(model), name, baseline=free)


def _given(part: Data | None) -> tuple[Any, ...]:
    """Rows as a sweep takes them: without queries where there are none."""
    assert part is not None
    return part[:2] if part[2] is None else part


def _on_test(job: Job, model: Any) -> Measured:
    assert job.test is not None
    return job.measure(model, job.test)


def _unit(model: Any) -> str:
    return str(getattr(getattr(model, "costs", None), "unit", "units"))


class FreeConstant:
    """The prediction that costs nothing: the most frequent class with the shares of all, or the mean."""

    def __init__(self, by_class: bool) -> None:
        self.by_class = by_class

    def fit(self, X: Any, y: Any) -> FreeConstant:
        """Remember the classes' shares, or the mean."""
        y = np.asarray(y)
        if not self.by_class:
            self.value: Any = float(y.mean())
            return self
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares = counts / counts.sum()
        self.value = self.classes_[counts.argmax()]
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The same for every row."""
        return np.full(_n_rows(X), self.value)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The classes' shares."""
        return np.tile(self.shares, (_n_rows(X), 1))

    def decision_function(self, X: Any) -> np.ndarray:
        """Nothing tells rows apart."""
        return np.zeros(_n_rows(X))

    def rank_score(self, X: Any) -> np.ndarray:
        """Documents stay as they are."""
        return np.zeros(_n_rows(X))

    def predict_cost(self, X: Any) -> np.ndarray:
        """Nothing."""
        return np.zeros(_n_rows(X))


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _plus_minus(mean: float, half: float, signed: bool = False) -> str:
    number = f"{mean:+.4f}" if signed else f"{mean:.4f}"
    return number if math.isnan(half) else f"{number} ± {half:.4f}"


def _latex(cell: str) -> str:
    for sign in "&%$#_":
        cell = cell.replace(sign, "\\" + sign)
    return cell.replace("±", r"$\pm$")
