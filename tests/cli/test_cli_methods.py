"""`miserly methods`, and every method that it lists by `miserly fit` and `miserly frontier`."""

import json

import pytest
from command import miserly

from miserly import baselines, estimators
from miserly.cli.registry import METHODS

# No cost axis, or a model inside.
NEED_ANOTHER_MODEL = {
    "EarlyExitClassifier",
    "EarlyExitRanker",
    "LinearSVM",
    "PricedPipeline",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("user")
    miserly("data", "noisy_xor", "-n", 300, cwd=path)
    return path


def test_methods_are_listed_with_one_line_each(tmp_path):
    lines = miserly("methods", cwd=tmp_path).splitlines()
    assert [line.split()[0] for line in lines] == list(METHODS)
    assert set(json.loads(miserly("methods", "--json", cwd=tmp_path))) == set(METHODS)


def test_no_estimator_is_forgotten():
    listed = {(m.package, c) for m in METHODS.values() for c in m.classes.values()}
    for package in (estimators, baselines):
        for name in package.__all__:
            kind = getattr(package, name)
            if hasattr(kind, "cost_axis") and not name.startswith(("Boosted", "Plan", "Kernel", "Anytime")):
                assert (package.__name__, name) in listed or name in NEED_ANOTHER_MODEL, name


@pytest.mark.parametrize("method", ["path-tree", "weighted-l1"])
def test_any_method_can_be_swept(folder, method):
    args = ("--costs", "costs.toml", "--label", "label", "--grid", "1e-4:1e-2:2", "--json")
    swept = json.loads(
        miserly("frontier", "train.csv", "validation.csv", *args, "--method", method, "--out", method, cwd=folder)
    )
    assert len(swept["points"]) == 3  # the constant, two models
    plan = json.loads(miserly("explain", f"{method}/plans/000.plan", "--json", cwd=folder))
    assert plan["notes"]["estimator"].lower().startswith({"path-tree": "pathtree"}.get(method, "costweighted"))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--method", "greedy-misre"), "Did you mean 'greedy-miser'?"),
        (("--method", "afr", "--task", "regression"), "afr does no regression"),
        (("--method", "path-tree", "--learning-rate", 0.1), "PathTreeClassifier has no --learning-rate"),
    ],
)
def test_a_method_that_cannot_do_it_is_refused(folder, args, message):
    how = ("--costs", "costs.toml", "--label", "label")
    assert message in " ".join(miserly("fit", "train.csv", *how, *args, cwd=folder, code=2).split())
