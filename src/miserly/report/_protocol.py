"""A plan as a test-ordering protocol of one page: what to order first, and what to do with the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from miserly.costs import set_bits
from miserly.files import write_whole
from miserly.frontiers import figure
from miserly.plan import Menu, Plan
from miserly.report._distil import SmallTree, agreement, imitate, own_tree
from miserly.report._intervals import wilson
from miserly.report._observed import LabelledRows, Observed, refuse_logged
from miserly.report._protocol_page import as_html, as_svg, percents
from miserly.report._wording import question

MOST_QUESTIONS = 12


@dataclass(frozen=True)
class ProtocolStep:
    """A question or, at the end of a branch, a prediction; with the rows that come there.

    Parameters
    ----------
    share : float
        The share of all rows that come here, from 0 to 1.
    rows : int
        How many they are.
    paid : float
        What a row has paid by then, with what this step buys.
    buys : tuple of str, default=()
        The acquisitions that are ordered before the question.
    price : float, default=0.0
        What they add to what was paid.
    feature : str, default=""
        What is looked at; empty at the end of a branch.
    question : str, default=""
        What holds if the answer is yes; empty at the end of a branch.
    otherwise : str, default=""
        What holds if the answer is no; empty at the end of a branch.
    yes, no : int or None, default=None
        The number of the step that follows each answer; None at the end of a branch.
    missing : {"yes", "no", ""}, default=""
        The answer that a missing value counts as; empty at the end of a branch.
    prediction : str, default=""
        The predicted class or number; empty for a question.
    right : tuple of three floats or None, default=None
        The share of rows whose label is the prediction, with the ends of its 95 % interval. For numbers: the mean
        label, three times. None for a question, and where no row comes.
    risk : tuple of three floats or None, default=None
        Of two classes, the share of rows whose label is the second one, with the ends of its 95 % interval; otherwise
        None.

    Examples
    --------
    >>> from miserly.report import ProtocolStep
    >>> end = ProtocolStep(share=0.5, rows=10, paid=1.0, prediction="ill", right=(0.9, 0.6, 0.98))
    >>> bool(end.question), end.prediction
    (False, 'ill')
    """

    share: float
    rows: int
    paid: float
    buys: tuple[str, ...] = ()
    price: float = 0.0
    feature: str = ""
    question: str = ""
    otherwise: str = ""
    yes: int | None = None
    no: int | None = None
    missing: str = ""
    prediction: str = ""
    right: tuple[float, float, float] | None = None
    risk: tuple[float, float, float] | None = None

    @property
    def action(self) -> str:
        """What to do before the question, or before the prediction; empty if nothing is bought."""
        if self.price > 0:
            return f"order {', '.join(self.buys)}"
        return f"look at {self.feature}" if self.feature else ""


@dataclass(frozen=True)
class Rate:
    """How well one class is found.

    Each rate is a share with the ends of its 95 % interval, all from 0 to 1; the share is NaN where there is nothing to
    count.

    Parameters
    ----------
    label : str
        The class.
    sensitivity : tuple of three floats
        The share of rows of the class that are predicted to be of it.
    specificity : tuple of three floats
        The share of the other rows that are predicted not to be of it.
    positive : tuple of three floats
        The positive predictive value: the share of rows predicted to be of the class that are.
    negative : tuple of three floats
        The negative predictive value: the share of rows predicted not to be of the class that are not.

    Examples
    --------
    >>> from miserly.report import Rate
    >>> rate = Rate("ill", (0.9, 0.8, 0.95), (0.7, 0.6, 0.8), (0.5, 0.4, 0.6), (0.95, 0.9, 0.98))
    >>> share, low, high = rate.sensitivity
    >>> share
    0.9
    """

    label: str
    sensitivity: tuple[float, float, float]
    specificity: tuple[float, float, float]
    positive: tuple[float, float, float]
    negative: tuple[float, float, float]


@dataclass(frozen=True, repr=False)
class Protocol:
    """A small tree of purchases.

    Parameters
    ----------
    steps : tuple of ProtocolStep
        The first is where every row begins.
    exact : bool
        Whether the plan is this tree; otherwise the tree imitates it.
    fidelity : float
        The share of rows on which protocol and plan predict the same, on rows that the tree was not grown on; for
        numbers the share of the variance of the plan's predictions that is explained. At most 1; 1 if `exact`.
    cost, plan_cost : float
        Mean cost of a row by the protocol and by the plan.
    rates : tuple of Rate
        Sensitivity and the like: of two classes for the second, of more for each; empty for numbers.
    unit : str
        The unit of the prices.
    n_rows : int
        Rows that all of this was measured on.
    is_class : bool
        Whether classes are predicted; otherwise numbers.
    outcome : str, default=""
        The name of what is predicted; empty if it is not known.
    positive : str, default=""
        The class that is looked for, the second of two; empty for more classes and for numbers.
    free : tuple of str, default=()
        The features in use that cost nothing: they can be looked at before anything is ordered.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.baselines import PathTreeRegressor
    >>> from miserly.report import LabelledRows, protocol
    >>> X = np.arange(20.0)[:, None]
    >>> costs = ms.CostTable.per_feature({"age": 1.0})
    >>> model = PathTreeRegressor(costs, tradeoff=0.0, max_leaf_nodes=2).fit(X, X[:, 0] > 9)
    >>> tree = protocol(model.plan_, LabelledRows(X, X[:, 0] > 9))
    >>> tree.n_questions, tree.exact, tree.cost
    (1, True, 1.0)
    >>> print(tree.headline())
    This protocol is the plan itself. A row costs 1 units on average, over 20 rows.
    """

    steps: tuple[ProtocolStep, ...]
    exact: bool
    fidelity: float
    cost: float
    plan_cost: float
    rates: tuple[Rate, ...]
    unit: str
    n_rows: int
    is_class: bool
    outcome: str = ""
    positive: str = ""
    free: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What to call it, with the name of what is predicted."""
        return f"Protocol: {self.outcome}" if self.outcome else "Protocol"

    def named(self, value: str) -> str:
        """A class or a number with the name of what is predicted, as in "died = yes"."""
        return f"{self.outcome} = {value}" if self.outcome else value

    @property
    def n_questions(self) -> int:
        """How many steps ask something."""
        return sum(bool(step.question) for step in self.steps)

    def headline(self) -> str:
        """How faithful it is, what it costs, and what is free, a sentence for each."""
        if self.exact:
            what = "This protocol is the plan itself."
        elif self.is_class:
            what = f"This protocol imitates the plan: it predicts the same for {100 * self.fidelity:.1f} % of rows."
            if self.fidelity < 0.95:
                what += " That is less than 95 %: use the plan where the difference matters."
        else:
            share = f"{100 * self.fidelity:.1f} %"
            what = f"This protocol imitates the plan: it explains {share} of the variance of its predictions."
        plan = "" if self.exact else f" (the plan: {figure(self.plan_cost)})"
        free = f" Look first at what is free: {', '.join(self.free)}." if self.free else ""
        return f"{what} A row costs {figure(self.cost)} {self.unit} on average{plan}, over {self.n_rows} rows.{free}"

    def lines(self) -> Iterator[tuple[str, str]]:
        """The tree as lines: what to do, and for how many rows at what price."""
        yield from self._branch(0, "", "", "")

    def _branch(self, number: int, lead: str, indent: str, when: str) -> Iterator[tuple[str, str]]:
        step = self.steps[number]
        action = step.action + (f" ({figure(step.price)} {self.unit})" if step.price > 0 else "")
        who = f"{_share(step.share)} of rows ({step.rows:,}), {figure(step.paid)} paid"
        if not step.question:
            text = f"{when}{action + ', then ' if action else ''}predict {self.named(step.prediction)}"
            yield lead + text, who + self._measured(step)
            return
        yield f"{lead}{when}{action}", who
        yes = f"{step.question}{' or missing' if step.missing == 'yes' else ''}: "
        no = f"otherwise{' or missing' if step.missing == 'no' else ''}: "
        assert step.yes is not None
        assert step.no is not None
        yield from self._branch(step.yes, indent + "├─ ", indent + "│  ", yes)
        yield from self._branch(step.no, indent + "└─ ", indent + "   ", no)

    def _measured(self, step: ProtocolStep) -> str:
        """At the end of a branch: of two classes the share of the one that is looked for, whatever is predicted."""
        if step.risk is not None:
            return f", {self.named(self.positive)} in {percents(step.risk)}"
        if step.right is None:
            return ""
        return f", right {percents(step.right)}" if self.is_class else f", mean label {figure(step.right[0])}"

    def text(self) -> str:
        """The protocol as plain text."""
        lines = list(self.lines())
        wide = max(len(what) for what, _ in lines)
        tree = [f"{what:<{wide}}   {who}" for what, who in lines]
        return "\n".join([self.headline(), "", *tree, *self._rate_lines()])

    __str__ = text

    def _rate_lines(self) -> list[str]:
        if not self.rates:
            return []
        head = f"{'':<20}{'sensitivity':>24}{'specificity':>24}{'PPV':>24}{'NPV':>24}"
        rows = [
            f"{self.named(rate.label):<20}"
            + "".join(f"{percents(r):>24}" for r in (rate.sensitivity, rate.specificity, rate.positive, rate.negative))
            for rate in self.rates
        ]
        return ["", head, *rows]

    def markdown(self) -> str:
        """The protocol as Markdown: the tree as a block, the rates as a table."""
        tree = [f"{what}   ({who})" for what, who in self.lines()]
        parts = [f"# {self.title}", "", self.headline(), "", "```text", *tree, "```"]
        if self.rates:
            parts += [
                "",
                "| class | sensitivity | specificity | positive predictive value | negative predictive value |",
            ]
            parts += ["|---|---|---|---|---|"]
            for rate in self.rates:
                cells = (rate.sensitivity, rate.specificity, rate.positive, rate.negative)
                parts.append(f"| {self.named(rate.label)} | " + " | ".join(percents(c) for c in cells) + " |")
        return "\n".join(parts) + "\n"

    def frame(self) -> list[dict[str, Any]]:
        """One record for each step."""
        return [{"step": i, **step.__dict__} for i, step in enumerate(self.steps)]

    def missing_results(self) -> list[str]:
        """What to do with a result that is missing, a sentence for each question."""
        sides = (
            (step.feature, step.question if step.missing == "yes" else step.otherwise)
            for step in self.steps
            if step.question
        )
        return [f"{feature}: without a result go on as for {side}." for feature, side in sides]

    def svg(self) -> str:
        """The tree of the protocol as a drawing, without scripts or fonts of its own."""
        return as_svg(self)

    def html(self, title: str | None = None) -> str:
        """One page to print, by default under the name of the outcome: the drawing, missing results and the rates."""
        return as_html(self, title or self.title)

    def save(self, path: str | Path, title: str | None = None) -> None:
        """Write a file; the end of its name says how: .svg, .html (one page to print, with this title), .md or .txt."""
        kinds: dict[str, Callable[[], str]] = {
            ".svg": self.svg,
            ".html": partial(self.html, title),
            ".md": self.markdown,
            ".txt": self.text,
        }
        suffix = Path(path).suffix.lower()
        if suffix not in kinds:
            raise ValueError(f"A protocol is written as {', '.join(kinds)}, got {str(path)!r}. Change the suffix.")
        write_whole(path, kinds[suffix]())

    def __repr__(self) -> str:
        return f"<Protocol of {self.n_questions} questions: {self.headline()}>"

    def _repr_html_(self) -> str:
        return self.svg()


