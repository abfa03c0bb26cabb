"""Plan files that somebody or something meddled with: damaged bytes, or sound archives of unsound content."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np

NUMBERS = (0, 1, -1, 2, 7, 2**31 - 1, -(2**31), 2**63, 10**30, 0.5, -0.0, 1e308, float("nan"), float("inf"))
SMALL = (0, 1, 2, 3, 7, 100)
OTHERS = (None, True, "", "x", "0", [], {}, [0], {"a": 1})


def parts_of(path):
    """The entries of a plan file."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts):
    """An archive of (name, content), which may name one twice."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in parts:
            archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def places(value, path=()):
    """Where every value of a JSON document stands."""
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))


def meddled_header(draw, text):
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


def meddled_text(draw, text):
    """The header as text that JSON's own writer would not write: nested deeply, keys twice, odd numbers, bytes."""
    what = draw.randrange(6)
    if what == 0:
        depth = draw.choice((10, 1000, 100_000))
        deep = b"[" * depth + b"]" * depth
        return text.replace(b'"notes":{', b'"notes":{"deep":' + deep + b",", 1).replace(b",}", b"}")
    if what == 1:
        again = draw.choice(text[1:-1].split(b',"'))
        return text[:-1] + b',"' + again.lstrip(b'"') + b"}"
    if what == 2:
        number = draw.choice((b"1e999", b"-1e999", b"NaN", b"0x1", b"01", b"1.", b"9" * 5000, b"1e-400", b"-0"))
        at = draw.choice([i for i, c in enumerate(text) if chr(c).isdigit()])
        return text[:at] + number + text[at + 1 :]
    if what == 3:
        return text.replace(b'"', draw.choice((b"'", b'"\\u0000', b'"\\ud800', b"")), draw.choice((1, 2, 9)))
    if what == 4:
        return draw.choice((b"\xef\xbb\xbf", b" " * 1000, b"\x00", b"[")) + text
    return damaged(draw, text)


def meddled_array(draw, data):
    """Change some numbers of an array, its type, its shape, or its bytes."""
    array = np.load(io.BytesIO(data))
    what = draw.random()
    if what < 0.25:
        return damaged(draw, data)
    if what < 0.35:
        claim = draw.choice([(2**20,), (2**40,), (2**62, 4), (-1,), (0,), (1,) * 70, (array.size, 1), ()])
        kind = draw.choice(["<f8", ">f8", "<i4", "<U999999999", "|V9", "|O", "<M8[s]", "<c16", array.dtype.str])
        head = io.BytesIO()
        order = draw.random() < 0.3
        np.lib.format.write_array_header_1_0(head, {"descr": kind, "fortran_order": order, "shape": claim})
        return head.getvalue() + data[-array.nbytes :]
    if what < 0.8 and array.size and array.dtype.kind in "fiu":
        array = array.copy()
        flat, is_float = array.reshape(-1), array.dtype.kind == "f"
        for _ in range(draw.randint(1, 3)):
            flat[draw.randrange(array.size)] = draw.choice(NUMBERS if is_float else SMALL)
    elif what < 0.9:
        array = array.ravel()[: draw.randint(0, array.size)]
    elif array.dtype.kind in "iub" or (array.dtype.kind == "f" and (abs(array) < 100).all()):
        array = array.astype(draw.choice(["<i1", "<u8", "<f4", ">f8", "<U3", "bool", "<c16", "<M8[D]"]))
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def damaged(draw, data):
    """Bytes flipped, set, cut out, put in or written twice, in one to four places."""
    data = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4))):
        at, size = draw.randrange(len(data) + 1), draw.choice((1, 1, 2, 8, 50, 500))
        what = draw.randrange(6)
        if what == 0 and at < len(data):
            data[at] ^= 1 << draw.randrange(8)
        elif what == 1:
            data[at : at + size] = draw.randbytes(min(size, len(data) - at))
        elif what == 2:
            del data[at : at + size]
        elif what == 3:
            data[at:at] = draw.choice((draw.randbytes(size), bytes(size), b"\xff" * size))
        elif what == 4:
            data[at:at] = data[at : at + size]
        elif what == 5:
            del data[at:]
    return bytes(data)


def meddled(draw, parts, others):
    """A sound archive of unsound content: one entry changed, dropped, doubled, renamed, or taken from another plan."""
    parts = dict(parts)
    name = draw.choice(list(parts))
    what = draw.random()
    if what < 0.3:
        parts["plan.json"] = meddled_header(draw, parts["plan.json"])
    elif what < 0.45:
        parts["plan.json"] = meddled_text(draw, parts["plan.json"])
    elif what < 0.85:
        name = draw.choice([n for n in parts if n != "plan.json"])
        parts[name] = meddled_array(draw, parts[name])
    elif what < 0.9:
        del parts[name]
    elif what < 0.93:
        return zipped([*parts.items(), (name, draw.choice(list(parts.values())))])
    elif what < 0.96:
        parts[draw.choice((name.upper(), "../" + name, "arrays/more.npy", "code.py"))] = parts.pop(name)
    else:
        parts[name] = others.get(name, b"")
    return zipped(parts.items())


def meddled_menu(draw, parts):
    """A sound archive of unsound content: its header, a table, or one of its plans is changed, dropped or doubled."""
    parts = dict(parts)
    name, what = draw.choice(list(parts)), draw.random()
    plan = draw.choice([n for n in parts if n.endswith(".plan")])
    if what < 0.25:
        parts["menu.json"] = meddled_header(draw, parts["menu.json"])
    elif what < 0.35:
        parts["menu.json"] = meddled_text(draw, parts["menu.json"])
    elif what < 0.6:
        table = draw.choice([n for n in parts if n.endswith(".npy")])
        parts[table] = meddled_array(draw, parts[table])
    elif what < 0.85:
        inner = parts_of(io.BytesIO(parts[plan]))
        parts[plan] = meddled(draw, inner, inner) if draw.random() < 0.7 else damaged(draw, parts[plan])
    elif what < 0.9:
        del parts[name]
    elif what < 0.95:
        return zipped([*parts.items(), (name, draw.choice(list(parts.values())))])
    else:
        parts[plan] = draw.choice(list(parts.values()))
    return zipped(parts.items())
