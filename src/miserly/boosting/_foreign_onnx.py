"""ONNX models: the operators for tree ensembles (both generations) and for linear models.

What comes after the model (a link, a normaliser, words for labels) is not translated operator by operator: the link is
chosen by what operators there are, and `import_plan` then compares the plan with ONNX's reference on probe rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from miserly._typing import Array, Floats
from miserly.boosting._foreign import DAMAGED, ImportedModel, Question, Splits, Table
from miserly.boosting._importing import _float32_limit, _float64_limit
from miserly.plan import Plan, Trees

TREES = ("TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble")
LINEAR = ("LinearClassifier", "LinearRegressor")
BEFORE = ("Identity", "Cast")
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF")
LINKS_AFTER = {"Sigmoid": "sigmoid", "Exp": "exp", "Softmax": "softmax"}
DOUBLE = 11  # ONNX's number of the type
PROBES, NEAR = 24, 1e-4  # rows compared with the reference, and how near they must be: single precision, and a margin


class Nodes(NamedTuple):
    """All nodes of all trees, and what leaves add to which output."""

    feature: Array
    mode: Array
    value: Floats
    yes: Array
    no: Array
    nan_yes: Array
    members: Mapping[int, Floats]
    leaf: Array
    output: Array
    weight: Floats
    root: Array


def onnx_bytes(data: bytes) -> ImportedModel:
    """The model in a file."""
    try:
        model = _onnx().load_model_from_string(data)
    except ImportError:
        raise
    except Exception as error:  # protobuf's own kinds
        raise ValueError(
            f"It is not an ONNX model, or it is damaged: {type(error).__name__}. Save it again."
        ) from error
    return onnx_model(model)


def _onnx() -> Any:
    try:
        return import_module("onnx")
    except ImportError as error:
        raise ImportError(f"Reading ONNX needs the extra 'onnx': pip install 'miserly[onnx]' ({error}).") from error


def onnx_model(model: Any) -> ImportedModel:
    """The model, whose plan is compared with ONNX's own reference before it is used."""
    found = _own_linear(model) if model.producer_name == "miserly" else None
    found = found or _foreign(model)
    return replace(found, check=lambda plan: check_by_reference(model, plan))


def _foreign(model: Any) -> ImportedModel:
    graph = model.graph
    named = [node for node in graph.node if node.op_type in (*TREES, *LINEAR) and node.domain == "ai.onnx.ml"]
    if len(named) != 1:
        raise ValueError(f"ONNX models with one tree ensemble or linear model are imported; this one has {len(named)}.")
    node, helper = named[0], _onnx().helper
    made_by = {output: n for n in graph.node for output in n.output}
    source = node.input[0]
    while source in made_by and made_by[source].op_type in BEFORE:
        source = made_by[source].input[0]
    inputs = {i.name: i for i in graph.input}
    if source not in inputs:
        step = made_by[source].op_type if source in made_by else "nothing"
        raise ValueError(f"The model's input comes from {step}, not from the table. Export the model alone.")
    shape = inputs[source].type.tensor_type.shape.dim
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    is_double = inputs[source].type.tensor_type.elem_type == DOUBLE and not _casts(graph.node, "FLOAT")
    after = [n.op_type for n in graph.node if n is not node]
    labels = _labels(given)
    if labels is None:  # our own export has them beside the model
        held = {i.name: import_module("onnx.numpy_helper").to_array(i) for i in graph.initializer}
        labels = held["classes"] if model.producer_name == "miserly" and "classes" in held else None
        labels = labels if labels is None or labels.dtype != object else labels.astype(str)
    width = int(shape[1].dim_value) if len(shape) > 1 else 0
    if node.op_type in LINEAR:
        return _linear(given, labels, after)
    nodes = _nodes_of(node.op_type, given)
    n_features = max(width, int(nodes.feature.max(initial=-1)) + 1)
    return _trees(given, nodes, labels, n_features, after, _float64_limit if is_double else _float32_limit)


def _own_linear(model: Any) -> ImportedModel | None:
    """A linear plan that Miserly exported."""
    held = {i.name: import_module("onnx.numpy_helper").to_array(i) for i in model.graph.initializer}
    if not {"columns", "weights", "constant"} <= set(held):
        return None
    n_features = int(model.graph.input[0].type.tensor_type.shape.dim[1].dim_value)
    weights = np.zeros((n_features, held["weights"].shape[1]))
    weights[held["columns"]] = held["weights"]
    labels = held.get("classes")
    labels = labels if labels is None or labels.dtype != object else labels.astype(str)
    link = _own_link([n.op_type for n in model.graph.node]) if labels is not None else "identity"
    return ImportedModel(link, labels, None, n_features, held["constant"].astype(float), weights=weights)


def _own_link(after: Sequence[str]) -> str:
    return "softmax" if "Softmax" in after else "logistic"


