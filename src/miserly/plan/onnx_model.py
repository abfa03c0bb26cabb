"""A sum of trees or of raw features as an ONNX model.

ONNX computes in single precision here. A float32 row meets the same leaves as in the plan, since thresholds are rounded
down to float32; the sums agree to single precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from miserly.plan.dictionary import RawFeatures, Trees
from miserly.plan.flat import Sum, as_sum

if TYPE_CHECKING:
    from miserly.plan.plan import Plan

OPSET, TREES_OPSET, IR_VERSION = 18, 3, 10


def to_onnx(plan: Plan) -> Any:
    """An `onnx.ModelProto` from `X` (rows × features) to `score` and, with classes, `probabilities` and `label`."""
    try:
        from onnx import TensorProto, checker, helper, numpy_helper
    except ImportError as error:
        raise ImportError(f"Writing ONNX needs the extra 'onnx': pip install 'miserly[onnx]' ({error}).") from error
    whole, n_outputs = as_sum(plan), len(plan.prior)
    constants: dict[str, NDArray[Any]] = {}
    nodes: list[Any] = []

    def node(kind: str, inputs: list[str], output: str, domain: str = "", **attributes: Any) -> None:
        nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))

    if isinstance(plan.dictionary, Trees):
        node("TreeEnsembleRegressor", ["X"], "score", "ai.onnx.ml", **_ensemble(plan.dictionary, whole))
    elif isinstance(plan.dictionary, RawFeatures):
        constants["columns"] = plan.dictionary.columns[whole.learners].astype(np.int64)
        constants["weights"] = whole.weights[whole.learners].astype(np.float32)
        constants["constant"] = whole.constant.astype(np.float32)
        node("Gather", ["X", "columns"], "used", axis=1)
        node("MatMul", ["used", "weights"], "sum")
        node("Add", ["sum", "constant"], "score")
    else:
        raise ValueError(f"Only trees and raw features can be written as ONNX, not {plan.dictionary.kind} learners.")
    X = helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, len(plan.costs.features)])
    answers = [helper.make_tensor_value_info("score", TensorProto.FLOAT, [None, n_outputs])]
    if plan.classes is not None:
        constants["classes"] = plan.classes.astype(object) if plan.classes.dtype.kind == "U" else plan.classes
        kind = helper.np_dtype_to_tensor_dtype(constants["classes"].dtype)
        answers.append(helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [None, len(plan.classes)]))
        answers.append(helper.make_tensor_value_info("label", kind, [None]))
        if plan.link == "logistic" and n_outputs == 1:
            constants |= {"zero": np.zeros(1, np.float32), "one": np.ones(1, np.float32), "axis": np.array([1])}
            node("Sigmoid", ["score"], "second")
            node("Sub", ["one", "second"], "first")
            node("Concat", ["first", "second"], "probabilities", axis=1)
            node("Greater", ["score", "zero"], "is_second")
            node("Cast", ["is_second"], "numbers", to=TensorProto.INT64)
            node("Squeeze", ["numbers", "axis"], "number")
        else:
            if plan.link == "softmax":
                node("Softmax", ["score"], "probabilities", axis=1)
            elif plan.link == "logistic":
                constants["axis"] = np.array([1])
                node("Sigmoid", ["score"], "each")
                node("ReduceSum", ["each", "axis"], "total")
                node("Div", ["each", "total"], "probabilities")
            else:
                raise ValueError(f"The {plan.link} link cannot be written as ONNX.")
            node("ArgMax", ["score"], "number", axis=1, keepdims=0)
        node("Gather", ["classes", "number"], "label")
    held = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "miserly", [X], answers, held)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", TREES_OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="miserly")
    checker.check_model(model)
    return model


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
