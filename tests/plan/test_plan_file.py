"""Plan to file to plan is the identity; a save is whole or not at all."""

import copy
import errno
import os
import pickle
import stat
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miserly.costs import CostTable
from miserly.plan import Node, Plan, load_plan
from miserly.plan import _file as plan_file
from oracles.hand_built import PLANS, rows
from oracles.random_plans import random_plan


def assert_identical(a, b):
    assert a == b
    for x, y in zip(a.nodes, b.nodes):
        np.testing.assert_equal(x.gain, y.gain)
    X = rows(20, 1, n_features=len(a.costs.features))
    np.testing.assert_array_equal(a.run(X).score, b.run(X).score)
    np.testing.assert_array_equal(a.run(X).cost, b.run(X).cost)
    np.testing.assert_array_equal(a.predict(X), b.predict(X))


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("charge", ["learner", "path"])
def test_a_plan_comes_back_from_its_file(name, charge, tmp_path):
    plan = replace(PLANS[name](), charge=charge, notes={"estimator": "hand", "lam": 0.1})
    plan.save(tmp_path / "a.plan")
    back = load_plan(tmp_path / "a.plan")
    assert_identical(plan, back)
    assert back.notes == plan.notes
    assert back.costs.acquisitions == plan.costs.acquisitions
    back.save(tmp_path / "b.plan")
    assert (tmp_path / "a.plan").read_bytes() == (tmp_path / "b.plan").read_bytes()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_plans_come_back_and_equal_plans_are_equal_files(tmp_path_factory, seed):
    folder = tmp_path_factory.mktemp("plan")
    plan = random_plan(seed)
    plan.save(folder / "a.plan")
    random_plan(seed).save(folder / "b.plan")
    assert load_plan(folder / "a.plan") == plan
    assert (folder / "a.plan").read_bytes() == (folder / "b.plan").read_bytes()


@pytest.mark.parametrize(
    "classes",
    [
        np.array(["été", "日本"]),
        np.array(["a", "bcd"], object),
        np.array([False, True]),
        np.array([-1, 1], np.int8),
        np.array([0.5, 1.5]),
        np.array([1, 2], object),
    ],
    ids=["unicode", "object strings", "bool", "int8", "float", "object ints"],
)
def test_classes_of_every_kind_come_back(classes, tmp_path):
    plan = replace(PLANS["confident"](), classes=classes)
    plan.save(tmp_path / "a.plan")
    back = load_plan(tmp_path / "a.plan")
    assert back.classes.tolist() == classes.tolist()
    assert plan == back


def test_a_node_with_half_a_calibration_comes_back(tmp_path):
    base = PLANS["platt"]()
    nodes = [replace(node, scale=None) if k % 2 else replace(node, offset=None) for k, node in enumerate(base.nodes)]
    plan = replace(base, nodes=tuple(nodes))
    plan.save(tmp_path / "a.plan")
    assert load_plan(tmp_path / "a.plan") == plan


def test_nodes_with_and_without_calibration_can_be_compared():
    with_, without = (Node([0], [[1.0, 2.0]], 0.0, (0, 1), scale=s) for s in ([1.0, 2.0], None))
    assert with_ != without
    assert without != with_


def test_any_change_makes_plans_unequal():
    plan = PLANS["shared_softmax"]()
    first = plan.nodes[0]
    others = [
        replace(plan, charge="path"),
        replace(plan, prior=[0.0, 0.0, 0.0]),
        replace(plan, classes=np.array([3, 5, 9])),
        replace(plan, nodes=(replace(first, tier=1), *plan.nodes[1:])),
        replace(plan, nodes=(replace(first, gain=1.0), *plan.nodes[1:])),
        replace(plan, nodes=(replace(first, routing=np.ones(3)), *plan.nodes[1:])),
        replace(plan, costs=replace(plan.costs, unit="ms")),
    ]
    for other in others:
        assert other != plan
    assert plan == PLANS["shared_softmax"]()
    assert plan != "a plan"


@pytest.mark.parametrize("remake", [copy.deepcopy, copy.copy, lambda p: pickle.loads(pickle.dumps(p))])
@pytest.mark.parametrize("name", PLANS)
def test_plans_can_be_copied_and_pickled(name, remake):
    plan = PLANS[name]()
    plan.run(rows(2, n_features=len(plan.costs.features)))
    again = remake(plan)
    assert_identical(plan, again)
    assert isinstance(again.costs, CostTable)


def test_the_arrays_of_a_plan_are_read_only_also_after_pickling_and_loading(tmp_path):
    plan = PLANS["shared_softmax"]()
    plan.save(tmp_path / "a.plan")
    for one in (plan, load_plan(tmp_path / "a.plan"), copy.deepcopy(plan), pickle.loads(pickle.dumps(plan))):
        arrays = [one.prior, one.classes, one.dictionary.left, one.nodes[0].weights, one.nodes[0].bias]
        assert not any(a.flags.writeable for a in arrays)


# ---- whole or not at all ----------------------------------------------------------------------------------------


def failing(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("broken", ["os.replace", "os.fsync", "zipfile.ZipFile.writestr"])
def test_a_failing_save_leaves_the_old_file_whole_and_nothing_else(broken, tmp_path, monkeypatch):
    path = tmp_path / "a.plan"
    PLANS["cascade"]().save(path)
    before = path.read_bytes()
    owner, name = broken.rsplit(".", 1)
    monkeypatch.setattr({"os": os, "zipfile.ZipFile": zipfile.ZipFile}[owner], name, failing)
    with pytest.raises(OSError, match="No space left") as error:
        PLANS["forest"]().save(path)
    assert str(path) in str(error.value)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["a.plan"]
    assert path.read_bytes() == before


def test_a_save_that_is_interrupted_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "a.plan"
    PLANS["cascade"]().save(path)
    before = path.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(plan_file, "write_plan", interrupted)
    with pytest.raises(KeyboardInterrupt):
        PLANS["forest"]().save(path)
    assert os.listdir(tmp_path) == ["a.plan"]
    assert path.read_bytes() == before


def test_notes_that_cannot_be_written_leave_nothing_behind(tmp_path):
    plan = replace(PLANS["cascade"](), notes={"model": object()})
    with pytest.raises(TypeError):
        plan.save(tmp_path / "a.plan")
    assert os.listdir(tmp_path) == []


def test_a_saved_plan_has_the_rights_of_any_new_file(tmp_path):
    PLANS["cascade"]().save(tmp_path / "a.plan")
    (tmp_path / "other").write_text("")
    rights = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a.plan", "other")]
    assert rights[0] == rights[1]


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        PLANS["cascade"]().save(tmp_path / "nowhere" / "a.plan")
    with pytest.raises(FileNotFoundError):
        load_plan(tmp_path / "nothing.plan")
    assert isinstance(PLANS["cascade"](), Plan)
