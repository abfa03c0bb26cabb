import gzip
import re
import sys
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest

from miserly.datasets import _tables as tables
from miserly.datasets import from_frame, read_csv, read_letor, read_parquet, read_table, write_csv

NAMES = ("1", "2", "3")


@pytest.fixture
def data() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3)).astype(np.float32).astype(np.float64)
    X[rng.random(X.shape) < 0.1] = np.nan
    columns = {name: X[:, j] for j, name in enumerate(NAMES)}
    return {"grade": rng.integers(0, 3, 60), "q": np.repeat(np.arange(12), 5), **columns}


@pytest.fixture
def fast(monkeypatch):
    """Every CSV file, however small, is given to pyarrow first; the test gets what it could read."""
    pytest.importorskip("pyarrow", reason="the fast CSV reader needs pyarrow")
    taken, reader = [], tables._read_csv_fast

    def watched(*args):
        taken.append(reader(*args))
        return taken[-1]

    monkeypatch.setattr(tables, "_FAST_FROM_BYTES", 0)
    monkeypatch.setattr(tables, "_read_csv_fast", watched)
    return taken


def assert_same(table, data):
    assert table.features == NAMES
    np.testing.assert_array_equal(table.X, np.column_stack([data[name] for name in NAMES]))
    assert table.y.dtype == np.int64
    np.testing.assert_array_equal(table.y, data["grade"])
    np.testing.assert_array_equal(table.qid.astype(np.int64), data["q"])


@pytest.mark.parametrize("make", ["pandas", "pandas nullable", "polars", "arrow"])
def test_from_frame(data, make):
    if make == "arrow":
        frame = pytest.importorskip("pyarrow").table(data)
    else:
        frame = pl.DataFrame(data) if make == "polars" else pd.DataFrame(data)
    if make == "pandas nullable":
        frame = frame.convert_dtypes(dtype_backend="numpy_nullable")
    table = from_frame(frame, "grade", "q")
    assert_same(table, data)
    assert table.qid.dtype == np.int64
    assert from_frame(frame).features == ("grade", "q", *NAMES)
    table.y[:] = 9
    table.qid[:] = 9
    assert_same(from_frame(frame, "grade", "q"), data)


