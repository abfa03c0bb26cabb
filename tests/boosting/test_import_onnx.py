"""ONNX models as plans, compared with onnxruntime: our own exports, and graphs as other converters write them."""

import numpy as np
import pytest
from sklearn import ensemble, linear_model

import miserly as ms

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
lightgbm = pytest.importorskip("lightgbm")
helper, T = onnx.helper, onnx.TensorProto

RNG = np.random.default_rng(4)
X = RNG.normal(size=(400, 5)).astype(np.float32)
NEW = RNG.normal(size=(500, 5)).astype(np.float32)
HOLES = np.where(RNG.random(NEW.shape) < 0.2, np.float32(np.nan), NEW)
NUMBER = X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3]
TWO, THREE = (NUMBER > 0).astype(int), np.digitize(NUMBER, [-0.5, 0.7])
COSTS = ms.CostTable.per_feature(np.arange(1.0, 6.0))
GBM = {"n_estimators": 8, "verbose": -1, "n_jobs": 1, "min_child_samples": 5}


def run(model, rows):
    session = ort.InferenceSession(model.SerializeToString())
    return session.run(None, {session.get_inputs()[0].name: rows})


def graph_of(nodes, outputs, opset=3):
    entry = helper.make_tensor_value_info("X", T.FLOAT, [None, 5])
    graph = helper.make_graph(nodes, "g", [entry], outputs)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def classifier(kind, norm=None, **attributes):
    nodes = [helper.make_node(kind, ["X"], ["label", "raw"], domain="ai.onnx.ml", **attributes)]
    after = {"norm": norm} if norm else {}
    domain = "ai.onnx.ml" if norm else ""
    nodes.append(helper.make_node("Normalizer" if norm else "Identity", ["raw"], ["p"], domain=domain, **after))
    label = helper.make_tensor_value_info("label", T.INT64, [None])
    return graph_of(nodes, [label, helper.make_tensor_value_info("p", T.FLOAT, [None, None])])


def regressor(**attributes):
    node = helper.make_node("TreeEnsembleRegressor", ["X"], ["y"], domain="ai.onnx.ml", **attributes)
    return graph_of([node], [helper.make_tensor_value_info("y", T.FLOAT, [None, 1])])


def attributes_of(trees, values, what, mode="BRANCH_LEQ"):
    """Trees of scikit-learn as converters write them; `values` gives of a tree and a leaf the pairs (id, weight)."""
    names = ["treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids"]
    names.append("missing_value_tracks_true")
    found = {f"nodes_{name}": [] for name in names} | {
        f"{what}_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")
    }
    for t, tree in enumerate(trees):
        inner = tree.tree_
        for i in range(inner.node_count):
            leaf = inner.children_left[i] < 0
            threshold = 0.0 if leaf else float(np.float32(inner.threshold[i]))
            ways = (0, 0) if leaf else (int(inner.children_left[i]), int(inner.children_right[i]))
            row = (t, i, max(0, int(inner.feature[i])), "LEAF" if leaf else mode, threshold, *ways, t % 2)
            for name, value in zip(names, row):
                found[f"nodes_{name}"].append(value)
            for number, weight in values(t, inner.value[i, 0]) if leaf else ():
                for name, value in zip(("treeids", "nodeids", "ids", "weights"), (t, i, number, weight)):
                    found[f"{what}_{name}"].append(value)
    return found


@pytest.mark.parametrize(("cls", "y"), [("Regressor", NUMBER), ("Classifier", TWO), ("Classifier", THREE)])
def test_our_own_exports_come_back(cls, y, tmp_path):
    model = getattr(lightgbm, f"LGBM{cls}")(**GBM).fit(X, y)
    exported = ms.import_plan(model, COSTS).export("onnx")
    onnx.save(exported, tmp_path / "m.onnx")
    for plan in (ms.import_plan(exported, COSTS), ms.import_plan(tmp_path / "m.onnx", COSTS)):
        want = run(exported, HOLES)
        np.testing.assert_allclose(plan.score(HOLES).reshape(want[0].shape), want[0], atol=3e-6)
        if plan.classes is not None:
            np.testing.assert_allclose(plan.predict_proba(HOLES), want[1], atol=3e-6)
            np.testing.assert_array_equal(plan.predict(HOLES), want[2])


def test_linear_models():
    plan = ms.import_plan(linear_model.LinearRegression().fit(X, NUMBER), COSTS)
    np.testing.assert_allclose(ms.import_plan(plan.export("onnx"), COSTS).predict(NEW), plan.predict(NEW), atol=3e-6)
    three = linear_model.LogisticRegression().fit(X, THREE)
    two = linear_model.LogisticRegression().fit(X, TWO)
    pair = np.r_[-two.coef_, two.coef_], np.r_[-two.intercept_, two.intercept_]
    for coef, bias, post, norm in (
        (three.coef_, three.intercept_, "SOFTMAX", None),
        (three.coef_, three.intercept_, "LOGISTIC", None),
        (three.coef_, three.intercept_, "LOGISTIC", "L1"),
        (*pair, "LOGISTIC", "L1"),
    ):
        weights = {"coefficients": coef.ravel().tolist(), "intercepts": bias.tolist(), "post_transform": post}
        model = classifier("LinearClassifier", norm, classlabels_ints=list(range(len(bias))), **weights)
        plan, (label, p) = ms.import_plan(model, COSTS), run(model, NEW)
        np.testing.assert_allclose(plan.predict_proba(NEW), p, atol=3e-6)
        np.testing.assert_array_equal(plan.predict(NEW), label)