def _casts(nodes: Sequence[Any], kind: str) -> bool:
    number = _onnx().TensorProto.DataType.Value(kind)
    return any(n.op_type == "Cast" and n.attribute[0].i == number for n in nodes)


# ---- trees ---------------------------------------------------------------------------------------------------------


def _nodes_of(kind: str, given: Mapping[str, Any]) -> Nodes:
    return _of_version_5(given) if kind == "TreeEnsemble" else _of_version_3(given)


def _array(given: Mapping[str, Any], name: str, default: Any = ()) -> Array:
    """A list of numbers or words, given as such or, for doubles, as a tensor."""
    if f"{name}_as_tensor" in given:
        return np.asarray(import_module("onnx.numpy_helper").to_array(given[f"{name}_as_tensor"]))
    found = given.get(name, default)
    if hasattr(found, "raw_data"):
        return np.asarray(import_module("onnx.numpy_helper").to_array(found))
    return np.array([word.decode() if isinstance(word, bytes) else word for word in found])


def _of_version_3(given: Mapping[str, Any]) -> Nodes:
    trees, numbers = _array(given, "nodes_treeids"), _array(given, "nodes_nodeids")
    place = {(int(t), int(i)): n for n, (t, i) in enumerate(zip(trees, numbers))}
    modes = np.array([MODES.index(str(m)) for m in _array(given, "nodes_modes")], int)
    leaf = modes == MODES.index("LEAF")

    def ways(name: str) -> Array:
        children = _array(given, name)
        return np.array([0 if end else place[int(t), int(c)] for end, t, c in zip(leaf, trees, children)], int)

    what = "class" if "class_ids" in given else "target"
    names = ("treeids", "nodeids", "ids", "weights")
    ids, of_node, output, weight = (_array(given, f"{what}_{name}") for name in names)
    missing = _array(given, "nodes_missing_value_tracks_true")
    return Nodes(
        feature=_array(given, "nodes_featureids").astype(int),
        mode=modes,
        value=_array(given, "nodes_values").astype(float),
        yes=ways("nodes_truenodeids"),
        no=ways("nodes_falsenodeids"),
        nan_yes=missing.astype(bool) if len(missing) else np.zeros(len(trees), bool),
        members={},
        leaf=np.array([place[int(t), int(i)] for t, i in zip(ids, of_node)], int),
        output=output.astype(int),
        weight=weight.astype(float),
        root=np.unique(trees, return_index=True)[1],
    )


def _of_version_5(given: Mapping[str, Any]) -> Nodes:
    """Leaves and splits are numbered apart: here leaf i is node n + i."""
    modes = _array(given, "nodes_modes").astype(int)
    n, targets = len(modes), _array(given, "leaf_targetids").astype(int)
    yes, no = _array(given, "nodes_truenodeids").astype(int), _array(given, "nodes_falsenodeids").astype(int)
    yes = np.where(_array(given, "nodes_trueleafs").astype(bool), n + yes, yes)
    no = np.where(_array(given, "nodes_falseleafs").astype(bool), n + no, no)
    missing = _array(given, "nodes_missing_value_tracks_true")
    sets, members = _array(given, "membership_values").astype(float), {}
    ends = np.flatnonzero(np.isnan(sets))
    for number, node in enumerate(np.flatnonzero(modes == MODES.index("BRANCH_MEMBER")).tolist()):
        members[node] = sets[ends[number - 1] + 1 if number else 0 : ends[number]]
    n_leaves = len(targets)
    zero = np.zeros(n_leaves, int)
    roots = _array(given, "tree_roots").astype(int)
    alone = (yes[roots] == no[roots]) & (yes[roots] >= n)  # a tree of one leaf: both ways lead there
    return Nodes(
        feature=np.r_[_array(given, "nodes_featureids").astype(int), zero],
        mode=np.r_[modes, zero + MODES.index("LEAF")],
        value=np.r_[_array(given, "nodes_splits").astype(float), zero],
        yes=np.r_[yes, zero],
        no=np.r_[no, zero],
        nan_yes=np.r_[missing.astype(bool) if len(missing) else np.zeros(n, bool), zero.astype(bool)],
        members=members,
        leaf=n + np.arange(n_leaves),
        output=targets,
        weight=_array(given, "leaf_weights").astype(float),
        root=np.where(alone, yes[roots], roots),
    )


def _reached(root: int, nodes: Nodes) -> Array:
    """The nodes of one tree, the root first; leaves may belong to several trees."""
    order, seen, leaf = [root], {root}, MODES.index("LEAF")
    for node in order:
        if nodes.mode[node] == leaf:
            continue
        for child in (int(nodes.yes[node]), int(nodes.no[node])):
            if not 0 <= child < len(nodes.mode):
                raise ValueError(DAMAGED)
            if child not in seen:
                seen.add(child)
                order.append(child)
    return np.array(order)


