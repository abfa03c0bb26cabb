"""A plan file that somebody meddled with is refused, or served: it never takes the server down."""

import io
import json
import random
import zipfile

import numpy as np
import pytest

from miserly.plan import PlanFileError, load_plan
from miserly.serve.desk import Post
from oracles.hand_built import PLANS

NUMBERS = (0, 1, -1, 2, 7, 2**31 - 1, -(2**31), 2**63, 10**30, 0.5, -0.0, 1e308, float("nan"), float("inf"))
SMALL = (0, 1, 2, 3, 7, 100)
OTHERS = (None, True, "", "x", "0", [], {}, [0], {"a": 1})


def places(value, path=()):
    """Where every value of a JSON document stands."""
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))


def meddle_with_header(draw, text):
    """Change, drop or double one to three values of the header."""
    header = json.loads(text)
    for _ in range(draw.randint(1, 3)):
        path = draw.choice([path for path in places(header) if path])
        *way, last = path
        inside = header
        for key in way:
            inside = inside[key]
        what = draw.random()
        if what < 0.15:
            del inside[last]
        elif what < 0.3 and isinstance(inside, list):
            inside.append(inside[last])
        elif what < 0.7:
            inside[last] = draw.choice(NUMBERS)
        else:
            inside[last] = draw.choice(OTHERS)
    return json.dumps(header).encode()


def meddle_with_array(draw, data):
    """Change some numbers of an array, its type, or its bytes."""
    array = np.load(io.BytesIO(data))
    what = draw.random()
    if what < 0.3:
        changed = bytearray(data)
        for _ in range(draw.randint(1, 4)):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        return bytes(changed)
    if what < 0.8 and array.size and array.dtype.kind in "fiu":
        array = array.copy()
        flat, is_float = array.reshape(-1), array.dtype.kind == "f"
        for _ in range(draw.randint(1, 3)):
            flat[draw.randrange(array.size)] = draw.choice(NUMBERS if is_float else SMALL)
    elif what < 0.9:
        array = array.ravel()[: draw.randint(0, array.size)]
    elif array.dtype.kind in "iub" or (array.dtype.kind == "f" and (abs(array) < 100).all()):
        array = array.astype(draw.choice(["<i1", "<u8", "<f4", "<f8", "<U3", "bool"]))
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def meddle(draw, parts):
    name = draw.choice(list(parts)) if draw.random() < 0.6 else "plan.json"
    change = meddle_with_header if name == "plan.json" else meddle_with_array
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for part, data in parts.items():
            archive.writestr(part, change(draw, data) if part == name else data)
    whole = bytearray(out.getvalue())
    if draw.random() < 0.1:
        whole[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
    return bytes(whole)


def fuzz(n, folder):
    """How many were refused and how many are served; any other end is an error."""
    draw, path, ends = random.Random(0), folder / "a.plan", {"refused": 0, "unfit": 0, "served": 0}
    originals = []
    for make in PLANS.values():
        make().save(path)
        with zipfile.ZipFile(path) as archive:
            originals.append({name: archive.read(name) for name in archive.namelist()})
    for i in range(n):
        path.write_bytes(meddle(draw, originals[i % len(originals)]))
        try:
            plan = load_plan(path)
        except PlanFileError:
            ends["refused"] += 1
            continue
        try:
            post = Post(plan, None)
        except ValueError:
            ends["unfit"] += 1
            continue
        with np.errstate(all="ignore"):
            post.runner.predict(dict.fromkeys(plan.costs.features, 0.5), budget=100.0)
        ends["served"] += 1
    return ends


def test_meddled_plans_never_crash(tmp_path):
    ends = fuzz(500, tmp_path)
    assert ends["refused"] > 100
    assert ends["served"] > 20


@pytest.mark.slow
def test_many_meddled_plans_never_crash(tmp_path):
    assert sum(fuzz(20_000, tmp_path).values()) == 20_000
