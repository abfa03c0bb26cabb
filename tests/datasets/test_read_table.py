"""`read_table`: dialects, types, roles, marks; against pandas and pyarrow; every problem in one report."""

import csv
import gzip
import io
import sys
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miserly.datasets import TableError, _fast_text, read_table, split_table, write_csv
from miserly.datasets._dialect import SEPARATORS, find_dialect
from miserly.schema import CellRules, Schema

MESSY = (
    "\ufeffpatient;sex;crp [mg/l];smoker;admitted;score;died\n"
    "A1;male;1,5;ja;03.02.2024;1.234,5;no\n"
    "A2;female;n/a;nein;29.02.2024;12;yes\n"
    'A3;"male";>15;;;-;no\n'
    "A4;?;0,25;ja;01.12.2023;7;yes\n"
)


@pytest.fixture
def write(tmp_path):
    def written(text, name="t.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding) if isinstance(text, str) else text)
        return path

    return written


def test_words_marks_dates_and_decimal_commas(write):
    table = read_table(write(MESSY), "died", id="patient")
    assert table.features == ("sex", "crp [mg/l]", "smoker", "admitted", "score")
    nan = np.nan
    expected = [[1, 1.5, 1, 19756, 1234.5], [0, nan, 0, 19782, 12], [1, 15, nan, nan, nan], [nan, 0.25, 1, 19692, 7]]
    np.testing.assert_array_equal(table.X, expected)
    assert table.y.tolist() == ["no", "yes", "no", "yes"]
    assert table.ids.tolist() == ["A1", "A2", "A3", "A4"]
    assert [c.kind for c in table.schema.columns] == ["category", "number", "boolean", "date", "number"]
    assert table.schema["crp [mg/l]"].unit == "mg/l"
    assert table.notes[0] == "separator semicolon, decimal mark ',', encoding utf-8-sig"
    assert any("'>15' are read as their number" in note for note in table.notes)
    frame = table.frame()
    assert frame["sex"].tolist()[:2] == ["male", "female"]


def test_marks_are_configurable(write):
    path = write("a,b,y\n>3,none,0\n2,unk,1\n5,x,1\n")
    plain = read_table(path, "y")
    assert plain.X[:, 0].tolist() == [3, 2, 5]
    assert plain.schema["b"].categories == ("unk", "x")
    assert np.isnan(read_table(path, "y", limits="missing").X[0, 0])
    with pytest.raises(TableError, match="'>3' is not a number"):
        read_table(path, "y", limits="error")
    assert read_table(path, "y", missing=["unk"]).schema["b"].categories == ("x",)
    assert read_table(path, "y", not_missing=["none"]).schema["b"].categories == ("none", "unk", "x")
    assert read_table(path, "y", types={"a": "category"}).schema["a"].categories == ("2", ">3", "5")


def test_what_is_given_is_not_looked_for(write):
    path = write("a;b\n1,5;2\n".encode("utf-16"))
    assert read_table(path).X.tolist() == [[1.5, 2]]
    path = write("name,a\nMüller,1\nMüller,2\n", encoding="cp1252")
    assert read_table(path).schema["name"].categories == ("Müller",)
    assert "cp1252" in read_table(path).notes[0]
    path = write("a;b\n1,500;2\n")
    assert read_table(path, decimal=".").X.tolist() == [[1500, 2]]
    assert read_table(write("a:b\n1:2\n"), sep=":").X.tolist() == [[1, 2]]


def test_gzip_parquet_and_text_give_the_same_table(write, tmp_path):
    text = "id,sex,when,n,y\n" + "".join(f"r{i},{'mf'[i % 2]},2024-01-{i + 1:02},{i / 4},{i % 3}\n" for i in range(20))
    tables = [
        read_table(write(text), "y", id="id"),
        read_table(write(gzip.compress(text.encode()), "t.csv.gz"), "y", id="id"),
    ]
    tables.append(read_table(write(text.replace(",", "\t"), "t.tsv"), "y", id="id"))
    frame = pa.csv.read_csv(io.BytesIO(text.encode()))
    pa.parquet.write_table(frame, tmp_path / "t.parquet")
    tables.append(read_table(tmp_path / "t.parquet", "y", id="id"))
    for table in tables[1:]:
        np.testing.assert_array_equal(table.X, tables[0].X)
        assert table.y.tolist() == tables[0].y.tolist()
        assert table.ids.tolist() == tables[0].ids.tolist()
        assert table.schema.categories == tables[0].schema.categories


def test_excel_without_its_library_says_what_to_install(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match=r"pip install 'miserly\[excel\]'\. Or save the sheet as CSV"):
        read_table(write(b"PK", "t.xlsx"))


def test_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["a", "when", "b", "y"], [1.5, pd.Timestamp("2024-01-02"), True, "no"], [None, None, False, "yes"]):
        book.active.append(row)
    book.create_sheet("second").append(["c", "y"])
    book["second"].append([0.1, "no"])
    book["second"].append([3, "yes"])
    book.save(tmp_path / "t.xlsx")
    table = read_table(tmp_path / "t.xlsx", "y")
    np.testing.assert_array_equal(table.X, [[1.5, 19724, 1], [np.nan, np.nan, 0]])
    assert (table.features, table.y.tolist()) == (("a", "when", "b"), ["no", "yes"])
    second = read_table(tmp_path / "t.xlsx", "y", sheet="second")
    np.testing.assert_array_equal(second.X, [[0.1], [3.0]])
    with pytest.raises(ValueError, match=r"has no sheet 'third'\. It has: Sheet, second"):
        read_table(tmp_path / "t.xlsx", "y", sheet="third")