def protocol(
    plan: Plan | Menu,
    rows: LabelledRows,
    most_questions: int = MOST_QUESTIONS,
    budget: float | None = None,
    outcome: str | None = None,
) -> Protocol:
    """Write a plan as a small tree of purchases.

    Parameters
    ----------
    plan : Plan or Menu
        What predicts classes or numbers; of a menu, the plan that is best within the budget.
    rows : LabelledRows
        Rows that the plan was not trained on.
    most_questions : int, default=12
        How many questions the tree may ask, at least 1.
    budget : float or None, default=None
        The most that a row may pay; None is no limit.
    outcome : str or None, default=None
        The name of what is predicted, as in "died"; None takes it from the plan's schema, if it has one.

    Returns
    -------
    Protocol
        The plan's own tree if it is one that is small enough, otherwise a tree that imitates it, with its fidelity.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.baselines import PathTreeRegressor
    >>> from miserly.report import LabelledRows, protocol
    >>> X = np.arange(20.0)[:, None]
    >>> costs = ms.CostTable.per_feature({"age": 1.0})
    >>> model = PathTreeRegressor(costs, tradeoff=0.0, max_leaf_nodes=2).fit(X, X[:, 0] > 9)
    >>> for what, who in protocol(model.plan_, LabelledRows(X, X[:, 0] > 9)).lines():
    ...     print(what)
    order age (1 units)
    ├─ age ≤ 9.5 or missing: predict 0
    └─ otherwise: predict 1
    """
    if isinstance(plan, Menu):
        chosen = plan.choose(budget)
        plan, budget = chosen.plan, chosen.cap
    if budget is not None and budget >= plan.tables.most_expensive:
        budget = None
    refuse_logged(plan)
    seen = Observed.of(plan, rows, budget)
    tree = own_tree(plan) if budget is None else None
    exact = tree is not None and tree.n_questions <= most_questions
    if exact:
        assert tree is not None
        held_out = np.asarray(seen.answers)
    else:
        tree, held_out = imitate(seen, most_questions)
    steps = _Steps(plan, tree, rows).build()
    ends = [s for s in steps if not s.question]
    cost = float(np.sum([s.share * s.paid for s in ends]))
    rates = () if plan.classes is None else tuple(_rates(plan.classes, rows.y, held_out))
    fidelity = 1.0 if exact else agreement(seen, held_out)
    paid = float(seen.cost.mean())
    is_class = plan.classes is not None
    if outcome is None:
        outcome = (plan.schema.label if plan.schema is not None else None) or ""
    positive = _text(plan.classes[1]) if plan.classes is not None and len(plan.classes) == 2 else ""
    free = tuple(dict.fromkeys(s.feature for s in steps if s.feature and not plan.costs.price([s.feature])))
    unit, n = plan.costs.unit, len(rows)
    return Protocol(tuple(steps), exact, fidelity, cost, paid, rates, unit, n, is_class, outcome, positive, free)


