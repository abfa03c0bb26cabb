"""Files changed at random: the same values as pandas and pyarrow read with the same dialect, or a clear error."""

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest

from miserly.datasets import read_table
from miserly.schema import MISSING

pytestmark = pytest.mark.filterwarnings("ignore:Length of header")
PIECES = [
    b",",
    b";",
    b'"',
    b"\n",
    b"\r\n",
    b"NA",
    b"-",
    b" ",
    b"1e5",
    b"x",
    b".",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\t",
    b"0,5",
]
MARKS = sorted({spell(mark) for mark in MISSING for spell in (str.lower, str.upper)})


def mutated(rng, separator):
    """A small table of numbers with a word column, and up to four random changes of its bytes."""
    rows = [["a", "b", "w"]]
    for _ in range(int(rng.integers(1, 6))):
        numbers = [repr(round(float(v), int(rng.integers(0, 6)))) for v in rng.normal(0, 100, 2)]
        rows.append([*numbers, str(rng.choice(["x", "y z", "", "NA"]))])
    data = bytearray("\n".join(separator.join(row) for row in rows).encode() + b"\n")
    for _ in range(int(rng.integers(0, 5))):
        at = int(rng.integers(0, len(data) + 1))
        if rng.random() < 0.5:
            data[at:at] = PIECES[rng.integers(len(PIECES))]
        else:
            del data[at : at + int(rng.integers(1, 4))]
    return bytes(data)


def peers(data, separator):
    """The numbers of columns a and b by pandas and by pyarrow; None where one refuses the file."""
    found = []
    try:
        frame = pd.read_csv(
            io.BytesIO(data),
            sep=separator,
            na_values=MARKS,
            keep_default_na=False,
            index_col=False,
            encoding="utf-8-sig",
            quotechar='"',
        )
        found.append(frame[["a", "b"]].to_numpy(float) if list(frame.columns) == ["a", "b", "w"] else None)
    except Exception:  # pandas raises many kinds
        found.append(None)
    try:
        frame = pa.csv.read_csv(
            io.BytesIO(data.removeprefix(b"\xef\xbb\xbf")),
            parse_options=pa.csv.ParseOptions(delimiter=separator),
            convert_options=pa.csv.ConvertOptions(
                column_types={"a": pa.float64(), "b": pa.float64(), "w": pa.string()}, null_values=MARKS
            ),
        )
        plain = frame.column_names == ["a", "b", "w"]
        found.append(np.column_stack([frame["a"].to_numpy(), frame["b"].to_numpy()]) if plain else None)
    except pa.ArrowException:
        found.append(None)
    return found


def check(seeds, folder):
    """Read every file; count those that were compared, so that the test cannot pass by refusing all."""
    path, n_same, refusals = folder / "t.csv", 0, []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        separator = ",;"[seed % 2]
        data = mutated(rng, separator)
        path.write_bytes(data)
        try:
            table = read_table(path, sep=separator, decimal=".", quote='"', types={"w": "category"}, limits="error")
        except ValueError as error:
            refusals.append(str(error))
            continue
        if table.features != ("a", "b", "w"):
            continue
        kinds = {column.kind for column in table.schema.columns[:2]}
        for other in peers(data, separator):
            if other is not None and kinds == {"number"}:
                assert other.shape == (len(table.X), 2), f"seed {seed}: {data!r}"
                np.testing.assert_array_equal(table.X[:, :2], other, err_msg=f"seed {seed}: {data!r}")
                n_same += 1
    assert [text for text in refusals if "t.csv" not in text] == []
    return n_same


def test_mutated_files_are_read_as_peers_do_or_refused(tmp_path):
    assert check(range(150), tmp_path) > 60


@pytest.mark.slow
def test_20000_mutated_files(tmp_path):
    assert check(range(20_000), tmp_path) > 8_000