def _trees(
    given: Mapping[str, Any], nodes: Nodes, labels: Array | None, n_features: int, after: Sequence[str], limit: Any
) -> ImportedModel:
    how = given.get("aggregate_function", b"SUM")
    how = {0: "AVERAGE", 1: "SUM", 2: "MIN", 3: "MAX"}[how] if isinstance(how, int) else how.decode()
    if how not in ("SUM", "AVERAGE"):
        raise ValueError(f"This ensemble takes the {how} of its trees; a plan takes sums and means.")
    n_outputs = int(given.get("n_targets", 0)) or int(nodes.output.max(initial=0)) + 1
    is_own = labels is not None and "n_targets" in given
    n_outputs = n_outputs if is_own else max(n_outputs, 0 if labels is None else len(labels))
    is_single = labels is not None and len(labels) == 2 and len(np.unique(nodes.output)) < 2
    output = np.zeros_like(nodes.output) if is_single else nodes.output
    n_outputs = 1 if is_single else n_outputs
    weight = nodes.weight / (len(nodes.root) if how == "AVERAGE" else 1)
    base = np.zeros(n_outputs)
    given_base = _array(given, "base_values").astype(float)
    if len(given_base):
        base += given_base[-1] if is_single else given_base
    tables, of_table = _tables(nodes, weight, output, n_outputs, limit)
    post = given.get("post_transform", b"NONE")
    post = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")[post] if isinstance(post, int) else post.decode()
    link, classes = (_own_link(after), labels) if is_own else _link(post, labels, after, is_single)
    if link == "shares" and is_single:  # the share of the second class: the first has the rest
        rest = [{**table, "value": np.where(_ends(table), -table["value"], 0.0)} for table in tables]
        tables = [one for pair in zip(rest, tables) for one in pair]
        of_table, base = np.arange(len(tables)) % 2, np.array([1.0 - base[0], base[0]])
    n_rounds = 1 if link == "shares" or how == "AVERAGE" or len(tables) % len(nodes.root) else len(nodes.root)
    return ImportedModel(link, classes, None, n_features, base, tables, of_table, n_rounds)


def _ends(table: Table) -> Array:
    ends: Array = table["left"] == np.arange(len(table["left"]))
    return ends


def _labels(given: Mapping[str, Any]) -> Array | None:
    for name in ("classlabels_int64s", "classlabels_ints", "classlabels_strings"):
        if len(given.get(name, ())):
            return _array(given, name)
    return None


def _link(post: str, labels: Array | None, after: Sequence[str], is_single: bool) -> tuple[str, Array | None]:
    """How the scores are read."""
    if post not in ("NONE", "LOGISTIC", "SOFTMAX"):
        raise ValueError(f"A model with the post transform {post} cannot be imported: a plan has no such link.")
    if labels is not None:
        if post == "NONE":
            return "shares", labels
        if post == "SOFTMAX" and is_single:
            raise ValueError("A softmax of one score cannot be imported. Export the model again.")
        return "softmax" if post == "SOFTMAX" else "logistic" if is_single else "one_vs_rest", labels
    links = {LINKS_AFTER[op] for op in after if op in LINKS_AFTER}
    if post == "LOGISTIC":
        links = {"sigmoid"}
    if len(links) > 1 or (post == "SOFTMAX"):
        raise ValueError("What follows the trees is more than a link. Export the model alone.")
    return (links or {"identity"}).pop(), None


def _tables(
    nodes: Nodes, weight: Floats, output: Array, n_outputs: int, limit: Any
) -> tuple[list[Table], list[int] | Array]:
    """The tables of all trees: for each output that a tree adds to, one."""
    values = np.zeros((len(nodes.mode), n_outputs))
    np.add.at(values, (nodes.leaf, output), weight)
    tables: list[Table] = []
    of_table: list[int] = []
    for root in nodes.root.tolist():
        mine = _reached(root, nodes)
        number = np.full(len(nodes.mode), 0)
        number[mine] = np.arange(len(mine))
        leaf = nodes.mode[mine] == MODES.index("LEAF")
        questions = {i: _question(nodes, int(node), limit) for i, (node, end) in enumerate(zip(mine, leaf)) if not end}
        plain = {i: q for i, q in questions.items() if len(q.edges) != 1 or q.right[0]}
        limits = np.array(
            [questions[i].edges[0] if i in questions and i not in plain else np.inf for i in range(len(mine))]
        )
        nan_right = np.array([i in questions and questions[i].nan_right for i in range(len(mine))])
        splits = Splits(
            leaf,
            np.where(leaf, 0, nodes.feature[mine]),
            limits,
            np.where(leaf, 0, number[nodes.no[mine]]),
            np.where(leaf, 0, number[nodes.yes[mine]]),
            nan_right,
            np.zeros(len(mine)),
            plain,
        )
        used = [k for k in range(n_outputs) if n_outputs <= 2 or values[mine, k].any()] or [0]
        tables += splits.tables(*values[mine][:, used].T)
        of_table += used
    return tables, of_table


