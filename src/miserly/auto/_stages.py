"""Models on sets of acquisitions, each scored on rows that it was not fitted on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import numpy as np
from sklearn.base import clone

from miserly._typing import Floats
from miserly.auto._clock import TimeLimit
from miserly.auto._linear import BLENDS, STRENGTHS, LinearFitter, weighted_sum
from miserly.auto._task import SMALL, Rows, Task
from miserly.boosting import BinnedData
from miserly.costs import Ledger
from miserly.estimators import GreedyMiserClassifier, GreedyMiserRanker, GreedyMiserRegressor
from miserly.plan import EXIT, Plan

KINDS = {"classes": GreedyMiserClassifier, "numbers": GreedyMiserRegressor, "lists": GreedyMiserRanker}
PATIENCE = 12
FEWEST_ROUNDS, MOST_ROUNDS = 50, 300  # half a round a row: on few rows the loss may fall for ever without a gain
LARGE = 4000  # rows from which deeper trees are tried
SHAPES: tuple[dict[str, Any], ...] = ({"max_depth": 3, "max_leaf_nodes": None}, {"max_depth": 6, "max_leaf_nodes": 16})
LIST_SHAPES: tuple[dict[str, Any], ...] = (
    {"loss": "squared", "max_depth": 3, "max_leaf_nodes": None, "learning_rate": 0.1},
    {"loss": "squared", "max_depth": 6, "max_leaf_nodes": 16, "learning_rate": 0.1},
    {"loss": "lambdarank", "max_depth": 3, "max_leaf_nodes": None, "learning_rate": 0.2},
)
SMALL_SHAPES: tuple[dict[str, Any], ...] = (
    {"max_depth": 1, "l2_regularization": 1.0},
    {"max_depth": 3, "l2_regularization": 1.0},
    {"max_depth": 3, "l2_regularization": 10.0},
    {"max_depth": 2, "l2_regularization": 1.0},
)
DEEP: dict[str, Any] = {"max_depth": 6, "max_leaf_nodes": 16, "l2_regularization": 1.0}
MIDDLE = 1000  # rows from which sets of many features may have deeper trees than sets of few
MANY = 1 / 3  # of all features, from which a set has many
WORTH_IT = 0.002  # share of the loss by which linear models must help with all features
ROWS_DRAWN = 0.6  # of a round, with half of the features, where that is better than all
MORE_ROWS = 1.05  # rounds of the model of all rows, relative to those of the folds


@dataclass(frozen=True, eq=False)
class StageModel:
    """A model that looks at what a set of acquisitions gives: out-of-fold predictions, and the model of all rows.

    Predictions are rows × columns: probabilities of classes, or one number. `held` are those of the user's validation
    rows by the model of all rows. `prefixes` are its first rounds alone, where evaluating trees costs something.
    `of_fold` is the model of the first fold, for what must be tried on rows that a model has not seen. `finals` has
    the models, by set, that were learned from more rows than these (`LargeData`).
    """

    bought: int
    price: float
    oof: Floats
    held: Floats | None
    plan: Plan
    prefixes: tuple[StageModel, ...] = ()
    of_fold: Plan | None = None
    finals: dict[int, Plan] = field(default_factory=dict)

    def model(self, of_fold: bool) -> Plan:
        """The model of all rows, or of the first fold where there is one."""
        if of_fold and self.of_fold is not None:
            return self.of_fold
        final = self.finals.get(self.bought)
        return self.plan if final is None else _first_rounds(final, len(self.plan.nodes))

    @property
    def acquired(self) -> int:
        """The acquisitions that the model really buys."""
        masks, total = self.plan.costs.feature_masks, 0
        for f in self.plan.used_features:
            total |= masks[f]
        return total

    @property
    def evaluations(self) -> float:
        """What evaluating the model costs."""
        each = self.plan.costs.evaluation
        n_trees = sum(len(node.learners) for node in self.plan.nodes)
        return n_trees * float(np.max(each))


class StageFitter:
    """Fits stages on demand and remembers them. Bins are made once; features out of a set get none."""

    def __init__(self, task: Task, clock: TimeLimit, **params: Any) -> None:
        self.task, self.clock = task, clock
        self.masks = task.costs.feature_masks
        self.everything = _largest(task)
        self._ledger = Ledger(task.costs.price_list, ())
        settings: dict[str, Any] = {
            "n_estimators": int(np.clip(len(task.train) // 2, FEWEST_ROUNDS, MOST_ROUNDS)),
            "learning_rate": 0.1,
            "max_depth": 3,
            "min_samples_leaf": int(np.clip(len(task.train) // 150, 3, 20)),
            "l2_regularization": 1.0,  # without it leaves of tiny curvature take steps that ruin the model
            "n_iter_no_change": PATIENCE,
        } | params

        costs = replace(task.costs, missing={})  # rows are weighted here
        self.model = KINDS[task.kind](costs, tradeoff=0.0, n_jobs=1, random_state=task.seed, **settings)
        self.stages: dict[int, StageModel] = {}
        self.finals: dict[int, Plan] = {}
        self._of_set: dict[int, Any] = {}
        self._deeper: Any = None
        self._linear: LinearFitter | None = None
        self._bins: dict[int, BinnedData] = {}
        self._lock = Lock()

    def choose_shape(self) -> None:
        """Try a few shapes of trees with all features on one fold, and keep the best."""
        task = self.task
        everything = self.everything
        if not self.features(everything).any() or (task.held is None and not task.folds):
            return
        losses = []
        for shape in LIST_SHAPES if task.kind == "lists" else SHAPES if len(task.train) >= LARGE else SMALL_SHAPES:
            losses.append((self._watched_loss(clone(self.model).set_params(**shape)), shape))
            if self.clock.over(0.08):
                break
        least, shape = min(losses, key=lambda found: found[0])
        self.model.set_params(**shape)
        if task.kind == "lists" or self.clock.over(0.08):
            return
        drawn = clone(self.model).set_params(subsample=ROWS_DRAWN)
        loss = self._watched_loss(drawn)
        if loss < least:
            self.model, least = drawn, loss
        if not task.folds:
            return
        if MIDDLE <= len(task.train) < LARGE:
            deeper = clone(self.model).set_params(**DEEP)
            self._deeper = deeper if self._watched_loss(deeper) < least else None
        if len(task.train) < LARGE and not self._is_priced and task.train.logged is None:
            self._linear = self._useful_linear()

    def _watched_loss(self, model: Any) -> float:
        """The loss of a model with all features on rows that it has not seen: of few rows those of every fold."""
        task = self.task
        if task.held is not None:
            parts = [(-1, task.train, task.held)]
        else:
            folds = task.folds if len(task.train) <= SMALL else task.folds[:1]
            parts = [(k, task.train.part(fit), task.train.part(score)) for k, (fit, score) in enumerate(folds)]
        fits = [self._fit(fit, self.everything, number, watched, model) for number, fit, watched in parts]
        return float(np.mean([min(fitted.validation_loss_, default=math.inf) for fitted in fits]))

    def _useful_linear(self) -> LinearFitter | None:
        """Linear models with the penalty that is best beside boosted ones; None if they do not help."""
        linear = LinearFitter(self.task)
        plans, _ = self._fold_plans(self.everything)
        features = self.features(self.everything)
        found = []
        alone = self._out_of_fold_scores(plans)
        for strength in STRENGTHS:
            linear.strength = strength
            lines = [linear.plan(fit, features, plan) for (fit, _), plan in zip(self.task.folds, plans)]
            made = [plan for plan in lines if plan is not None]
            if len(made) < len(plans):
                return None
            found.append((self._blend(alone, self._out_of_fold_scores(made), plans[0])[1], strength))
        least, linear.strength = min(found)
        before = self._blend(alone, alone, plans[0])[1]
        return linear if least < (1.0 - WORTH_IT) * before else None

    def _blend(self, boosted: Floats, line: Floats, like: Plan) -> tuple[float, float]:
        """The share of the linear model that is best on out-of-fold scores, and the loss."""
        loss = "log" if self.task.kind == "classes" else "squared"
        losses = [self.task.mean_loss(self._read(like, (1 - w) * boosted + w * line), loss) for w in BLENDS]
        best = int(np.argmin(np.round(losses, 6)))
        return BLENDS[best], losses[best]

    def model_of(self, bought: int) -> Any:
        """The estimator that a set's model is of."""
        return self._of_set.get(bought, self.model)

    def features(self, bought: int) -> np.ndarray:
        """Which features a set of acquisitions gives."""
        return np.array([not mask & ~bought for mask in self.masks], bool)

    def price(self, bought: int) -> float:
        """What a set of acquisitions costs."""
        return self._ledger.price(bought)

    def stage(self, bought: int) -> StageModel:
        """The stage of a set, fitted the first time."""
        if bought not in self.stages:
            plans: list[Plan] = []
            if self.task.kind == "lists" and self.task.held is not None:
                plan = self._watched_by_held(bought)
            else:
                plans, plan = self._best_plans(bought)
            ends = [2**k for k in range(12) if 2**k < len(plan.nodes)] if self._is_priced else []
            prefixes = [self._stage(bought, _first_rounds(plan, n), [_first_rounds(p, n) for p in plans]) for n in ends]
            self.stages[bought] = replace(self._stage(bought, plan, plans), prefixes=tuple(prefixes))
        return self.stages[bought]

    def _best_plans(self, bought: int) -> tuple[list[Plan], Plan]:
        """The plans of the folds and of all rows; of sets of many features with deeper trees, if those are better."""
        plans, n_rounds = self._fold_plans(bought)
        model = self.model
        if plans and self._deeper is not None and self.features(bought).mean() >= MANY:
            others, n_others = self._fold_plans(bought, self._deeper)
            loss = "log" if self.task.kind == "classes" else "squared"
            found = [self.task.mean_loss(self._joined(which), loss, bought) for which in (others, plans)]
            if found[0] < found[1]:
                plans, n_rounds, model = others, n_others, self._deeper
        self._of_set[bought] = model
        final = self._final(bought, n_rounds, model)
        if plans and self._linear is not None:
            plans, final = self._with_linear(self._linear, bought, plans, final)
        if len(self.task.train) <= SMALL and not self._is_priced and {p.n_outputs for p in plans} == {final.n_outputs}:
            final = weighted_sum([final, *plans], [0.5, *(0.5 / len(plans) for _ in plans)])
        return plans, final

    def _with_linear(
        self, linear: LinearFitter, bought: int, plans: list[Plan], final: Plan
    ) -> tuple[list[Plan], Plan]:
        """Boosted and linear models of a set together, in the shares that are best on rows that they have not seen."""
        features = self.features(bought)
        others = [linear.plan(fit, features, plan) for (fit, _), plan in zip(self.task.folds, plans)]
        last = linear.plan(np.arange(len(self.task.train)), features, final)
        lines = [plan for plan in others if plan is not None]
        if last is None or len(lines) < len(plans) or {p.n_outputs for p in plans} != {final.n_outputs}:
            return plans, final
        share, _ = self._blend(self._out_of_fold_scores(plans), self._out_of_fold_scores(lines), final)
        if share == 0.0:
            return plans, final
        pairs = [*zip(plans, lines), (final, last)]
        *blended, whole = [weighted_sum(pair, (1.0 - share, share)) for pair in pairs]
        return blended, whole

    def _out_of_fold_scores(self, plans: list[Plan]) -> Floats:
        task = self.task
        out = np.zeros((len(task.train), plans[0].n_outputs))
        for plan, (_, score) in zip(plans, task.folds):
            out[score] = plan.run(task.train.X[score]).score
        return out

    def _read(self, plan: Plan, scores: Floats) -> Floats:
        """Scores as the stage's predictions: probabilities, or numbers."""
        return plan.probabilities(scores) if self.task.n_classes else scores

    @property
    def _is_priced(self) -> bool:
        return float(np.max(self.task.costs.evaluation)) > 0

    def _stage(self, bought: int, plan: Plan, fold_plans: list[Plan]) -> StageModel:
        held = None if self.task.held is None else self.predict(plan, self.task.held)
        if fold_plans:
            oof = self._joined(fold_plans)
        else:  # too few rows for folds, or nothing to fit
            oof = self.predict(plan, self.task.train) if plan.nodes and held is None else self._constants()
        of_fold = fold_plans[0] if fold_plans else None
        stage = StageModel(bought, 0.0, oof, held, plan, of_fold=of_fold, finals=self.finals)
        return replace(stage, price=self.price(bought) + stage.evaluations)

    def out_of_fold(self, bought: int) -> Floats:
        """Predictions for each training row by a model that has not seen it."""
        plans, _ = self._fold_plans(bought)
        return self._joined(plans) if plans else self._constants()

    def _joined(self, plans: list[Plan]) -> Floats:
        """What the plan of each fold predicts for the rows that it has not seen."""
        task = self.task
        out = np.zeros((len(task.train), task.n_columns))
        for plan, (_, score) in zip(plans, task.folds):
            out[score] = self.predict(plan, task.train.part(score))
        return out

    def _fold_plans(self, bought: int, model: Any = None) -> tuple[list[Plan], int]:
        """The plan of each fold, and how many rounds were best; none without features or folds."""
        task = self.task
        if not self.features(bought).any() or not task.folds:
            return [], 20 if self.features(bought).any() else 0
        plans, rounds = [], []
        for k, (fit, score) in enumerate(task.folds):
            fitted = self._fit(task.train.part(fit), bought, k, task.train.part(score), model)
            plans.append(fitted.plan_)
            rounds.append(fitted.n_iter_)
        return plans, max(1, round(float(np.mean(rounds)) * MORE_ROWS))

    def _watched_by_held(self, bought: int) -> Plan:
        """The model of all rows, stopped on the user's validation rows: lists need no out-of-fold predictions then."""
        if not self.features(bought).any():
            return self._final(bought, 0)
        plan: Plan = self._fit(self.task.train, bought, -1, self.task.held).plan_
        return plan

    def importance(self, bought: int) -> Floats:
        """How much each feature lowers the loss of a set's model: what a round gained, by its splits."""
        plan = self.stage(bought).plan
        gains = np.zeros(len(self.masks))
        trees = plan.dictionary
        for node in plan.nodes:
            used = np.concatenate([_splits(trees, int(t)) for t in node.learners] or [np.zeros(0, np.intp)])
            if len(used) and node.gain > 0:
                gains += node.gain * np.bincount(used, minlength=len(gains)) / len(used)
        return gains

    def _constants(self) -> Floats:
        """What is predicted without any feature: the shares of the classes, or the mean."""
        task, y = self.task, self.task.train.y
        out = np.zeros((len(y), task.n_columns))
        if task.kind == "classes":
            out[:] = np.bincount(y.astype(np.intp), minlength=task.n_classes) / len(y)
        elif task.kind == "numbers":
            out[:] = y.mean()
        return out

    def _final(self, bought: int, n_rounds: int, model: Any = None) -> Plan:
        """The model of all rows: as many rounds as were best in the folds."""
        task = self.task
        model = clone(model or self.model).set_params(n_estimators=max(1, n_rounds), n_iter_no_change=None)
        fitted = self._fit(task.train, bought, -1, None, model)
        plan: Plan = fitted.plan_
        return replace(plan, nodes=(), roots=()) if n_rounds == 0 else plan

    def _fit(self, rows: Rows, bought: int, number: int, watched: Rows | None, model: Any = None) -> Any:
        """Fit on a part of the rows (`number` says which) with the features of a set."""
        model, usable = clone(self.model if model is None else model), self.features(bought)
        if model.subsample < 1.0:
            model.max_features = _share_drawn(int(usable.sum()))
        weights = rows.weights(bought)
        if weights is not None:  # learn from the rows on which the set was bought, which stand for those like them
            there = np.flatnonzero(weights)
            rows, weights = rows.part(there), weights[there] / weights[there].mean()
            seen = None if watched is None else watched.weights(bought)
            watched = watched if watched is None or seen is None else watched.part(np.flatnonzero(seen))
            data = model.prepare(rows.X)
        else:
            with self._lock:
                if number not in self._bins:
                    self._bins[number] = model.prepare(rows.X)
                data = self._bins[number]
        binned = replace(data, n_bins=np.where(usable, data.n_bins, 0).astype(data.n_bins.dtype))
        more: dict[str, Any] = {}
        if watched is not None:
            more["eval_set"] = (watched.X, watched.y) + ((watched.qid,) if self.task.kind == "lists" else ())
        target = rows.y
        if self.task.kind == "lists":
            more["qid"] = rows.qid
            target = within_lists(rows.y, rows.qid) if model.loss == "squared" else target
        if weights is not None:
            more["sample_weight"] = weights
        return model.fit(rows.X, target, binned=binned, **more)

    def predict(self, plan: Plan, rows: Rows) -> Floats:
        """What a stage's model says of rows: probabilities of classes, or one number."""
        if self.task.kind != "classes":
            return plan.score(rows.X)[:, None]
        p = plan.predict_proba(rows.X)
        if p.shape[1] == self.task.n_classes:
            return p
        assert plan.classes is not None
        out = np.zeros((len(p), self.task.n_classes))  # a fold may lack a class
        out[:, plan.classes.astype(np.intp)] = p
        return out