@pytest.mark.parametrize("content", [b"PK", b"", b"a,b\n1,2\n", b"\xd0\xcf\x11\xe0" + bytes(600)])
def test_what_is_no_excel_file_is_named(write, content):
    pytest.importorskip("openpyxl")
    with pytest.raises(ValueError, match=r"t\.xlsx' is not an Excel file of the kind \.xlsx, or is damaged"):
        read_table(write(content, "t.xlsx"))


def test_a_small_excel_file_does_not_unpack_to_much(tmp_path):
    pytest.importorskip("openpyxl")
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", bytes(100 << 20))
    with pytest.raises(ValueError, match="unpacks to more than 200 times its size"):
        read_table(tmp_path / "t.xlsx")


def test_all_problems_of_a_file_are_in_one_report(write):
    lines = ["id,a,b,name,y", *(f"{i},{i / 8},x,N{i},{i % 2}" for i in range(100))]
    lines[5] = "4,hgih,x,N4,0"
    lines[7] = "6,1,x"
    lines[9] = "8,1,x,N8,"
    with pytest.raises(TableError) as caught:
        read_table(write("\n".join(lines)), "Y", drop=["bb"])
    text = str(caught.value)
    for part in (
        "line 6, column 'a': 'hgih' is not a number. Correct it, or read it as a missing value (--missing hgih)",
        "line 8: 3 cells, the header has 5. Add the missing cells.",
        "There is no column 'Y' for the label. Did you mean 'y'?",
        "There is no column 'bb' to leave out. Did you mean 'b'?",
        "column 'name': 99 different words in 99 rows look like an identifier or free text. Give --id name or --drop",
    ):
        assert part in text, text
    with pytest.raises(TableError, match="line 7: The label 'y' is missing"):
        read_table(write("\n".join(lines[:5] + lines[8:])), "y", drop=["name"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The file is empty. The first line must name the columns."),
        ("a,b\n", "It has a header but no rows"),
        ("a,a\n1,2\n", "Two columns are called 'a'. Give each its own name."),
        ("1,2\n3,4\n", "all of these are numbers. Add a first line with names."),
        ("a,,b\n1,2,3\n", "Column 2 has no name"),
        (
            "Report of 2024\na,b,c\n1,2,3\n4,5,6\n",
            "1 names, but most lines have 3 cells. Remove lines before the header",
        ),
        ('a,b\n1,"2\n3,4\n', "Close the quotes there"),
        ("a,b\n1,\0\n", "it holds a NUL character"),
    ],
)
def test_a_file_that_is_no_table_is_refused_with_the_remedy(write, text, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        read_table(write(text))


def test_small_slips_of_writers_are_forgiven(write):
    assert read_table(write("a,b,\n1,2,\n3,4,\n")).features == ("a", "b")
    assert read_table(write("a,b\n1,2,\n3,4,\n")).features == ("a", "b")
    table = read_table(write(",a,b\n0,1,2\n1,3,4\n"))
    assert (table.features, table.X.tolist()) == (("a", "b"), [[1, 2], [3, 4]])
    assert read_table(write("a , b\n 1, 2\n\n3 ,4\n")).X.tolist() == [[1, 2], [3, 4]]


def test_a_plans_schema_reads_other_files(write):
    schema = read_table(write(MESSY), "died", id="patient", drop=["admitted", "score"]).schema
    other = write("more,smoker,sex,crp [mg/l]\n1,yes,female,1.25\n2,no,divers,<2\n", "other.csv")
    table = read_table(other, schema=schema)
    np.testing.assert_array_equal(table.X, [[0, 1.25, 1], [np.nan, 2, 0]])
    assert any("1 column that is not read is ignored: 'more'" in note for note in table.notes)
    assert any("'divers' in 1 rows is new and counts as missing" in note for note in table.notes)
    with pytest.raises(TableError, match=r"There is no column 'sex', which the model reads\. Did you mean 'Sex'"):
        read_table(write("smoker,Sex,crp [mg/l]\n1,f,2\n", "lost.csv"), schema=schema)


def test_large_files_by_pyarrow_are_the_same_and_slips_have_their_line(write, monkeypatch):
    rng = np.random.default_rng(0)
    lines = [
        f"{a!r},{'xyz'[i % 3]},{'' if i % 7 == 0 else i},{i % 2}" for i, a in enumerate(rng.normal(size=3000).tolist())
    ]
    path = write("a,b,c,y\n" + "\n".join(lines) + "\n")
    slow = read_table(path, "y")
    monkeypatch.setattr(_fast_text, "FROM_BYTES", 0)
    quick = read_table(path, "y")
    np.testing.assert_array_equal(quick.X, slow.X)
    assert quick.y.tolist() == slow.y.tolist()
    assert quick.schema == slow.schema
    lines[2500] = "oops,x,1,0"
    with pytest.raises(TableError, match="line 2502, column 'a': 'oops' is not a number"):
        read_table(write("a,b,c,y\n" + "\n".join(lines) + "\n"), "y")


# ---- against pandas and pyarrow, the dialect given to all -------------------------------------------------------

NUMBERS = st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e9, 1e9, allow_nan=False))
WORDS = st.text("abcdäß ,;\t|'", min_size=1, max_size=6).map(str.strip).filter(lambda w: CellRules().number(w) is None)
CELLS = st.one_of(NUMBERS.map(repr), st.just(""), st.just("NA"))


