"""A plan file that would answer nonsense, take all memory or run for minutes is refused when it is read."""

import io
import os
import sys
import tracemalloc
import zipfile
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from miserly.costs import CostTable
from miserly.plan import Menu, Node, Plan, PlanFileError, RawFeatures, Trees, load_menu, load_plan
from miserly.schema import Column, Schema
from oracles.hand_built import PLANS, rows
from oracles.meddling import parts_of, zipped


def changed(path, name=None, change=None, header=None):
    """Rewrite a plan file with one array or the header changed."""
    with zipfile.ZipFile(path) as archive:
        parts = {entry: archive.read(entry) for entry in archive.namelist()}
    if name is not None:
        entry = f"arrays/{name}.npy"
        array = change(np.load(io.BytesIO(parts[entry])).copy())
        buffer = io.BytesIO()
        np.save(buffer, array)
        parts[entry] = buffer.getvalue()
    if header is not None:
        found = msgspec.json.decode(parts["plan.json"])
        header(found)
        parts["plan.json"] = msgspec.json.encode(found)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, data in parts.items():
            archive.writestr(entry, data)


def with_first(value):
    def change(array):
        array.flat[0] = value
        return array

    return change


@pytest.fixture
def path(tmp_path):
    PLANS["forest"]().save(tmp_path / "a.plan")
    return tmp_path / "a.plan"


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["prior", "node.weights", "node.bias", "dictionary.value", "node.numbers"])
def test_numbers_are_finite(path, name, value):
    """Plans with NaN in weights or priors were served."""
    changed(path, name, with_first(value))
    with pytest.raises(PlanFileError, match=f"{name} holds a value that is not a finite number"):
        load_plan(path)


def test_thresholds_may_be_infinite_but_not_nan(path):
    changed(path, "dictionary.threshold", with_first(np.inf))
    load_plan(path)
    changed(path, "dictionary.threshold", with_first(np.nan))
    with pytest.raises(PlanFileError, match="threshold"):
        load_plan(path)


def test_a_root_appears_once(path):
    """One root 100,000 times ran for 102 seconds."""
    changed(path, header=lambda found: found.update(roots=[0] * 100_000))
    with pytest.raises(PlanFileError, match="twice"):
        load_plan(path)


def test_a_small_file_does_not_claim_much_memory(path):
    """306 kB claimed 5.4 GB."""
    changed(path, "dictionary.value", lambda array: np.zeros(50_000_000))
    with pytest.raises(PlanFileError, match="times its size"):
        load_plan(path)

    def many(found):
        names = [f"f{i}" for i in range(30_000)]
        found["costs"] |= {
            "features": names,
            "needs": {name: [f"a{i}"] for i, name in enumerate(names)},
            "prices": {f"a{i}": 1.0 for i in range(100_000)},
        }

    PLANS["forest"]().save(path)
    changed(path, header=many)
    with pytest.raises(PlanFileError, match="more than a plan can have"):
        load_plan(path)


def test_the_order_of_an_array_does_not_matter(tmp_path):
    """Arrays by columns made the first request wait for a compilation."""
    plan = PLANS["wide"]()
    plan.save(tmp_path / "a.plan")
    changed(tmp_path / "a.plan", "node.numbers", np.asfortranarray)
    again = load_plan(tmp_path / "a.plan")
    X = rows(5, 1, 0.0, len(plan.costs.features))
    np.testing.assert_array_equal(again.run(X).score, plan.run(X).score)
    from miserly.plan._file import _read_array

    buffer = io.BytesIO()
    np.save(buffer, np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    with zipfile.ZipFile(tmp_path / "b", "w") as archive:
        archive.writestr("arrays/x.npy", buffer.getvalue())
    with zipfile.ZipFile(tmp_path / "b") as archive:
        found = _read_array(archive, "b", "x", np.float64)
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, np.arange(6.0).reshape(2, 3))


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes as files")
def test_a_pipe_is_refused(tmp_path):
    """Opening it waited for a writer for ever."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PlanFileError, match="regular file"):
        load_plan(tmp_path / "pipe")


def test_the_places_of_trees_do_not_overflow():
    """Differences of int32 wrapped around, so that a tree had no places, or those outside of the table; found by
    mutation guided by coverage."""
    start = np.array([0, 2_000_000_000, 4_000_000_000 - 2**32, 3], np.int64).astype(np.int32)
    with pytest.raises(ValueError, match="not well formed"):
        Trees(start, [1, 0, 0], [1.5, np.inf, np.inf], [1, 1, 2], [False] * 3, [0.0, -1.0, 1.0])


def test_a_menus_tables_take_no_more_than_they_hold(tmp_path):
    """9 kB claimed 8 MB; found by mutation guided by coverage."""
    costs = CostTable.per_feature({"a": 1.0})
    plan = Plan(costs, RawFeatures([0]), (Node([0], [1.0]),), [0.0])
    Menu((plan,), np.full(1, np.inf), np.zeros((1, 1)), np.zeros((1, 1)), ("a",), "accuracy").save(tmp_path / "a.menu")
    parts = parts_of(tmp_path / "a.menu")
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (2**20,)})
    (tmp_path / "b.menu").write_bytes(zipped((parts | {"caps.npy": head.getvalue() + bytes(8)}).items()))
    tracemalloc.start()
    with pytest.raises(PlanFileError, match="not of the size"):
        load_menu(tmp_path / "b.menu")
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("rules", [{"missing": [1, "na"]}, {"limits": "x"}, {"decimal": 1}])
def test_a_schema_is_of_the_right_types(tmp_path, rules):
    """A missing mark that is a number was read, and the plan could not be saved again."""
    plan = Plan(CostTable.per_feature({"a": 1.0}), RawFeatures([0]), (Node([0], [1.0]),), [0.0])
    replace(plan, schema=Schema((Column("a"),))).save(tmp_path / "a.plan")
    changed(tmp_path / "a.plan", header=lambda header: header["schema"]["rules"].update(rules))
    with pytest.raises(PlanFileError, match="does not fit together"):
        load_plan(tmp_path / "a.plan")