def _largest(task: Task) -> int:
    """All acquisitions; of logged ones those that, one after the other, still leave enough rows to learn from."""
    everything, marked = (1 << len(task.costs.acquisitions)) - 1, list(task.costs.not_ordered)
    if task.can_learn(everything):
        return everything
    found = everything & ~sum(1 << a for a in marked)
    for a in marked:
        found |= 1 << a if task.can_learn(found | 1 << a) else 0
    return found


def _share_drawn(n_features: int) -> float:
    """The share of a set's features that a round may use: half of them, but two at least."""
    return 1.0 if n_features <= 2 else max(0.5, 2 / n_features)


def within_lists(y: Floats, qid: np.ndarray) -> Floats:
    """Grades less their list's mean: what a feature says about a whole list does not order its documents."""
    _, query = np.unique(qid, return_inverse=True)
    means = np.bincount(query, y) / np.bincount(query)
    return np.asarray(y - means[query], np.float64)


def _splits(trees: Any, tree: int) -> np.ndarray:
    """The features of a tree's splits, each as often as it is used."""
    places = slice(trees.start[tree], trees.start[tree + 1])
    return np.asarray(trees.feature[places][~trees.is_leaf[places]], np.intp)


def _first_rounds(plan: Plan, n_rounds: int) -> Plan:
    """The plan of the first rounds alone."""
    if n_rounds >= len(plan.nodes):
        return plan
    nodes = plan.nodes[:n_rounds]
    return replace(plan, nodes=(*nodes[:-1], replace(nodes[-1], passed=EXIT)))