def as_text(rows, separator, quote='"'):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=separator, quotechar=quote, lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
    writer.writerows(rows)
    return file.getvalue()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(CELLS, CELLS, WORDS), min_size=1, max_size=12),
    st.sampled_from([",", ";", "\t", "|"]),
    st.booleans(),
)
def test_values_are_those_of_pandas_and_pyarrow(tmp_path_factory, rows, separator, crlf):
    text = as_text([("a", "b", "w"), *rows], separator)
    path = tmp_path_factory.mktemp("t") / "t.csv"
    path.write_bytes((text.replace("\n", "\r\n") if crlf else text).encode())
    table = read_table(path, sep=separator, quote='"', decimal=".", drop=["w"])
    frame = pd.read_csv(path, sep=separator, na_values=["NA"], dtype={"w": str}, skipinitialspace=False)
    np.testing.assert_array_equal(table.X, frame[["a", "b"]].to_numpy(float))
    options = pa.csv.ConvertOptions(column_types={"a": pa.float64(), "b": pa.float64(), "w": pa.string()})
    arrow = pa.csv.read_csv(path, parse_options=pa.csv.ParseOptions(delimiter=separator), convert_options=options)
    np.testing.assert_array_equal(table.X, np.column_stack([arrow["a"].to_numpy(), arrow["b"].to_numpy()]))
    words = read_table(path, sep=separator, quote='"', decimal=".", drop=["a", "b"], types={"w": "category"})
    known = words.schema["w"].categories
    assert [known[int(v)] for v in words.X[:, 0]] == [w.strip() for w in frame["w"]]


# ---- dialects ---------------------------------------------------------------------------------------------------


