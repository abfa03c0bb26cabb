"""A sum of trees or of raw features as an ONNX model.

ONNX computes in single precision here. A float32 row meets the same leaves as in the plan, since thresholds are rounded
down to float32; the sums agree to single precision.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from miserly.plan._dictionary import RawFeatures, Trees
from miserly.plan._linear_form import Sum, as_sum, unshared
from miserly.plan._links import Link

if TYPE_CHECKING:
    from miserly.plan._plan import Plan

OPSET, TREES_OPSET, IR_VERSION = 18, 3, 10
INT64 = 7  # ONNX's number of the type
Borders = dict[str, tuple[np.dtype[Any], list[int | None]]]


def to_onnx(plan: Plan) -> Any:
    """An `onnx.ModelProto` from `X` (rows × features) to `score` and, with classes, `probabilities` and `label`."""
    if plan.error_costs is not None:
        raise ValueError("An ONNX model predicts the most probable class: export plan.with_error_costs(None).")
    try:
        graph = Graph(import_module("onnx"))
    except ImportError as error:
        raise ImportError(f"Writing ONNX needs the extra 'onnx': pip install 'miserly[onnx]' ({error}).") from error
    whole = as_sum(plan)
    if isinstance(plan.dictionary, Trees):
        trees = unshared(plan.dictionary)
        graph.add("TreeEnsembleRegressor", ["X"], "score", domain="ai.onnx.ml", **_ensemble(trees, whole))
    elif isinstance(plan.dictionary, RawFeatures):
        _linear(graph, plan.dictionary, whole)
    else:
        raise ValueError(f"Only trees and raw features can be written as ONNX, not {plan.dictionary.kind} learners.")
    if plan.classes is None and plan.link != "identity":
        raise ValueError(f"The {plan.link} link cannot be written as ONNX.")
    outputs = {"score": (np.dtype(np.float32), [None, len(plan.prior)])}
    if plan.classes is not None:
        classes = plan.classes.astype(object) if plan.classes.dtype.kind == "U" else plan.classes
        _read(graph, plan.link, len(plan.prior), classes)
        outputs["probabilities"] = (np.dtype(np.float32), [None, len(classes)])
        outputs["label"] = (classes.dtype, [None])
    return graph.model({"X": (np.dtype(np.float32), [None, len(plan.costs.features)])}, outputs)


class Graph:
    """An ONNX graph in the making: operators and constants."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self._helper, self._arrays = import_module("onnx.helper"), import_module("onnx.numpy_helper")
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def add(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> None:
        """An operator with one output."""
        self._nodes.append(self._helper.make_node(kind, inputs, [output], **attributes))

    def hold(self, name: str, array: Any) -> str:
        """A constant; returns its name."""
        self._constants.append(self._arrays.from_array(np.asarray(array), name))
        return name

    def model(self, inputs: Borders, outputs: Borders) -> Any:
        """The finished model, checked."""
        helper = self._helper
        graph = helper.make_graph(self._nodes, "miserly", self._infos(inputs), self._infos(outputs), self._constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", TREES_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="miserly")
        self._onnx.checker.check_model(model)
        return model

    def _infos(self, borders: Borders) -> list[Any]:
        kind, info = self._helper.np_dtype_to_tensor_dtype, self._helper.make_tensor_value_info
        return [info(name, kind(dtype), shape) for name, (dtype, shape) in borders.items()]


def _linear(graph: Graph, features: RawFeatures, whole: Sum) -> None:
    columns = graph.hold("columns", features.columns[whole.learners].astype(np.int64))
    weights = graph.hold("weights", whole.weights[whole.learners].astype(np.float32))
    constant = graph.hold("constant", whole.constant.astype(np.float32))
    graph.add("Gather", ["X", columns], "used", axis=1)
    graph.add("MatMul", ["used", weights], "sum")
    graph.add("Add", ["sum", constant], "score")


def _read(graph: Graph, link: Link, n_outputs: int, classes: NDArray[Any]) -> None:
    """Probabilities and labels from scores, as `links` reads them."""
    if link == "logistic" and n_outputs == 1:
        graph.add("Sigmoid", ["score"], "second")
        graph.add("Sub", [graph.hold("one", np.ones(1, np.float32)), "second"], "first")
        graph.add("Concat", ["first", "second"], "probabilities", axis=1)
        graph.add("Greater", ["score", graph.hold("zero", np.zeros(1, np.float32))], "is_second")
        graph.add("Cast", ["is_second"], "numbers", to=INT64)
        graph.add("Squeeze", ["numbers", graph.hold("axis", [1])], "number")
    elif link == "logistic":
        graph.add("Sigmoid", ["score"], "each")
        graph.add("ReduceSum", ["each", graph.hold("axis", [1])], "total")
        graph.add("Div", ["each", "total"], "probabilities")
    elif link == "softmax":
        graph.add("Softmax", ["score"], "probabilities", axis=1)
    else:
        raise ValueError(f"The {link} link cannot be written as ONNX.")
    if n_outputs > 1:
        graph.add("ArgMax", ["score"], "number", axis=1, keepdims=0)
    graph.add("Gather", [graph.hold("classes", classes), "number"], "label")


def _ensemble(trees: Trees, whole: Sum) -> dict[str, Any]:
    """The attributes of the operator: all places of all trees that count, then what each leaf adds to which output."""
    tree = np.repeat(np.arange(len(trees)), np.diff(trees.start))
    places = np.flatnonzero(np.isin(tree, whole.learners))
    tree = tree[places]
    number, leaf = places - trees.start[tree], trees.is_leaf[places]
    left = np.where(leaf, 0, trees.left[places] - trees.start[tree])
    at, output = np.nonzero(leaf[:, None] & (whole.weights[tree] != 0))
    return {
        "nodes_treeids": tree.tolist(),
        "nodes_nodeids": number.tolist(),
        "nodes_featureids": trees.feature[places].tolist(),
        "nodes_modes": np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_values": np.where(leaf, np.float32(0.0), rounded_down(trees.threshold[places])).tolist(),
        "nodes_truenodeids": left.tolist(),
        "nodes_falsenodeids": np.where(leaf, 0, left + 1).tolist(),
        "nodes_missing_value_tracks_true": (~leaf & ~trees.missing_right[places]).astype(int).tolist(),
        "target_treeids": tree[at].tolist(),
        "target_nodeids": number[at].tolist(),
        "target_ids": output.tolist(),
        "target_weights": (whole.weights[tree[at], output] * trees.value[places[at]]).tolist(),
        "n_targets": len(whole.constant),
        "base_values": whole.constant.tolist(),
        "aggregate_function": "SUM",
        "post_transform": "NONE",
    }


def rounded_down(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 that is not above each value: `x <= value` then says the same of every float32 x."""
    with np.errstate(over="ignore"):
        near = values.astype(np.float32)
    return np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near)
