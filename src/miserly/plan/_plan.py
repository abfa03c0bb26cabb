"""The plan itself: data that can be saved, sent, drawn, priced and run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from miserly import _display
from miserly.costs import ROUNDS, Caps, CostTable, read_budget
from miserly.plan import _describe as describe
from miserly.plan import _file as file
from miserly.plan import _links as links
from miserly.plan._background import background
from miserly.plan._certificate import Certificate, Figure, calibration_of, certified
from miserly.plan._contributions import Contributions, contributions
from miserly.plan._dictionary import Dictionary, Trees
from miserly.plan._frozen import Frozen, frozen, known
from miserly.plan._lightgbm_text import to_lightgbm
from miserly.plan._measured import really_paid, repriced, spending
from miserly.plan._mistakes import as_error_costs, least_expected
from miserly.plan._node import EXIT, Gate, Node
from miserly.plan._onnx_model import to_onnx
from miserly.plan._pictures import draw
from miserly.plan._profile import Promise, TrainingProfile
from miserly.plan._reprice import new_costs
from miserly.plan._rule import n_inputs
from miserly.plan._run import Run, run, stages
from miserly.plan._run_rows import run_rows
from miserly.plan._shortcut import brief
from miserly.plan._tables import PlanTables
from miserly.plan._truncate import truncated
from miserly.plan._validation import NO_CONFIDENCE, as_matrix, compared_queries
from miserly.plan._walk import ListWalk, Walk
from miserly.schema import Schema

Charge = Literal["learner", "path"]
Export = Literal["onnx", "lightgbm", "dot"]
EXPORTS: Mapping[str, Callable[[Plan], Any]] = {"onnx": to_onnx, "lightgbm": to_lightgbm, "dot": describe.to_dot}
Budget = float | Mapping[str, float] | Caps | None
LOG_LARGEST = math.log(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class Plan(Frozen):
    """A dictionary of weak learners and a graph of linear scorers over it, with the prices of everything it may buy.

    Parameters
    ----------
    costs : CostTable
        The prices, bound to the features in the order of their columns.
    dictionary : Dictionary
        The weak learners: raw features, trees or kernels.
    nodes : sequence of Node
        The graph. Nodes lead only to later nodes or to the exit.
    prior : array of shape (n_outputs,)
        The free answer: the scores before anything is bought.
    link : str, default="identity"
        How scores are read. As numbers: "identity", "exp", "sigmoid", "softplus" (log(1 + exp z)) or "signed_square".
        As classes: "logistic", "softmax", "one_vs_rest" (a logistic function for each class), "vote" and "coupled"
        (log-odds of pairs of classes), "platt" (votes, then log-odds of pairs), or "shares" (probabilities).
    classes : array, optional
        The labels, exactly if the link reads classes.
    roots : sequence of int, default=(0,)
        Where rows start, one root after the other, with one account.
    charge : {"learner", "path"}, default="learner"
        Whether a node costs all that its learners may look at, or a row pays only for the splits that it meets.
    notes : mapping, optional
        For people; saved, never compared.
    schema : Schema, optional
        What the columns mean: with it, frames and rows may come in the user's own words.
    means : array of shape (n_features,), optional
        The training means, which raw features and kernels take for values that a row does not know.
    unavailable : sequence of str, default=()
        Features that are never bought; their values are unknown.
    shares : array, optional
        For trees: the share of training rows that goes left at each place of the table, from 0 to 1.
    error_costs : array of shape (n_classes, n_classes), optional
        What predictions cost: rows are true classes, columns predictions. With it, the class with the least expected
        cost is predicted, otherwise the most probable.
    certificate : Certificate, optional
        What was shown about the plan; see `certified`.
    profile : TrainingProfile, optional
        What the training rows looked like, to notice drift.
    promise : Promise, optional
        What the plan did on validation rows; see `with_promise`.

    Examples
    --------
    >>> import numpy as np
    >>> from miserly.costs import ROUNDS, Caps, CostTable, read_budget
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> costs = CostTable.per_feature({"age": 1.0, "crp": 12.5})
    >>> plan = Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [0.1, 1.0]),), [0.0], means=[40.0, 2.0])
    >>> plan.predict(np.array([[50.0, 3.0]]))
    array([8.])
    >>> plan.predict(np.array([[50.0, 3.0]]), budget=5), plan.predict_cost(np.array([[50.0, 3.0]]), budget=5)
    (array([7.]), array([1.]))
    """

    costs: CostTable
    dictionary: Dictionary
    nodes: tuple[Node, ...]
    prior: NDArray[np.float64]
    link: links.Link = "identity"
    classes: NDArray[Any] | None = None
    roots: tuple[int, ...] = (0,)
    charge: Charge = "learner"
    notes: Mapping[str, Any] = field(default_factory=dict)
    schema: Schema | None = None
    means: NDArray[np.float64] | None = None
    unavailable: tuple[str, ...] = ()
    shares: NDArray[np.float64] | None = None
    error_costs: NDArray[np.float64] | None = None
    certificate: Certificate | None = None
    profile: TrainingProfile | None = None
    promise: Promise | None = None

    def __post_init__(self) -> None:
        if "categories" in self.notes:  # where estimators and older files leave them
            notes = dict(self.notes)
            found = Schema.of_names(self.costs.features, notes.pop("categories"))
            object.__setattr__(self, "schema", self.schema or found)
            object.__setattr__(self, "notes", notes)
        object.__setattr__(self, "prior", frozen(np.atleast_1d(self.prior), np.float64))
        object.__setattr__(self, "nodes", tuple(self.nodes))
        object.__setattr__(self, "unavailable", tuple(str(name) for name in self.unavailable))
        for name in ("means", "shares"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen(getattr(self, name), np.float64))
        object.__setattr__(self, "roots", tuple(int(r) for r in self.roots))
        if self.classes is not None:
            plain = np.asarray(self.classes)
            object.__setattr__(self, "classes", frozen(plain.tolist() if plain.dtype == object else plain, None))
        if self.error_costs is not None:
            if self.classes is None:
                raise ValueError("A plan that predicts numbers has no error_costs: they price pairs of classes.")
            object.__setattr__(self, "error_costs", frozen(as_error_costs(self.error_costs, len(self.classes)), None))
        self._check()

    def _check(self) -> None:
        """Refuse a graph that could loop, or numbers that point outside what there is."""
        n_nodes, n_learners = len(self.nodes), len(self.dictionary)
        known("charge", self.charge, Charge)
        known("link", self.link, links.Link)
        if self.prior.ndim != 1 or (self.classes is not None and self.classes.ndim != 1):
            raise ValueError("A plan's prior and its classes are lists.")
        if self.schema is not None and self.schema.names != self.costs.features:
            raise ValueError("A plan's schema has other columns than its cost table, or in another order.")
        if self.dictionary.n_features > len(self.costs.features):
            raise ValueError("The dictionary uses features that the cost table does not list.")
        if (self.link in links.OF_NUMBERS) != (self.classes is None):
            raise ValueError(f"A plan has classes exactly if its link is none of {', '.join(links.OF_NUMBERS)}.")
        if self.classes is not None and links.n_outputs(self.link, len(self.classes)) != len(self.prior):
            raise ValueError(
                f"{len(self.classes)} classes with the {self.link} link do not read {len(self.prior)} scores."
            )
        if not all(0 <= root < n_nodes for root in self.roots) or bool(self.roots) != bool(self.nodes):
            raise ValueError("A plan's roots are numbers of its nodes.")
        for k, node in enumerate(self.nodes):
            if any(way != EXIT and not k < way < n_nodes for way in (node.passed, node.failed)):
                raise ValueError(
                    f"Node {k} must lead to later nodes or to the exit, not to {node.passed}, {node.failed}."
                )
            if len(node.learners) and not (node.learners.min() >= 0 and node.learners.max() < n_learners):
                raise ValueError(f"Node {k} uses learners that the dictionary has not.")
            if not all(0 <= j < len(self.prior) for j in node.outputs):
                raise ValueError(f"Node {k} writes outputs that the plan has not.")
            if node.rule is not None and (self.charge == "path" or node.rule.n_features > n_inputs(self)):
                raise ValueError(f"Node {k} has a learned gate: plans charged by path, or other features, have none.")
            if node.gate.kind == "confidence" and self.classes is None:
                raise ValueError(f"Node {k} asks for confidence, which a plan without classes cannot tell.")
        if self.means is not None and (
            isinstance(self.dictionary, Trees)
            or self.means.shape != (len(self.costs.features),)
            or np.isinf(self.means).any()
        ):
            raise ValueError(
                "A plan's means are one finite number per feature, for raw features and kernels: trees have a way for "
                "missing values."
            )
        if self.shares is not None:
            of_trees = isinstance(self.dictionary, Trees) and self.shares.shape == self.dictionary.left.shape
            if not of_trees or not ((self.shares >= 0) & (self.shares <= 1)).all():
                raise ValueError("A plan's shares are a number from 0 to 1 for each place of its table of trees.")
        unknown = [name for name in self.unavailable if name not in self.costs.needs]
        if unknown:
            raise ValueError(f"The plan knows no feature {unknown[0]!r} that could be unavailable.")
        lost = [f for rule in self.costs.row_prices.values() for f in rule.features if f in self.unavailable]
        if lost:
            raise ValueError(f"A price depends on {lost[0]!r}, which is unavailable. Give the acquisition a number.")
        prices = [*self.costs.prices.values(), *self.costs.evaluation_prices(n_learners)]
        if not math.isfinite(len(prices) * max(prices, default=0.0)):
            raise ValueError("All prices together are more than a number can hold.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and (
            self.costs == other.costs
            and self.dictionary == other.dictionary
            and self.nodes == other.nodes
            and np.array_equal(self.prior, other.prior)
            and (self.link, self.roots, self.charge) == (other.link, other.roots, other.charge)
            and self.unavailable == other.unavailable
            and np.array_equal(self.classes, other.classes)  # type: ignore[arg-type]
            and np.array_equal(self.error_costs, other.error_costs)  # type: ignore[arg-type]
            and self.certificate == other.certificate
            and (self.means is None) == (other.means is None)
            and (self.means is None or np.array_equal(self.means, other.means, equal_nan=True))  # type: ignore[arg-type]
        )

    # ---- running ----------------------------------------------------------------------------------------------

    def run(
        self,
        X: Any,
        qid: Any = None,
        budget: Budget = None,
        charge: Charge | None = None,
        confidence: float | None = None,
        strict: bool = False,
    ) -> Run:
        """Scores, costs and exits of every row.

        Parameters
        ----------
        X : array or frame, rows × features
            The values; a row reads only those that it pays for.
        qid : array, optional
            The query of each row, for gates that compare documents.
        budget : float or mapping of str to float, optional
            The most that a row may pay, in all or of each currency and of `rounds`. What does not fit is skipped, and
            the row goes on with what fits. Of prices that were measured the estimate counts.
        charge : {"learner", "path"}, optional
            Instead of the plan's own.
        confidence : float, optional
            Rows stop before the next purchase once their most probable class has this probability.
        strict : bool, default=False
            Whether the upper quantile of a measured price has to fit the budget, not only its estimate.
        """
        if confidence is not None:
            return self.stopping(confidence).run(X, qid, budget, charge, strict=strict)
        if strict and budget is not None:
            return repriced(self, self.tables.cautious.run(X, qid, budget, charge), X)
        matrix = as_matrix(X, self.costs.features, self.costs.named, self.schema)
        charge = charge or self.charge
        known("charge", charge, Charge)
        query = compared_queries(self, qid, len(matrix))
        limit = self._limit(budget)
        if self.tables.row_prices is not None and limit != math.inf:
            return run_rows(self if charge == self.charge else replace(self, charge=charge), matrix, query, limit)
        shorter = brief(self, limit) if charge == "learner" else None
        if shorter is None:
            return run(self, matrix, query, limit, charge)
        plan, last, stopped = shorter
        result = run(plan, matrix, query, math.inf, charge)
        exits, stops = np.full((len(matrix), 1), last, np.int64), np.full(len(matrix), stopped)
        return replace(result, exit=exits, out_of_budget=stops).with_accounts(result.accounts)

    def _limit(self, budget: Any) -> float | Caps:
        """A budget, checked: a number, or caps by currency."""
        return read_budget(budget, self.costs.exchange, self.costs.unit)

    def score(
        self, X: Any, qid: Any = None, budget: Budget = None, confidence: float | None = None, strict: bool = False
    ) -> NDArray[np.float64]:
        """Raw scores: one column squeezed to a vector, several as rows × outputs."""
        score = self._single(X) if qid is budget is confidence is None else None
        score = self.run(X, qid, budget, confidence=confidence, strict=strict).score if score is None else score
        return score[:, 0] if score.shape[1] == 1 else score

    def rank_score(self, X: Any, qid: Any = None, budget: Budget = None) -> NDArray[np.float64]:
        """Scores to rank by: rows that left at a lower tier stand below all others, each tier in its own order.

        One number for both, so scores that differ by less than about 1e-12 of themselves may tie.
        """
        result = self.run(X, qid, budget)
        score = result.score[:, 0]
        if not any(node.tier for node in self.nodes):
            return score
        within = np.minimum(np.log1p(np.abs(score)), LOG_LARGEST) / (2.01 * LOG_LARGEST)
        return np.asarray(result.tier + 0.5 + np.copysign(within, score), np.float64)

    def predict(
        self, X: Any, qid: Any = None, budget: Budget = None, confidence: float | None = None, strict: bool = False
    ) -> NDArray[Any]:
        """Labels, or numbers where there are no classes."""
        return self.read(self._calibrated(X, qid, budget, confidence, strict))

    def predict_proba(
        self, X: Any, qid: Any = None, budget: Budget = None, confidence: float | None = None, strict: bool = False
    ) -> NDArray[np.float64]:
        """Probability of each class."""
        return self.probabilities(self._calibrated(X, qid, budget, confidence, strict))

    def _calibrated(
        self, X: Any, qid: Any, budget: Budget, confidence: float | None, strict: bool = False
    ) -> NDArray[np.float64]:
        """The scores that predictions are read from."""
        z = self._single(X) if qid is budget is confidence is None else None
        return self.run(X, qid, budget, confidence=confidence, strict=strict).z if z is None else z

    def _single(self, X: Any) -> NDArray[np.float64] | None:
        """The scores of one row, if the plan is one of those that can do without a batch."""
        if type(self).run is not Plan.run or not isinstance(X, np.ndarray) or len(X.shape) != 2 or len(X) != 1:
            return None  # before anything is made ready: a batch does not need it
        ready = self.tables.one_row
        return None if ready is None else ready.scores(X)

    def predict_cost(
        self,
        X: Any,
        qid: Any = None,
        budget: Budget = None,
        charge: Charge | None = None,
        confidence: float | None = None,
        *,
        prices: Any = None,
        strict: bool = False,
        currency: str | None = None,
    ) -> NDArray[np.float64]:
        """What each row pays.

        Parameters
        ----------
        X, qid, budget, charge, confidence, strict
            As in `run`.
        prices : frame, mapping or array of shape (n_rows, n_acquisitions), optional
            What each acquisition really cost each row: by name, or in the order of `costs.acquisitions`. The rows buy
            what they buy by the plan's own prices; the result is what they really paid.
        currency : str, optional
            Count only this currency, or the `"rounds"` of orders. By default everything, in the table's unit.
        """
        if currency is not None:
            return spending(self, X, qid, budget, charge, confidence, currency)
        run = self.run(X, qid, budget, charge, confidence, strict=strict)
        return run.cost if prices is None else really_paid(self, run, X, prices)

    def overrun(self, X: Any, prices: Any, budget: float, qid: Any = None, strict: bool = False) -> NDArray[np.float64]:
        """How much more than the budget each row really pays, since the cap holds for estimates.

        Parameters
        ----------
        X, qid, strict
            As in `run`.
        prices : frame, mapping or array of shape (n_rows, n_acquisitions)
            What each acquisition really cost each row, as in `predict_cost`.
        budget : float
            The cap in the table's unit.
        """
        return np.maximum(0.0, self.predict_cost(X, qid, budget, prices=prices, strict=strict) - float(budget))

    def contributions(
        self, X: Any, qid: Any = None, budget: float | None = None, confidence: float | None = None
    ) -> Contributions:
        """What each purchase moved the scores, and what it cost: for every row they add up to the score.

        Trees: at each split the mean of the training rows changes, which is the part of the split's feature (Saabas).
        Raw features: weight times distance from the training mean. Kernels: the change when the value takes the place
        of the mean, in the order of buying. A policy: the change of its prediction at each purchase. A feature that
        needs several acquisitions divides its part equally among them.

        Parameters
        ----------
        X : array or frame, rows × features
            The values.
        qid : array, optional
            The query of each row, for gates that compare documents.
        budget : float, optional
            The most that a row may pay.
        confidence : float, optional
            Rows stop once their most probable class has this probability.
        """
        if confidence is not None:
            return self.stopping(confidence).contributions(X, qid, budget)
        matrix = as_matrix(X, self.costs.features, self.costs.named, self.schema)
        limit = self._limit(budget)
        if isinstance(limit, Caps) or (self.tables.row_prices is not None and limit < math.inf):
            raise ValueError(
                "Contributions under caps by currency, or under a budget where prices depend on the row, are not "
                "known. Leave the budget out."
            )
        return contributions(self, matrix, compared_queries(self, qid, len(matrix)), limit)

    def start(
        self,
        budget: Budget = None,
        given: Mapping[str, float] | None = None,
        without: Sequence[str] = (),
        owned: Sequence[str] = (),
        tolerant: bool = False,
    ) -> Walk:
        """Begin one row without its values: the walk says what it needs. Features that need nothing are `given`, and so
        are those of acquisitions that are `owned` already, for which nobody pays; the walk does `without` acquisitions
        that are known to be out of reach."""
        return Walk(self, self._limit(budget), given or {}, without, owned, tolerant=tolerant)

    def start_list(
        self,
        n_rows: int,
        budget: Budget = None,
        given: Sequence[Mapping[str, float]] | None = None,
        without: Sequence[str] = (),
        owned: Sequence[Sequence[str]] | None = None,
    ) -> ListWalk:
        """Begin the documents of one query; the budget is for each document."""
        return ListWalk(self, given or [{}] * n_rows, self._limit(budget), without, owned)

    def read(self, z: NDArray[np.float64]) -> NDArray[Any]:
        """Calibrated scores as labels, or as numbers."""
        if self.error_costs is not None and self.classes is not None:
            best: NDArray[Any] = self.classes[least_expected(self.probabilities(z), self.error_costs)]
            return best
        if self.classes is not None:
            return links.labels(self.link, z, self.classes)
        number = links.numbers(self.link, np.ascontiguousarray(z))
        return number[:, 0] if number.shape[1] == 1 else number

    def read_row(self, z: NDArray[np.float64]) -> Any:
        """The same of one row."""
        plain = self.classes is not None and self.error_costs is None and self.link == "logistic"
        if plain and len(self.classes) == 2 and self.n_outputs == 1:  # type: ignore[arg-type]
            return self.classes[1 if z[0, 0] > 0 else 0]  # type: ignore[index]
        return self.read(z)[0]

    def probabilities(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Calibrated scores as class probabilities."""
        return links.probabilities(self.link, z, 0 if self.classes is None else len(self.classes))

    # ---- what it is -------------------------------------------------------------------------------------------

    @cached_property
    def tables(self) -> PlanTables:
        """What running, describing and serving the plan look up in it."""
        return PlanTables(self)

    @property
    def currencies(self) -> tuple[str, ...]:
        """What a budget may cap."""
        return (*self.costs.exchange, ROUNDS, "total", self.costs.unit)

    @property
    def n_outputs(self) -> int:
        """How many scores a row has."""
        return len(self.prior)

    @property
    def by_query(self) -> bool:
        """Whether some gate compares the documents of a query."""
        return any(node.gate.by_query for node in self.nodes)

    @cached_property
    def used_features(self) -> tuple[int, ...]:
        """The columns that some node may look at."""
        learners = {int(t) for node in self.nodes for t in node.learners}
        distinct = {self.dictionary.features_of(t).astype(np.int64).tobytes() for t in learners}
        looked_at = {int(f) for key in distinct for f in np.frombuffer(key, np.int64)}
        away = {self.tables.feature_numbers[name] for name in self.unavailable}
        looked_at = looked_at.union(*(self.tables.rule_features(node) for node in self.nodes)) - away
        if self.tables.row_prices is not None:
            looked_at |= self.tables.row_prices.columns_for(self.tables.masks[f] for f in looked_at)
        return tuple(sorted(looked_at))

    @cached_property
    def can_miss(self) -> bool:
        """Whether it can do without a value: trees have a way for missing ones, others take the mean that is stored."""
        if isinstance(self.dictionary, Trees):
            return True
        return self.means is not None and not np.isnan(self.means[list(self.used_features)]).any()

    def stages(self, X: Any, qid: Any = None) -> Iterator[Run]:
        """The state of all rows after each stage: every node of a chain, every level of nodes where ways part. Rows
        that have left stay as they left."""
        matrix = as_matrix(X, self.costs.features, self.costs.named, self.schema)
        return stages(self, matrix, compared_queries(self, qid, len(matrix)))

    def stopping(self, confidence: float) -> Plan:
        """The plan with a gate before every further purchase: rows leave whose most probable class has this
        probability or more. What was gated already stays as it was."""
        if self.classes is None:
            raise ValueError(NO_CONFIDENCE)
        if not 0.0 < confidence <= 1.0:
            raise ValueError(f"confidence is a probability above 0, at most 1, got {confidence:g}.")
        gate = Gate.unless_confident(confidence)
        nodes = [
            replace(node, gate=gate) if node.gate.kind == "open" and self._sells_more(k) else node
            for k, node in enumerate(self.nodes)
        ]
        return replace(self, nodes=tuple(nodes), certificate=None, promise=None)

    def lazy(self, keep: str | None = None, k: int = 10, adaptive: bool = True) -> Any:
        """The plan that stops buying once the prediction is certain: the same classes, or order, for less.

        Parameters
        ----------
        keep : {"class", "order"}, optional
            The class of each row, or the first rows of each query in their order. By default the class where there are
            classes.
        k : int, default=10
            How many rows of a query keep their places. Only "order" reads it.
        adaptive : bool, default=True
            Whether a row buys next what may narrow its answer most for its price, or what its trees ask for first.

        Returns
        -------
        LazyPlan
        """
        from miserly.plan._lazy import lazy_plan
        from miserly.plan._lazy_rule import Lazy

        kept: Any = keep or ("order" if self.classes is None else "class")
        return lazy_plan(self, Lazy(kept, k, adaptive))

    def with_error_costs(self, error_costs: Any) -> Plan:
        """The plan that predicts what is expected to cost least.

        Parameters
        ----------
        error_costs : array-like of shape (n_classes, n_classes) or None
            What predictions cost, in the unit of the prices, 0 or more: rows are true classes, columns predictions, in
            the order of `classes`. None: the most probable class is predicted again.
        """
        return replace(self, error_costs=error_costs, certificate=None, promise=None)

    def certified(
        self,
        X_cal: Any,
        y_cal: Any = None,
        target: float = 0.95,
        of: Figure = "accuracy",
        delta: float = 0.05,
        positive: Any = None,
        budget: float | None = None,
    ) -> Plan:
        """The plan with the cheapest thresholds under which a figure holds on new rows with probability 1 − delta.

        Rows stop once they are confident enough. Thresholds are tested from the safest to the cheapest by exact
        binomial tests, each sequence up to its first failure. A target that cannot be certified is refused with
        the number of rows that would be needed.

        Parameters
        ----------
        X_cal : array or frame, rows × features
            Calibration rows: a random sample of the rows to come, which the plan was not fitted or chosen on.
        y_cal : array, optional
            Their labels. Agreement needs none.
        target : float, default=0.95
            The least value of the figure, between 0 and 1.
        of : {"accuracy", "precision", "recall", "agreement"}, default="accuracy"
            The figure. Agreement is with the plan that buys everything.
        delta : float, default=0.05
            The probability that the guarantee may fail, between 0 and 1.
        positive : object, optional
            The class of precision and recall; by default the second of two.
        budget : float, optional
            The cap under which the plan will run; by default none.
        """
        return certified(self, calibration_of(self, X_cal, y_cal, target, of, delta, positive, budget))

    def _sells_more(self, k: int) -> bool:
        """Whether the node after this one costs something more."""
        if self.nodes[k].passed == EXIT:
            return False
        (bought, used), (have, known) = self.tables.purchase(self.nodes[k].passed), self.tables.owned_at(k)
        return bool(bought & ~have) or self.tables.ledger.price(0, used & ~known) > 0

    def with_background(self, X: Any) -> Plan:
        """The plan with what training rows say about values that a row does not buy: the means of the columns, or which
        share of the rows goes left at each split. Unlike the rest of a plan this is not compared by `==`."""
        matrix = as_matrix(X, self.costs.features, self.costs.named, self.schema)
        profile = TrainingProfile.of(self.costs.features, self.used_features, matrix)
        return replace(self, profile=profile, **background(self.dictionary, matrix))

    def with_promise(self, X: Any, y: Any = None, qid: Any = None) -> Plan:
        """The plan with what it does on validation rows, which `miserly serve` and `miserly monitor` compare with what
        comes later. Not compared by `==`.

        Parameters
        ----------
        X : array or frame, rows × features
            Rows that the plan was not fitted on.
        y : array, optional
            Their labels or numbers, for the quality (not of rankings).
        qid : array, optional
            The query of each row.
        """
        return replace(self, promise=Promise.of(self, self.run(X, qid), None if qid is not None else y))

    def reprice(self, costs: CostTable | Mapping[str, float]) -> Plan:
        """The same model under new prices.

        What rows buy without a budget stays as it was, except in a `PolicyPlan`, which weighs prices at every step. A
        certificate stays if it holds without a budget; its cost is the old one.

        Parameters
        ----------
        costs : CostTable or mapping of str to float
            The new prices of the same features and acquisitions; a mapping changes some of them.
        """
        keeps = self.certificate is not None and self.certificate.budget is None and type(self) is Plan
        kept = self.certificate if keeps else None
        return replace(self, costs=new_costs(self.costs, costs), certificate=kept, promise=None)

    def truncate(self, budget: float) -> Plan:
        """The plan without what a budget leaves out of it: it answers as `predict(budget=budget)` does."""
        if self.charge == "path":
            raise ValueError("Under charge='path' a budget is kept split by split. Use predict(X, budget=...).")
        if self.tables.row_prices is not None:
            raise ValueError("Prices depend on the row, and so does what fits a budget. Use predict(X, budget=...).")
        limit = self._limit(budget)
        if isinstance(limit, Caps):
            raise ValueError("Caps by currency are kept order by order. Use predict(X, budget=...).")
        return replace(truncated(self, limit), certificate=None, promise=None)

    # ---- words, pictures, files -------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary().splitlines()[0].rstrip('.')}>"

    def _repr_html_(self) -> str:
        bought: dict[str, float] = {}
        for line in self.purchases():
            bought |= {name: self.costs.prices[name] for name in line["buys"]}
        drawn = _display.bars([*bought.items()], f"what it may buy, in order, with prices in {self.costs.unit}")
        table = _display.table([*map(dict, self.purchases())], "purchases, in order")
        return _display.text(self.summary()) + drawn + table

    def summary(self) -> str:
        """The plan in three sentences."""
        return describe.summary(self)

    def describe(self) -> str:
        """The plan in words: what it buys, in which order, at what price, and who goes where."""
        return describe.in_words(self)

    def purchases(self) -> list[dict[str, Any]]:
        """A table of the purchases in the order of the nodes: what, for how much, serving how many learners."""
        return describe.purchases(self)

    def plot(self, X: Any, y: Any, path: str | Path | None = None, ax: Any = None) -> Any:
        """Draw who goes where among some rows, and what each node buys; with a path, write the picture there."""
        return draw("plan", self, X=X, y=y, path=path, ax=ax)

    def export(self, form: Export) -> Any:
        """The plan in another program's language.

        Parameters
        ----------
        form : {"onnx", "lightgbm", "dot"}
            An ONNX model in single precision, of trees or raw features where all rows go the same way; the text of a
            LightGBM model file with the same predictions, of such trees; or the graph in Graphviz's language.

        Returns
        -------
        onnx.ModelProto or str
        """
        known("form", form, Export)
        return EXPORTS[form](self)

    def save(self, path: str | Path) -> None:
        """Write one file of JSON and raw arrays; the old file stays whole if anything goes wrong."""
        file.save_plan(self, path)
