"""A damaged or foreign file gives a PlanFileError; never a crash, a hang or another exception."""

import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest

from miserly.plan import PlanFileError, load_plan
from miserly.plan._file import VERSION
from oracles.hand_built import PLANS

SAMPLE = ("shared_softmax", "binary_tree")


def saved(name, folder):
    path = folder / f"{name}.plan"
    PLANS[name]().save(path)
    return path


def contents(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(parts, path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def with_header(path, change):
    parts = contents(path)
    header = json.loads(parts["plan.json"])
    header = change(header) or header
    return written({**parts, "plan.json": json.dumps(header).encode()}, path.with_suffix(".bad"))


def with_array(path, name, change):
    parts = contents(path)
    key = f"arrays/{name}.npy"
    buffer = io.BytesIO()
    np.save(buffer, change(np.load(io.BytesIO(parts[key]))), allow_pickle=True)
    return written({**parts, key: buffer.getvalue()}, path.with_suffix(".bad"))


@pytest.mark.parametrize("name", SAMPLE)
def test_every_truncation_is_refused(name, tmp_path):
    path = saved(name, tmp_path)
    whole = path.read_bytes()
    for size in [*range(0, 64), *range(64, len(whole), 17), *range(len(whole) - 64, len(whole))]:
        path.write_bytes(whole[:size])
        with pytest.raises(PlanFileError):
            load_plan(path)


@pytest.mark.parametrize("name", SAMPLE)
@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_no_flipped_byte_gives_another_error(name, flip, tmp_path):
    path = saved(name, tmp_path)
    whole, original = path.read_bytes(), PLANS[name]()
    wrong = {}
    directory = whole.index(b"PK\x01\x02")
    for at in [*range(0, directory, 11), *range(directory, len(whole), 1 if flip == 1 else 3)]:
        damaged = bytearray(whole)
        damaged[at] ^= flip
        path.write_bytes(bytes(damaged))
        try:
            plan = load_plan(path)
        except PlanFileError:
            continue
        except Exception as error:
            wrong.setdefault(f"{type(error).__name__}: {error}", []).append(at)
            continue
        assert plan == original, f"byte {at} changed the plan unnoticed"
    assert not wrong


@pytest.mark.parametrize("content", [b"", b"PK", b"hello", b"\x00" * 4096, b"PK\x05\x06" + b"\x00" * 18])
def test_a_foreign_file_is_refused(content, tmp_path):
    (tmp_path / "a.plan").write_bytes(content)
    with pytest.raises(PlanFileError, match=r"a\.plan"):
        load_plan(tmp_path / "a.plan")


def test_foreign_zips_and_headers_are_refused(tmp_path):
    for header in (None, b"", b"[]", b"{}", b"{", b'{"format": "other"}', b"\xff\xfe", b"[" * 100_000):
        parts = {"readme.txt": b"hello"} if header is None else {"plan.json": header}
        with pytest.raises(PlanFileError, match=r"a\.plan"):
            load_plan(written(parts, tmp_path / "a.plan"))


def test_a_newer_version_says_upgrade(tmp_path):
    path = saved("cascade", tmp_path)
    for version in (VERSION + 1, 10**30):
        with pytest.raises(PlanFileError, match="version"):
            load_plan(with_header(path, lambda h, v=version: h.update(version=v)))
    with pytest.raises(PlanFileError, match="Upgrade"):
        load_plan(with_header(path, lambda h: h.update(version=VERSION + 1)))


HEADER_CHANGES = {
    "a cycle": lambda h: h["nodes"][1].update(passed=0),
    "to itself": lambda h: h["nodes"][1].update(failed=1),
    "beyond": lambda h: h["nodes"][0].update(passed=99),
    "below": lambda h: h["nodes"][0].update(passed=-2),
    "a huge way": lambda h: h["nodes"][0].update(passed=2**70),
    "a root beyond": lambda h: h.update(roots=[7]),
    "a root below": lambda h: h.update(roots=[-1]),
    "no roots": lambda h: h.update(roots=[]),
    "an output beyond": lambda h: h["nodes"][0].update(outputs=[0, 1, 9]),
    "no outputs": lambda h: h["nodes"][0].update(outputs=[]),
    "too many learners": lambda h: h["nodes"][0].update(n_learners=50),
    "too few learners": lambda h: h["nodes"][0].update(n_learners=1),
    "minus one learner": lambda h: h["nodes"][0].update(n_learners=-1),
    "unknown combine": lambda h: h["nodes"][0].update(combine="subtract"),
    "unknown activation": lambda h: h["nodes"][0].update(activation="relu"),
    "unknown gate": lambda h: h["nodes"][0].update(gate="closed"),
    "unknown direction": lambda h: h["nodes"][0].update(direction=0),
    "rank of none": lambda h: h["nodes"][0].update(gate="rank", k=0),
    "a huge tier": lambda h: h["nodes"][0].update(tier=2**70),
    "unknown link": lambda h: h.update(link="probit"),
    "unknown charge": lambda h: h.update(charge="bits"),
    "unknown dictionary": lambda h: h.update(dictionary="kernels"),
    "another dictionary": lambda h: h.update(dictionary="raw"),
    "another type": lambda h: h.update(nodes="none"),
    "an unknown field": lambda h: h.update(code="import os"),
    "a missing field": lambda h: h.pop("link") and None,
    "no classes": lambda h: h.update(has_classes=False),
    "a feature lost": lambda h: h["costs"]["features"].pop() and None,
    "a negative price": lambda h: h["costs"]["prices"].update(ask=-1.0),
    "an endless price": lambda h: h["costs"]["prices"].update(ask=10**400),
    "a price of words": lambda h: h["costs"]["prices"].update(ask="much"),
    "needs are numbers": lambda h: h["costs"].update(needs=dict.fromkeys(h["costs"]["features"], 3)),
    "needs are a list": lambda h: h["costs"].update(needs=[1, 2]),
    "costs with a field too many": lambda h: h["costs"].update(currency="EUR"),
    "evaluation prices for others": lambda h: h["costs"].update(evaluation=[1.0, 2.0]),
}


@pytest.mark.parametrize("what", HEADER_CHANGES)
def test_a_header_that_does_not_fit_is_refused(what, tmp_path):
    path = with_header(saved("shared_softmax", tmp_path), HEADER_CHANGES[what])
    with pytest.raises(PlanFileError):
        load_plan(path)


ARRAYS = ["dictionary.start", "dictionary.feature", "dictionary.threshold", "dictionary.left"]
ARRAYS += ["dictionary.missing_right", "dictionary.value", "prior", "classes"]
ARRAYS += ["node.learners", "node.weights", "node.bias", "node.numbers"]
SHAPES = {
    "shorter": lambda a: a[:-1],
    "longer": lambda a: np.concatenate([a, a[-1:]]),
    "empty": lambda a: a[:0],
    "a column": lambda a: a.reshape(*a.shape, 1),
    "a scalar": lambda a: a.ravel()[0],
    "words": lambda a: np.full(a.shape, "x"),
    "objects": lambda a: np.full(a.shape, None, object),
}


@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("what", SHAPES)
def test_an_array_of_another_shape_or_type_is_refused(array, what, tmp_path):
    if (array, what) == ("classes", "words"):
        return
    path = with_array(saved("shared_softmax", tmp_path), array, SHAPES[what])
    with pytest.raises(PlanFileError):
        load_plan(path)


@pytest.mark.parametrize("left", [-1, -(2**31), 4, 10**6, 2**31 - 1, 2**31 - 2])
def test_children_outside_their_tree_are_refused(left, tmp_path):
    path = with_array(saved("forest", tmp_path), "dictionary.left", lambda a: np.r_[np.int32(left), a[1:]])
    with pytest.raises(PlanFileError):
        load_plan(path)


def test_numbers_outside_their_range_are_refused(tmp_path):
    path = saved("forest", tmp_path)
    for array, value in (
        ("node.learners", 12),
        ("node.learners", -1),
        ("dictionary.feature", 8),
        ("dictionary.feature", -1),
    ):
        with pytest.raises(PlanFileError):
            load_plan(with_array(path, array, lambda a, v=value: np.r_[np.int32(v), a[1:]]))
    with pytest.raises(PlanFileError):
        load_plan(
            with_array(saved("binary_tree", tmp_path), "dictionary.columns", lambda a: np.r_[a[:-1], np.int32(8)])
        )


def test_an_array_that_claims_to_be_enormous_is_refused(tmp_path):
    path = saved("forest", tmp_path)
    parts = contents(path)
    for shape in ((2**44,), (2**62, 2**62), (-5,)):
        buffer = io.BytesIO()
        np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": shape})
        with pytest.raises(PlanFileError):
            load_plan(written({**parts, "arrays/prior.npy": buffer.getvalue()}, tmp_path / "b.plan"))


def test_a_missing_array_is_refused(tmp_path):
    parts = contents(saved("platt", tmp_path))
    for name in parts:
        rest = {k: v for k, v in parts.items() if k != name}
        with pytest.raises(PlanFileError):
            load_plan(written(rest, tmp_path / "b.plan"))


def test_an_array_whose_header_python_cannot_parse_is_refused(tmp_path):
    """It ended in tokenize's own error."""
    path = saved("forest", tmp_path)
    parts = contents(path)
    data = parts["arrays/prior.npy"].replace(b"'shape': (3,)", b"'shape': (3,(")
    assert data != parts["arrays/prior.npy"]
    with pytest.raises(PlanFileError, match=r"prior\.npy"):
        load_plan(written({**parts, "arrays/prior.npy": data}, tmp_path / "b.plan"))


def test_prices_that_cannot_be_added_up_are_refused(tmp_path):
    """They ended in an OverflowError when the plan was run."""
    path = saved("forest", tmp_path)
    with pytest.raises(PlanFileError, match="prices"):
        load_plan(with_header(path, lambda h: h["costs"]["prices"].update(ask=1.5e308, draw=1.5e308)))


def test_an_array_that_claims_more_than_there_is_takes_no_memory(tmp_path):
    """An array of a few bytes took as much memory as its header or its place in the archive claimed."""
    path = saved("forest", tmp_path)
    parts, whole = contents(path), path.read_bytes()
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (2**27,)})
    written({**parts, "arrays/prior.npy": head.getvalue()}, tmp_path / "b.plan")
    entry = whole.index(b"arrays/prior.npy", whole.index(b"PK\x01\x02")) - 46
    packed = whole[: entry + 20] + (2**29).to_bytes(4, "little") + whole[entry + 24 :]
    (tmp_path / "c.plan").write_bytes(packed)
    tracemalloc.start()
    for name, what in (("b.plan", "not of the size"), ("c.plan", "larger than the file")):
        with pytest.raises(PlanFileError, match=what):
            load_plan(tmp_path / name)
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()