def test_forests_and_boosting_of_classes():
    forest = ensemble.RandomForestClassifier(7, max_depth=5, random_state=0).fit(X, THREE)
    shares = attributes_of(forest.estimators_, lambda _, v: enumerate((v / v.sum() / 7).tolist()), "class")
    boosted = ensemble.GradientBoostingClassifier(n_estimators=6).fit(X, TWO)
    steps = attributes_of(boosted.estimators_.ravel(), lambda _, v: [(0, 0.1 * float(v[0]))], "class")
    for kind, labels, more in (
        (shares, [0, 1, 2], {"post_transform": "NONE"}),
        (steps, [0, 1], {"post_transform": "LOGISTIC", "base_values": [0.25]}),
    ):
        model = classifier("TreeEnsembleClassifier", classlabels_int64s=labels, **kind, **more)
        plan, (label, p) = ms.import_plan(model, COSTS), run(model, HOLES)
        np.testing.assert_allclose(plan.predict_proba(HOLES), p, atol=3e-6)
        np.testing.assert_array_equal(plan.predict(HOLES), label)


@pytest.mark.parametrize("mode", ["LEQ", "LT", "GTE", "GT", "EQ", "NEQ"])
def test_every_comparison(mode):
    whole = np.round(X * 2), np.round(HOLES * 2)
    trees = ensemble.RandomForestRegressor(5, max_depth=4, random_state=0).fit(whole[0], NUMBER).estimators_
    kind = attributes_of(trees, lambda _, v: [(0, float(v[0]))], "target", f"BRANCH_{mode}")
    kind["nodes_values"] = np.floor(kind["nodes_values"]).tolist()
    model = regressor(n_targets=1, aggregate_function="AVERAGE", base_values=[1.5], **kind)
    plan = ms.import_plan(model, COSTS)
    np.testing.assert_allclose(plan.predict(whole[1]), run(model, whole[1])[0].ravel(), atol=3e-6)


def test_the_operator_of_version_5_with_sets():
    tensor = lambda name, values: helper.make_tensor(name, T.FLOAT, [len(values)], values)  # noqa: E731
    node = helper.make_node(
        "TreeEnsemble",
        ["X"],
        ["y"],
        domain="ai.onnx.ml",
        n_targets=1,
        aggregate_function=1,
        post_transform=0,
        tree_roots=[0, 2],
        nodes_modes=helper.make_tensor("nodes_modes", T.UINT8, [3], [0, 6, 3]),
        nodes_featureids=[0, 1, 2],
        nodes_splits=tensor("nodes_splits", [0.5, 0.0, 1.0]),
        nodes_truenodeids=[1, 0, 2],
        nodes_trueleafs=[0, 1, 1],
        nodes_falsenodeids=[1, 2, 3],
        nodes_falseleafs=[1, 1, 1],
        leaf_targetids=[0, 0, 0, 0],
        leaf_weights=tensor("leaf_weights", [1.0, 10.0, 100.0, 1000.0]),
        membership_values=tensor("membership_values", [1.0, 3.0, np.nan]),
    )
    model = graph_of([node], [helper.make_tensor_value_info("y", T.FLOAT, [None, 1])], opset=5)
    plan, rows = ms.import_plan(model, ms.CostTable.per_feature(np.ones(5))), np.round(HOLES * 3)

    def by_hand(x):
        first = (1.0 if x[1] in (1, 3) else 100.0) if x[0] <= 0.5 else 10.0
        return first + (100.0 if x[2] > 1.0 else 1000.0)

    np.testing.assert_array_equal(plan.predict(rows), [by_hand(x) for x in rows])


def test_what_is_more_than_a_model_is_refused(tmp_path):
    forest = ensemble.RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, THREE)
    shares = attributes_of(forest.estimators_, lambda _, v: enumerate((v / v.sum() / 3).tolist()), "class")
    model = classifier("TreeEnsembleClassifier", "MAX", classlabels_int64s=[0, 1, 2], **shares)
    with pytest.raises(ValueError, match="more than its trees"):
        ms.import_plan(model, COSTS)
    plain = classifier("TreeEnsembleClassifier", classlabels_int64s=[0, 1, 2], **shares)
    plain.graph.node.insert(0, helper.make_node("Abs", ["X"], ["scaled"]))
    plain.graph.node[1].input[0] = "scaled"
    with pytest.raises(ValueError, match="comes from Abs"):
        ms.import_plan(plain, COSTS)
    with pytest.raises(ValueError, match="this one has 0"):
        ms.import_plan(
            graph_of([helper.make_node("Abs", ["X"], ["y"])], [helper.make_empty_tensor_value_info("y")]), COSTS
        )
    data = model.SerializeToString()
    rng = np.random.default_rng(0)
    for trial in range(40):
        damaged = bytearray(data[: rng.integers(len(data))] if trial % 2 else data)
        for place in rng.integers(max(1, len(damaged)), size=0 if trial % 2 else 5):
            damaged[place] = rng.integers(256)
        (tmp_path / "bad.onnx").write_bytes(bytes(damaged))
        with pytest.raises(ValueError, match=r"bad\.onnx"):
            ms.import_plan(tmp_path / "bad.onnx", COSTS)