class _Steps:
    """Follows all rows through a tree and writes down what happens at each place."""

    def __init__(self, plan: Plan, tree: SmallTree, rows: LabelledRows) -> None:
        self.plan, self.tree, self.rows = plan, tree, rows
        self.steps: list[ProtocolStep] = []

    def build(self) -> list[ProtocolStep]:
        """All steps, the root first."""
        self._visit(0, np.arange(len(self.rows)), 0)
        return self.steps

    def _visit(self, place: int, here: np.ndarray, owned: int) -> int:
        number, costs, tree = len(self.steps), self.plan.costs, self.tree
        share = len(here) / max(1, len(self.rows))
        if tree.is_decided(place):
            end = ProtocolStep(
                share, len(here), self.plan.tables.ledger.price(owned), prediction=_text(tree.label(place))
            )
            self.steps.append(_measured(end, tree.label(place), self.rows.y[here], self.plan.classes))
            return number
        feature = int(tree.feature[place])
        wanted = costs.feature_masks[feature] & ~owned
        now = owned | wanted
        self.steps.append(ProtocolStep(share, len(here), self.plan.tables.ledger.price(now)))
        right = tree.right(place, self.rows.X[here])
        left = int(tree.left[place])
        yes, no = (self._visit(left + side, here[right == bool(side)], now) for side in (0, 1))
        words = question(self.plan, feature, float(tree.threshold[place]), self.rows.X[:, feature])
        self.steps[number] = ProtocolStep(
            share,
            len(here),
            self.plan.tables.ledger.price(now),
            tuple(costs.acquisitions[a] for a in set_bits(wanted)),
            self.plan.tables.ledger.price(now) - self.plan.tables.ledger.price(owned),
            costs.features[feature],
            words.yes,
            words.no,
            yes,
            no,
            "no" if tree.missing_right[place] else "yes",
        )
        return number