def test_all_readers_agree(tmp_path, data, fast):
    pl.DataFrame(data).write_parquet(tmp_path / "t.parquet")
    write_csv(tmp_path / "t.csv", list(data), list(data.values()))
    with gzip.open(tmp_path / "t.letor.gz", "wt") as file:
        for grade, query, *row in zip(*data.values()):
            file.write(f"{grade} qid:{query} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row)) + "\n")
    assert_same(read_csv(tmp_path / "t.csv", "grade", "q"), data)
    assert fast[0] is not None
    assert_same(read_table(tmp_path / "t.csv", "grade", "q"), data)
    assert_same(read_table(tmp_path / "t.parquet", label="grade", qid="q"), data)
    assert_same(read_table(str(tmp_path / "t.letor.gz")), data)
    assert_same(read_letor(tmp_path / "t.letor.gz", n_features=3, absent="error"), data)


def test_read_table_chooses_by_the_suffix(tmp_path):
    for name in ("a.txt", "a.SVM", "a.letor"):
        (tmp_path / name).write_text("1 qid:1 1:2\n")
        assert read_table(tmp_path / name).X.tolist() == [[2]]
        assert read_table(tmp_path / name, features=("1",)).features == ("1",)
        wider = read_table(tmp_path / name, features=("2", "1"))
        assert (wider.features, wider.X.tolist()) == (("1", "2"), [[2, 0]])
        assert read_table(tmp_path / name, features=("a", "b")).features == ("a", "b")
    with pytest.raises(ValueError, match=r"a\.txt' is a LETOR file.*Leave label and qid out"):
        read_table(tmp_path / "a.txt", label="y")
    with pytest.raises(ValueError, match=r"a\.doc': the format is chosen by the suffix: \.csv, \.tsv"):
        read_table("a.doc")


def test_types_of_columns():
    frame = pl.DataFrame({"a": [True, None], "b": [1, 2], "y": ["yes", "no"]}).with_columns(
        b=pl.col("b").cast(pl.Decimal(10, 2))
    )
    table = from_frame(frame, "y")
    np.testing.assert_array_equal(table.X, [[1, 1], [np.nan, 2]])
    assert table.y.tolist() == ["yes", "no"]
    category = from_frame(pd.DataFrame({"a": [1.5, 2], "y": pd.Categorical(["u", "v"])}), "y")
    assert category.y.tolist() == ["u", "v"]
    assert from_frame(pl.DataFrame({"a": [1.5, 2]}).cast(pl.Float32)).X.dtype == np.float32
    assert from_frame(pd.DataFrame({"a": [1, 2], "y": [0.5, 1]}), "y").y.tolist() == [0.5, 1]
    assert from_frame(pd.DataFrame({0: [1, 2], 1: [3, 4]})).features == ("0", "1")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pl.DataFrame({"a": [1]}), "The polars table has no column 'y'. It has: a."),
        (pd.DataFrame({"a": ["x"], "y": [1]}), "column 'a': String is not a number. Encode words"),
        (pd.DataFrame({"a": [1, 2], "y": [1, None]}), "row 1 (from 0): the label 'y' is missing"),
        (pl.DataFrame({"a": [1, 2], "y": [None, "b"]}), "row 0 (from 0): the label 'y' is missing"),
        (pl.DataFrame({"a": [1, 2], "y": [1, 1], "q": [1, None]}), "row 1 (from 0): the query id 'q' is missing"),
        (pl.DataFrame({"a": [1, 2], "y": [1, 1], "q": [1.0, 1.5]}), "the query id 'q' has fractions"),
        (pl.DataFrame({"a": [1], "y": [date(2020, 1, 1)]}), "the label 'y' is Date. Use numbers or words"),
        (pd.DataFrame([[1, 2, 3]], columns=["a", "a", "y"]), "The pandas table has two columns of one name"),
        (pl.DataFrame({"y": [1]}), "has no feature columns"),
        (pl.DataFrame({"a": [], "y": []}), "has no rows"),
    ],
)
def test_frames_that_are_refused(frame, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        from_frame(frame, "y", "q" if "q" in frame.columns else None)


def test_what_is_not_a_frame():
    for other in (np.ones((2, 2)), pl.DataFrame({"a": [1]}).lazy()):
        with pytest.raises(TypeError, match="takes a pandas, polars or pyarrow table, got"):
            from_frame(other)


def test_parquet_troubles(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    path = tmp_path / "t.parquet"
    path.write_bytes(b"not parquet at all")
    with pytest.raises(ValueError, match=r"t\.parquet' is not a Parquet file"):
        read_parquet(path)
    pl.DataFrame({"a": [1]}).write_parquet(path)
    with pytest.raises(ValueError, match=r"t\.parquet' has no column 'y'"):
        read_parquet(path, "y")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'miserly\[io\]'"):
        read_parquet(path)


@pytest.mark.parametrize(
    ("text", "by_arrow"),
    [
        ("a,b,y,q\n1, 2 ,0,u\n\nNA,?,1,v\nnan,null,1.0,v\n", True),
        ("\ufeffa,b,y,q\r\n1e-320,0.1,x,u\r\n-inf,123456789.123456789,z,v\r\n", True),
        (" a , b,y,q\n1,2,0.5,u\nNone,NONE,1,v", True),
        ('a,b,y,q\n1,2,"u,v",u\n3,4,w,v\n', False),
        ('a,b,y,q\n1,2,"u\nv",u\n3,4,w,v\n', False),
        ('a,"b",y,q\n1,2,0,u\n', False),
        ("a,b,y,q\n1,nUlL,0,u\n1_0,4,0,v\n", False),
    ],
)
def test_the_fast_csv_reader_equals_the_strict_one(tmp_path, monkeypatch, fast, text, by_arrow):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    table = read_csv(path, "y", "q")
    assert (fast[0] is not None) is by_arrow
    monkeypatch.setattr(tables, "_FAST_FROM_BYTES", 1 << 20)
    strict = read_csv(path, "y", "q")
    assert table.features == strict.features
    for ours, theirs in ((table.X, strict.X), (table.y, strict.y), (table.qid, strict.qid)):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("size", [0, 1 << 20])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("a,y,q\n", "has a header but no rows"),
        ("a,y\n1,2\n", "has no column 'q'"),
        ("a,y,q\n1,2\n", "line 2: 2 cells, the header has 3"),
        ("a,y,q\n1,1,1\nhigh,1,1\n", "line 3, column 'a': 'high' is not a number"),
        ("a,y,q\n1,1,1\n1,?,1\n", "line 3: the label 'y' is missing"),
        ("a,y,q\n1,1,1\n1,1,\n", "line 3: the query id 'q' is missing"),
        ("y,q\n1,1\n", "has no feature columns"),
        ("a,a,y,q\n1,2,0,u\n", "has two columns 'a'"),
        ("a,y,q\n\n1,1,1\n\n\nhigh,1,1\n", "line 6, column 'a': 'high' is not a number"),
        ("a,y,q\n1,1,1\n1,1,1\0\n", "this is not CSV: it holds a NUL character"),
        ('a,y,q\n1,"b\nc",1\n1,1\n', "line 4: 2 cells, the header has 3"),
    ],
)
def test_csv_errors_are_the_same_either_way(tmp_path, monkeypatch, text, message, size):
    monkeypatch.setattr(tables, "_FAST_FROM_BYTES", size)
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(message)):
        read_csv(path, "y", "q")


def test_what_the_csv_module_refuses_has_a_line(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,2\n1," + "1" * 140_000 + "\n")
    with pytest.raises(ValueError, match=r"t\.csv', line 3: this is not CSV: field larger than"):
        read_csv(tmp_path / "t.csv", "y")


def test_a_csv_file_in_another_encoding(tmp_path):
    (tmp_path / "t.csv").write_bytes("größe,y\n1,2\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"t\.csv' is not text in UTF-8"):
        read_csv(tmp_path / "t.csv", "y")


def test_csv_without_pyarrow(tmp_path, monkeypatch, data):
    monkeypatch.setattr(tables, "_FAST_FROM_BYTES", 0)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    write_csv(tmp_path / "t.csv", list(data), list(data.values()))
    assert_same(read_csv(tmp_path / "t.csv", "grade", "q"), data)