def test_an_entry_packed_in_another_way_is_refused(tmp_path):
    """What unpacks it may take much memory, and has errors of its own."""
    parts = contents(saved("forest", tmp_path))
    for how in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):
        with zipfile.ZipFile(tmp_path / "b.plan", "w", how) as archive:
            for name, data in parts.items():
                archive.writestr(name, data)
        with pytest.raises(PlanFileError, match="packed in another way"):
            load_plan(tmp_path / "b.plan")


def test_text_that_is_not_utf8_is_refused(tmp_path):
    """It ended in a UnicodeDecodeError, in the header and in the names of the archive."""
    path = saved("forest", tmp_path)
    parts = contents(path)
    written({**parts, "plan.json": parts["plan.json"].replace(b"CAD", b"\xeb\xebD")}, tmp_path / "b.plan")
    names = written({**parts, "arrays/é.npy": b""}, tmp_path / "c.plan")
    names.write_bytes(names.read_bytes().replace("é".encode(), b"\xe2\x28"))
    for name in ("b.plan", "c.plan"):
        with pytest.raises(PlanFileError, match=name):
            load_plan(tmp_path / name)


def test_messages_about_damaged_files_are_short(tmp_path):
    """One held all bytes of the file that stood behind a damaged name."""
    path = saved("forest", tmp_path)
    whole = path.read_bytes()
    length = whole.index(b"arrays/prior.npy") - 4
    path.write_bytes(whole[:length] + (len(whole)).to_bytes(2, "little") + whole[length + 2 :])
    with pytest.raises(PlanFileError, match=r"prior\.npy") as error:
        load_plan(path)
    assert len(str(error.value)) < 500


def test_many_features_of_one_name_are_refused_at_once(tmp_path):
    """They were counted one by one: a minute for a file of some hundred bytes."""
    path = saved("forest", tmp_path)
    with pytest.raises(PlanFileError, match="'age' stands twice"):
        load_plan(with_header(path, lambda h: h["costs"].update(features=["age"] * 200_000)))


@pytest.mark.parametrize("array", ["node.learners", "node.weights", "prior", "dictionary.feature"])
def test_arrays_of_another_type_are_refused(array, tmp_path):
    """Complex weights lost their imaginary parts, and learners given as fractions were cut to whole numbers."""
    path = saved("forest", tmp_path)
    for dtype in (np.float32, np.complex128, np.int8):
        with pytest.raises(PlanFileError, match=f"{array}.*type"):
            load_plan(with_array(path, array, lambda a, t=dtype: a.astype(t)))


def test_a_gate_for_more_documents_than_there_can_be_is_refused(tmp_path):
    """It ended in an OverflowError when the plan was run."""
    path = saved("rank", tmp_path)
    for k in (2**31, 2**63, 10**30):
        with pytest.raises(PlanFileError):
            load_plan(with_header(path, lambda h, k=k: h["nodes"][0].update(k=k)))