def generated(seed):
    """A random table in a random dialect: its bytes, and what the dialect is."""
    rng = np.random.default_rng(seed)
    separator = list(SEPARATORS)[rng.integers(len(SEPARATORS))]
    decimal = "," if separator != "," and rng.random() < 0.5 else "."
    quote = "'" if rng.random() < 0.15 else '"'
    n_rows, n_columns = int(rng.integers(4, 40)), int(rng.integers(2, 9))
    words = ["male", "female", "stage 2", "n/a", "Zürich", "a b c", "left (low)"]
    if quote == '"' or rng.random() < 0.5:
        words += [f"x{separator} y"]
    kinds = ["decimal", *rng.choice(["number", "decimal", "word", "date", "limit", "gone"], n_columns - 1)]

    def cell(kind):
        if kind == "number":
            return str(rng.integers(0, 500))
        if kind == "decimal":
            return f"{rng.normal(10, 30):.{rng.integers(1, 3)}f}".replace(".", decimal)
        if kind == "limit":
            return f">{rng.integers(1, 99)}" if rng.random() < 0.3 else f"{rng.random():.2f}".replace(".", decimal)
        if kind == "date":
            return str(np.datetime64("2024-01-01") + rng.integers(900))
        return str(rng.choice(words)) if kind == "word" or rng.random() < 0.5 else ""

    rows = [[f"col{j} {'xyz'[j % 3]}" for j in range(n_columns)], *([cell(k) for k in kinds] for _ in range(n_rows))]
    encoding = ["utf-8", "utf-8-sig", "cp1252", "utf-16"][rng.integers(4)]
    text = as_text(rows, separator, quote)
    is_quoted = f"{quote}x{separator}" in text
    return text, encoding, separator, decimal, quote if is_quoted else None


def check_dialect(seed, folder):
    text, encoding, separator, decimal, quote = generated(seed)
    found = find_dialect(text, "utf-8")
    assert (found.separator, found.decimal) == (separator, decimal), f"seed {seed}\n{text[:400]}"
    assert quote in (None, found.quote), f"seed {seed}\n{text[:400]}"
    path = folder / f"{seed}.csv"
    path.write_bytes(text.replace("\n", "\r\n" if seed % 2 else "\n").encode(encoding))
    table = read_table(path)
    n_rows = sum(1 for _ in csv.reader(io.StringIO(text))) - 1 if quote is None else len(table.X)
    assert len(table.X) == n_rows


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_dialects_are_found(first, tmp_path):
    for seed in range(first, first + 20):
        check_dialect(seed, tmp_path)


@pytest.mark.slow
def test_dialects_of_500_files_are_found(tmp_path):
    for seed in range(500):
        check_dialect(seed, tmp_path)


# ---- splits -----------------------------------------------------------------------------------------------------


def test_splits_by_label_group_and_time(write):
    rng = np.random.default_rng(1)
    rows = [
        (i % 60, f"2024-{1 + i // 20:02}-01", repr(rng.random()), "yes" if i % 10 == 0 else "no") for i in range(200)
    ]
    path = write("who,when,x,y\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    plain = read_table(path, "y", drop=["who", "when"])
    train, held = split_table(plain)
    assert (len(train.X), len(held.X)) == (150, 50)
    assert (held.y == "yes").sum() == 5
    again = split_table(plain)[1]
    np.testing.assert_array_equal(held.X, again.X)
    assert not np.array_equal(split_table(plain, seed=1)[1].X, held.X)
    train, held = split_table(read_table(path, "y", group="who", drop=["when"]))
    assert not set(train.groups) & set(held.groups)
    assert 30 <= len(held.X) <= 70
    train, held = split_table(read_table(path, "y", time="when", drop=["who"]))
    assert train.times.max() < held.times.min()
    assert 40 <= len(held.X) <= 60
    with pytest.raises(ValueError, match="one part is empty"):
        split_table(plain.take(np.arange(1)))


def test_written_tables_come_back(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 2))
    write_csv(tmp_path / "t.csv", ["a", "b"], list(X.T))
    table = read_table(tmp_path / "t.csv")
    np.testing.assert_array_equal(table.X, X)
    assert table.schema == Schema.of_names(["a", "b"])


def test_words_that_a_spreadsheet_would_compute_are_quoted():
    words = ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "\tx", "-", "+", "-1.5", "plain", "a=b"]
    file = io.StringIO()
    write_csv(file, ["=a", "n"], [words, np.arange(10) - 5.0], escape_formulas=True)
    rows = list(csv.reader(io.StringIO(file.getvalue())))
    assert rows[0] == ["'=a", "n"]
    assert [row[0] for row in rows[1:]] == [f"'{word}" for word in words[:5]] + words[5:]
    assert [float(row[1]) for row in rows[1:]] == (np.arange(10) - 5.0).tolist()
    plain = io.StringIO()
    write_csv(plain, ["a"], [words])
    assert [row[0] for row in csv.reader(io.StringIO(plain.getvalue()))][1:] == words
