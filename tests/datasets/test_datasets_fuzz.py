"""Files that were changed at random: every reader refuses them by name, or reads what a slow and obvious one reads."""

import csv
import io
import math
import random
import re
from contextlib import suppress

import numpy as np
import pytest

from miserly.datasets import _tables as tables
from miserly.datasets import read_csv, read_letor
from miserly.datasets._streams import CsvStream, LetorStream

CELLS = (
    "",
    "?",
    "nan",
    "NA",
    "0",
    "-0.0",
    "1e5",
    "1e400",
    "-1e-400",
    "inf",
    "x",
    "1_0",
    " 2 ",
    '"',
    '"3"',
    "ü",
    "\x00",
)
BITS = (",", ",,", "\n", "\r\n", "\r", '"', " ", "\t", ":", "#", "qid:1", "qid:", "1:1", "3:2", "99:1", "-", "\ufeff")
NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?|[nN][aA][nN]", re.ASCII)
MISSING = {"", "na", "nan", "null", "none", "?"}


def mutated(draw, text):
    """One to three pieces changed, doubled, dropped, put in or cut off."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        at, end = sorted(draw.randrange(len(text) + 1) for _ in range(2))
        end = min(end, at + draw.choice((0, 1, 2, 9, 60)))
        piece = draw.choice((draw.choice(CELLS), draw.choice(BITS), text[at:end] * 2, ""))
        text = text[:at] + piece + text[end:] if draw.random() < 0.97 else text[:at]
    return text.encode() if draw.random() < 0.97 else text.encode("utf-16")


def outcome(read, *arguments):
    """What was read; or None, if it was refused with the name of the file."""
    try:
        return read(*arguments)
    except ValueError as error:
        message = str(error)
    assert "'" + str(arguments[0]) + "'" in message
    return None


def same(a, b):
    """The same bits, types and missing values."""
    assert a.features == b.features
    for one, other in ((a.X, b.X), (a.y, b.y), (a.qid, b.qid)):
        assert (one is None) == (other is None)
        if one is not None:
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


# ---- CSV -------------------------------------------------------------------------------------------------------------


def some_csv(draw):
    header = ["a", "b", "c", "y", "q"][: draw.choice((4, 5))]
    lines = [[draw.choice(("1", "2.5", "-3", "", "7e2")) for _ in header] for _ in range(draw.randint(1, 6))]
    for i, line in enumerate(lines):
        line[3] = draw.choice(("0", "1"))
        if len(header) > 4:
            line[4] = f"u{i // 2}"
    return "\n".join(",".join(line) for line in [header, *lines]) + "\n"


def plainly_read_csv(path, has_queries):
    """By the rules in words: None if the file must be refused."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
        lines = list(csv.reader(io.StringIO(text, newline="")))
    except (UnicodeDecodeError, csv.Error):
        return None
    if "\0" in text:
        return None
    if not lines or not lines[0]:
        return None
    header, rows = [name.strip() for name in lines[0]], [line for line in lines[1:] if line]
    wanted = {"y", "q"} if has_queries else {"y"}
    features = [name for name in header if name not in wanted]
    if len(set(header)) < len(header) or not wanted <= set(header) or not features or not rows:
        return None
    if any(len(row) != len(header) for row in rows):
        return None
    columns = {name: [row[j] for row in rows] for j, name in enumerate(header)}
    for name in wanted:
        if any(cell.strip().lower() in MISSING for cell in columns[name]):
            return None
    X = []
    for name in features:
        for cell in columns[name]:
            try:
                X.append(math.nan if cell.strip().lower() in MISSING else float(cell))
            except ValueError:
                return None
    return np.array(X).reshape(len(features), len(rows)).T, columns["y"], columns.get("q")


def fuzz_csv(n, folder, monkeypatch):
    draw, path, ends = random.Random(1), folder / "t.csv", {"read": 0, "refused": 0}
    for _ in range(n):
        text = some_csv(draw)
        path.write_bytes(mutated(draw, text))
        names = ("y", "q") if text.startswith("a,b,c,y,q") else ("y", None)
        wanted, found = plainly_read_csv(path, names[1] is not None), []
        for size in (0, 1 << 30):
            monkeypatch.setattr(tables, "_FAST_FROM_BYTES", size)
            found.append(outcome(read_csv, path, *names))
            assert (found[-1] is None) == (wanted is None), path.read_bytes()
        streamed = outcome(lambda *given: [*CsvStream(*given)], path, *names)
        if wanted is None:
            assert not streamed
            ends["refused"] += 1
            continue
        X, y, q = wanted
        same(*found)
        same(found[0], streamed[0])
        np.testing.assert_array_equal(found[0].X, X)
        with suppress(ValueError):
            y = [float(label) for label in y]
        assert found[0].y.tolist() == y or any(label != label for label in y)
        assert q is None or found[0].qid.tolist() == q
        ends["read"] += 1
    return ends