def _measured(step: ProtocolStep, label: Any, y: np.ndarray, classes: np.ndarray | None) -> ProtocolStep:
    """The end of a branch with what was counted on its rows."""
    if not len(y):
        return step
    if classes is None:
        return replace(step, right=(float(np.mean(y)),) * 3)
    risk = wilson(int(np.sum(y == classes[1])), len(y)) if len(classes) == 2 else None
    return replace(step, right=wilson(int(np.sum(y == label)), len(y)), risk=risk)


def _rates(classes: np.ndarray, y: np.ndarray, predicted: np.ndarray) -> Iterator[Rate]:
    """Of two classes the second is looked for; of more, each."""
    for label in classes[1:] if len(classes) == 2 else classes:
        is_so, says_so = y == label, predicted == label
        pairs = ((says_so, is_so), (~says_so, ~is_so), (is_so, says_so), (~is_so, ~says_so))
        yield Rate(_text(label), *(wilson(int(np.sum(a & b)), int(b.sum())) for a, b in pairs))


def _text(value: Any) -> str:
    value = value.item() if hasattr(value, "item") else value
    return figure(value) if isinstance(value, float) else str(value)


def _share(share: float) -> str:
    return "< 1 %" if 0 < share < 0.01 else f"{share:.0%}".replace("%", " %")