def _question(nodes: Nodes, node: int, limit: Any) -> Question:
    """Rows for which the condition holds go right."""
    mode, value, nan = MODES[nodes.mode[node]], nodes.value[node], bool(nodes.nan_yes[node])
    below, at_most = limit(value, strict=True), limit(value, strict=False)
    if mode == "BRANCH_MEMBER":
        pairs = [(limit(v, strict=True), limit(v, strict=False)) for v in nodes.members[node]]
        edges = [edge for pair in pairs for edge in pair]
        return Question.of(edges, lambda x: any(low < x <= high for low, high in pairs), nan)
    tests = {
        "BRANCH_LEQ": lambda x: x <= at_most,
        "BRANCH_LT": lambda x: x <= below,
        "BRANCH_GTE": lambda x: x > below,
        "BRANCH_GT": lambda x: x > at_most,
        "BRANCH_EQ": lambda x: below < x <= at_most,
        "BRANCH_NEQ": lambda x: not below < x <= at_most,
    }
    return Question.of([below, at_most], tests[mode], nan or mode == "BRANCH_NEQ")


# ---- linear models -------------------------------------------------------------------------------------------------


def _linear(given: Mapping[str, Any], labels: Array | None, after: Sequence[str]) -> ImportedModel:
    bias = _array(given, "intercepts").astype(float)
    weights = _array(given, "coefficients").astype(float)
    n_outputs = max(1, len(bias), int(given.get("targets", 1)))
    weights = weights.reshape(n_outputs, -1).T
    bias = bias if len(bias) else np.zeros(n_outputs)
    post, is_single = given.get("post_transform", b"NONE").decode(), labels is not None and n_outputs == 1
    if labels is not None and post == "NONE":
        raise ValueError("A linear classifier without probabilities cannot be imported from ONNX. Import the original.")
    if labels is not None and len(labels) != max(2, n_outputs):
        raise ValueError(f"It has {len(labels)} classes for {n_outputs} scores: it is damaged. Save the model again.")
    link, classes = _link(post, labels, after, is_single)
    if link == "one_vs_rest" and "Normalizer" in after and n_outputs > 2:  # two already sum to 1
        link = "logistic"
    return ImportedModel(link, classes, None, len(weights), bias, weights=weights)


# ---- the reference -------------------------------------------------------------------------------------------------


def check_by_reference(model: Any, plan: Plan) -> None:
    """Refuse a plan that does not predict what the model's reference gives on probe rows."""
    onnx, graph = _onnx(), type(model)()
    graph.CopyFrom(model)
    of_map = {output: n.input[0] for n in graph.graph.node for output in n.output if n.op_type == "ZipMap"}
    wanted = [of_map.get(output.name, output.name) for output in graph.graph.output]
    nodes = [n for n in graph.graph.node if n.op_type != "ZipMap"]
    del graph.graph.node[:], graph.graph.output[:]
    graph.graph.node.extend(nodes)
    graph.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in wanted)
    entry = graph.graph.input[0]
    dtype = np.float64 if entry.type.tensor_type.elem_type == DOUBLE else np.float32
    rows = np.random.default_rng(0).normal(size=(PROBES, len(plan.costs.features))).astype(dtype)
    if isinstance(plan.dictionary, Trees) and len(plan.dictionary.feature):
        rows = _near_splits(plan.dictionary, rows).astype(dtype)
    evaluator = import_module("onnx.reference").ReferenceEvaluator(graph)
    found = [np.asarray(out) for out in evaluator.run(None, {entry.name: rows})]
    mine = plan.predict(rows) if plan.classes is None else plan.predict_proba(rows)
    size = np.abs(mine).max(initial=1.0)
    for out in found:
        fits = out.dtype.kind == "f" and out.size == mine.size
        if fits and np.allclose(out.reshape(mine.shape), mine, rtol=0.0, atol=NEAR * size):
            return
    raise ValueError("The model does more than its trees or weights and a known link. Export the model alone.")


def _near_splits(trees: Trees, rows: Array) -> Array:
    """Probe rows whose values lie at both sides of thresholds."""
    rng = np.random.default_rng(0)
    for f in trees.used.tolist():
        at = trees.threshold[(trees.feature == f) & ~trees.is_leaf & np.isfinite(trees.threshold)]
        if len(at):
            rows[:, f] = rng.choice(at, len(rows)) + np.abs(at).mean() * rng.normal(scale=0.1, size=len(rows))
    return rows