# ---- LETOR -----------------------------------------------------------------------------------------------------------


def some_letor(draw):
    qids, lines = draw.random() < 0.7, []
    for i in range(draw.randint(1, 6)):
        features = sorted(draw.sample(range(1, 6), draw.randint(1, 5)))
        values = " ".join(f"{j}:{draw.choice(('0.5', '1', '-2.25', 'nan', '1e3'))}" for j in features)
        query = f"qid:{i // 2} " if qids else ""
        lines.append(f"{draw.randint(0, 4)} {query}{values}{draw.choice(('', ' # note', ' '))}")
    return "\n".join(lines) + "\n"


def plainly_read_letor(path):
    """Line by line, by the rules in words: None if the file must be refused."""
    labels, queries, rows = [], [], []
    for raw in path.read_bytes().split(b"\n"):
        content = raw.split(b"#")[0]
        content = content[:-1] if content.endswith(b"\r") and b"#" not in raw else content
        try:
            content = content.decode("ascii")
        except UnicodeDecodeError:
            return None
        if re.search(r"[^ \t\x21-\x7e]", content):
            return None
        words = re.split(r"[ \t]+", content.strip(" \t"))
        if words == [""]:
            continue
        if not NUMBER.fullmatch(words[0]) or "n" in words[0].lower():
            return None
        labels.append(float(words[0]))
        rest = words[1:]
        query = re.fullmatch(r"qid:(\d{1,18})", rest[0]) if rest else None
        queries.append(int(query[1]) if query else None)
        row = {}
        for word in rest[1:] if query else rest:
            name, _, value = word.partition(":")
            if not re.fullmatch(r"\d+", name) or not NUMBER.fullmatch(value):
                return None
            if int(name) <= max(row, default=0) or abs(float(value)) > float(np.finfo(np.float32).max):
                return None
            row[int(name)] = float(value)
        rows.append(row)
    if not rows or not any(rows) or any(math.isinf(label) for label in labels):
        return None
    if len({query is None for query in queries}) > 1 or max(max(row, default=0) for row in rows) > 10_000_000:
        return None
    changes = [query for i, query in enumerate(queries) if i == 0 or query != queries[i - 1]]
    if len(set(changes)) < len(changes):
        return None
    X = np.zeros((len(rows), max(max(row, default=0) for row in rows)), np.float32)
    for i, row in enumerate(rows):
        for j, value in row.items():
            X[i, j - 1] = value
    return X, np.array(labels), None if queries[0] is None else queries


def fuzz_letor(n, folder):
    draw, path, ends = random.Random(2), folder / "t.letor", {"read": 0, "refused": 0}
    for _ in range(n):
        path.write_bytes(mutated(draw, some_letor(draw)))
        wanted = plainly_read_letor(path)
        found = outcome(read_letor, path)
        assert (found is None) == (wanted is None), path.read_bytes()
        if wanted is None:
            ends["refused"] += 1
            continue
        X, y, queries = wanted
        np.testing.assert_array_equal(found.X, X)
        np.testing.assert_array_equal(found.y, y)
        assert (found.qid is None) if queries is None else (found.qid.tolist() == queries)
        [streamed] = LetorStream(path)
        same(found, streamed)
        ends["read"] += 1
    return ends


def test_meddled_csv_files(tmp_path, monkeypatch):
    ends = fuzz_csv(1000, tmp_path, monkeypatch)
    assert min(ends.values()) > 100


def test_meddled_letor_files(tmp_path):
    ends = fuzz_letor(1000, tmp_path)
    assert min(ends.values()) > 100


@pytest.mark.slow
def test_many_meddled_files(tmp_path, monkeypatch):
    assert sum(fuzz_csv(50_000, tmp_path, monkeypatch).values()) == 50_000
    assert sum(fuzz_letor(50_000, tmp_path).values()) == 50_000
