"""Models of others as Miserly plans: the same answers, priced by the same ledger."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from miserly.costs import CostTable
from miserly.plan import EXIT, Node, Plan, stack_trees

Table = dict[str, np.ndarray]
Tree = tuple[int | None, float, Any, Any, bool] | float


class _Builder:
    """Rounds of trees, each for one output; trees without a split become a bias."""

    def __init__(self, costs: CostTable, classes: np.ndarray | None, prior: np.ndarray) -> None:
        self.costs, self.classes, self.prior = costs, classes, prior
        self.tables: list[Table] = []
        self.nodes: list[Node] = []

    def add_round(self, trees: Sequence[tuple[int, Table]]) -> None:
        n_outputs = len(self.prior)
        bias = np.zeros(n_outputs)
        learners, weights = [], []
        for output, table in trees:
            if len(table["feature"]) == 1:
                bias[output] += table["value"][0]
                continue
            learners.append(len(self.tables))
            weights.append(np.eye(n_outputs)[output])
            self.tables.append(table)
        self.nodes.append(
            Node(
                learners=np.array(learners, np.int32),
                weights=np.array(weights).reshape(-1, n_outputs),
                bias=bias,
                outputs=tuple(range(n_outputs)),
                passed=len(self.nodes) + 1,
            )
        )

    def plan(self) -> Plan:
        if self.nodes:
            object.__setattr__(self.nodes[-1], "passed", EXIT)
        link = "identity" if self.classes is None else "logistic" if len(self.classes) == 2 else "softmax"
        roots = (0,) if self.nodes else ()
        dictionary = stack_trees(self.tables)
        return Plan(self.costs, dictionary, tuple(self.nodes), self.prior, link, self.classes, roots)


def n_outputs(classes: np.ndarray | None) -> int:
    """How many scores a row has."""
    return 1 if classes is None or len(classes) == 2 else len(classes)


def from_lightgbm(booster: Any, costs: CostTable, classes: np.ndarray | None) -> Plan:
    """The plan of a LightGBM booster, one node per iteration; its average is in its first trees."""
    k = n_outputs(classes)
    builder = _Builder(costs, classes, np.zeros(k))
    trees = [_table(info["tree_structure"], _read_lightgbm) for info in booster.dump_model()["tree_info"]]
    for first in range(0, len(trees), k):
        builder.add_round(list(enumerate(trees[first : first + k])))
    return builder.plan()


def _read_lightgbm(node: dict[str, Any]) -> Tree:
    if "split_index" not in node:
        return float(node["leaf_value"])
    if node["decision_type"] != "<=":
        raise ValueError(f"Only numeric splits are read, got {node['decision_type']!r}.")
    threshold = float(node["threshold"])
    missing_right = not node["default_left"] if node["missing_type"] == "NaN" else threshold < 0  # otherwise it is a 0
    return node["split_feature"], threshold, node["left_child"], node["right_child"], missing_right


def from_catboost(model: Any, costs: CostTable, classes: np.ndarray | None) -> Plan:
    """The plan of a CatBoost model of numeric features; a tree of several outputs stands once for each."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "model.json"
        model.save_model(str(path), format="json")
        data = json.loads(path.read_text())
    k = n_outputs(classes)
    scale, bias = data["scale_and_bias"]
    builder = _Builder(costs, classes, np.broadcast_to(np.asarray(bias, float), k).copy())
    right = {f["feature_index"]: f["nan_value_treatment"] == "AsTrue" for f in data["features_info"]["float_features"]}
    for tree in data.get("oblivious_trees") or data.get("trees") or []:
        root = _unfold(tree, k) if "leaf_values" in tree else tree
        tables = [_table(root, lambda node, output=output: _read_catboost(node, output, right)) for output in range(k)]
        for table in tables:
            table["value"] = table["value"] * scale
        builder.add_round(list(enumerate(tables)))
    return builder.plan()


def _unfold(tree: dict[str, Any], k: int, level: int | None = None, index: int = 0) -> dict[str, Any]:
    """An oblivious tree as an ordinary one: its last split on top; bit s of a leaf's number answers split s."""
    splits = tree.get("splits") or []
    level = len(splits) if level is None else level
    if level == 0:
        return {"value": tree["leaf_values"][index * k : (index + 1) * k]}
    left, right = (_unfold(tree, k, level - 1, index | bit << (level - 1)) for bit in (0, 1))
    return {"split": splits[level - 1], "left": left, "right": right}


def _read_catboost(node: dict[str, Any], output: int, missing_right: dict[int, bool]) -> Tree:
    if "split" not in node:
        return float(np.atleast_1d(node["value"])[output])
    split = node["split"]
    if split["split_type"] != "FloatFeature":
        raise ValueError(f"Only numeric splits are read, got {split['split_type']!r}.")
    feature = split["float_feature_index"]
    return feature, float(np.float32(split["border"])), node["left"], node["right"], missing_right[feature]


def from_sklearn(model: Any, costs: CostTable, classes: np.ndarray | None) -> Plan:
    """The plan of one scikit-learn tree; classes are scored by their shares (two: by the second's above one half)."""
    tree, k = model.tree_, n_outputs(classes)
    values = tree.value[:, 0, :] if classes is not None else tree.value[:, :, 0]
    values = values[:, 1:] - values[:, :1] if classes is not None and k == 1 else values

    def read(at: int, output: int) -> Tree:
        if tree.children_left[at] < 0:
            return float(values[at, output])
        missing_right = not tree.missing_go_to_left[at]
        return (
            tree.feature[at],
            float(tree.threshold[at]),
            tree.children_left[at],
            tree.children_right[at],
            missing_right,
        )

    builder = _Builder(costs, classes, np.zeros(k))
    builder.add_round([(o, _table(0, lambda at, o=o: read(at, o))) for o in range(k)])
    return builder.plan()


def _table(root: Any, read: Any) -> Table:
    """A tree as a plan keeps it. `read(node)` is a leaf's value or (feature, threshold, left, right, whether
    missing values go right)."""
    nodes, cells = [root], []
    at = 0
    while at < len(nodes):
        found = read(nodes[at])
        if isinstance(found, float):
            cells.append((0, np.inf, at, found, False))
        else:
            cells.append((found[0], found[1], len(nodes), 0.0, found[4]))
            nodes += [found[2], found[3]]
        at += 1
    feature, threshold, left, value, missing_right = zip(*cells)
    return {
        "feature": np.array(feature, np.int32),
        "threshold": np.array(threshold, np.float64),
        "left": np.array(left, np.int32),
        "missing_right": np.array(missing_right, bool),
        "value": np.array(value, np.float64),
    }


def check_same(plan: Plan, X: np.ndarray, theirs: np.ndarray, who: str) -> None:
    """Refuse an import that does not predict what the model predicts."""
    ours = plan.score(X).reshape(len(X), -1)
    theirs = np.asarray(theirs, np.float64).reshape(len(X), -1)
    worst = float(np.abs(ours - theirs).max())
    if not worst <= 1e-6 * max(1.0, float(np.abs(theirs).max())):
        raise AssertionError(f"The plan imported from {who} differs from its own predictions by {worst:g}.")
