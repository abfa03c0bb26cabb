import gzip
import os
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from miserly.datasets import _letor as letor
from miserly.datasets import read_letor

ROOT = Path(__file__).parents[2]


def written(folder: Path, text: str, name: str = "rank.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def letor_text(X: np.ndarray, y: np.ndarray, qid: np.ndarray, zeros: bool) -> str:
    lines = []
    for row, label, query in zip(X, y, qid):
        features = " ".join(f"{j + 1}:{v}" for j, v in enumerate(row.tolist()) if zeros or v != 0)
        lines.append(f"{label} qid:{query} {features} # row {len(lines)}\n")
    return "".join(lines)


@pytest.fixture
def ranking() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(400, 7)) * 10.0 ** rng.integers(-30, 30, (400, 7))).astype(np.float32)
    X[rng.random(X.shape) < 0.3] = 0
    X[-1, -1] = 1
    return X, rng.integers(0, 5, 400), np.repeat(rng.permutation(40), 10)


@pytest.mark.parametrize("block_bytes", [64, 1 << 20])
@pytest.mark.parametrize("zeros", [True, False])
def test_what_is_written_is_read_back(tmp_path, monkeypatch, ranking, zeros, block_bytes):
    monkeypatch.setattr(letor, "_BLOCK_BYTES", block_bytes)
    X, y, qid = ranking
    table = read_letor(written(tmp_path, letor_text(X, y, qid, zeros)))
    assert table.X.dtype == np.float32
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.y, y)
    np.testing.assert_array_equal(table.qid, qid)
    assert table.y.dtype == table.qid.dtype == np.int64
    assert table.features == tuple("1234567")


def test_gzip_is_seen_by_its_content(tmp_path, ranking):
    text = letor_text(*ranking, zeros=False)
    plain = read_letor(written(tmp_path, text))
    zipped = tmp_path / "no_suffix"
    zipped.write_bytes(gzip.compress(text.encode()))
    np.testing.assert_array_equal(read_letor(zipped).X, plain.X)
    zipped.write_bytes(gzip.compress(text.encode())[:-30])
    with pytest.raises(ValueError, match="no_suffix' is a damaged gzip file"):
        read_letor(zipped)


def test_it_agrees_with_scikit_learn(tmp_path, ranking):
    path = written(tmp_path, letor_text(*ranking, zeros=False))
    X, y, qid = load_svmlight_file(str(path), query_id=True, dtype=np.float32)
    table = read_letor(path)
    np.testing.assert_array_equal(table.X, X.toarray())
    np.testing.assert_array_equal(table.y, y)
    np.testing.assert_array_equal(table.qid, qid)


def test_the_free_parts_of_the_format(tmp_path):
    text = "# a comment: 9:9\r\n\r\n+1\tqid:007 2:.5\t4:-1e-3 #x:y\r\n \n-1.5 qid:7\n0 qid:3 1:nan 3:2."
    table = read_letor(written(tmp_path, text), n_features=5)
    expected = np.array([[0, 0.5, 0, -1e-3, 0], [0, 0, 0, 0, 0], [np.nan, 0, 2, 0, 0]], dtype=np.float32)
    np.testing.assert_array_equal(table.X, expected)
    assert table.y.tolist() == [1, -1.5, 0]
    assert table.qid.tolist() == [7, 7, 3]
    assert table.features == ("1", "2", "3", "4", "5")


@pytest.mark.parametrize("most_digits", [3, 8, 15, 20])
def test_numbers_are_those_of_float_to_the_bit(most_digits):
    rng = np.random.default_rng(most_digits)
    words = ["0", "0.", ".0", "000.100", "7", "-.5", "-3"]
    for _ in range(3000):
        word = "".join(map(str, rng.integers(0, 10, rng.integers(1, most_digits + 1))))
        dot = rng.integers(0, len(word) + 1)
        sign = "-" if rng.random() < 0.3 else ""
        words.append(sign + (word if rng.random() < 0.3 else f"{word[:dot]}.{word[dot:]}"))
    blanks = [" " * n for n in rng.integers(1, 3, len(words))]
    text = "".join(blank + word for blank, word in zip(blanks, words))
    assert letor._numbers(text.encode()).tolist() == [float(word) for word in words]
    assert letor._numbers(f"{text} +1e3 ".encode()).tolist() == [float(word) for word in [*words, "+1e3"]]


def test_a_file_without_queries(tmp_path):
    table = read_letor(written(tmp_path, "1 1:1\n0 2:1\n"))
    assert table.qid is None
    assert table.X.tolist() == [[1, 0], [0, 1]]


GOOD = "1 qid:1 1:1 2:1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "1 qid:1 1:1 4:1\n", "line 2: expected feature numbers from 1 to 3, got feature 4."),
        (GOOD + "1 qid:1 0:1\n", "line 2: expected feature numbers from 1 to 3, got feature 0."),
        (GOOD + "1 qid:1 2:1 1:1\n", "line 2: expected rising feature numbers, got 1 after 2."),
        (GOOD + "\n1 qid:1 2:1 2:1\n", "line 3: expected rising feature numbers, got 2 after 2."),
        (GOOD + "1 1:1\n", "line 2: expected a qid, as on line 1, got none."),
        ("# no\n0 1:1\n" + GOOD, "line 3: expected no qid, as on line 2, got qid:1."),
        (GOOD + "1 qid:1 1:high\n", "line 2: expected a number for feature 1, got 'high'."),
        (GOOD + "1 qid:1 1:1_0\n", "line 2: expected a number for feature 1, got '1_0'."),
        (GOOD + "1 qid:1 1:1-2\n", "line 2: expected a number for feature 1, got '1-2'."),
        (GOOD + "1 qid:1 1:\n", "line 2: expected a number for feature 1, got ''."),
        (GOOD + "1 qid:1 1:inf\n", "line 2: expected a number for feature 1, got 'inf'."),
        (GOOD + "1 qid:1 1:1e39\n", "line 2: expected a float32 number for feature 1, got 1e+39."),
        (GOOD + "good qid:1 1:1\n", "line 2: expected a number as the label, got 'good'."),
        (GOOD + "nan qid:1 1:1\n", "line 2: expected a number as the label, got 'nan'."),
        (GOOD + "1e999 qid:1 1:1\n", "line 2: expected a finite label, got one beyond 1e308."),
        (GOOD + "1 qid:a 1:1\n", "line 2: expected a whole number of up to 18 digits as the qid, got 'a'."),
        (GOOD + "1 1:1 qid:1\n", "line 2: expected the qid once, directly after the label, got 'qid:1'."),
        (GOOD + "1 qid:1 bm25:1\n", "line 2: expected a feature number before ':', got 'bm25:1'."),
        (GOOD + "1 qid:1 1:1 7\n", "line 2: expected feature:value, got '7'."),
        (GOOD + "1 qid:1 1:1\f2:1\n", "line 2: expected 'label qid:ID 1:value 2:value …', parted by blanks"),
        (
            GOOD + GOOD + "1 qid:2 1:1\n" + GOOD,
            "line 4: expected the rows of a query together, got qid:1 again, whose rows ended on line 2.",
        ),
        ("# nothing\n\n", "has no rows"),
    ],
)
@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_errors_name_the_file_the_line_and_both_sides(tmp_path, monkeypatch, text, message, block_bytes):
    monkeypatch.setattr(letor, "_BLOCK_BYTES", block_bytes)
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        read_letor(written(tmp_path, text), n_features=3)
    assert "rank.txt'" in str(error.value)


def test_a_line_that_lists_too_few_features(tmp_path):
    path = written(tmp_path, GOOD + "1 qid:1 2:5\n")
    assert read_letor(path, n_features=2).X.tolist() == [[1, 1], [0, 5]]
    with pytest.raises(ValueError, match="line 2: expected 2 features, got 1: feature 1 is missing"):
        read_letor(path, absent="error")
    with pytest.raises(ValueError, match="line 1: expected 3 features, got 2: feature 3 is missing"):
        read_letor(path, n_features=3, absent="error")
    with pytest.raises(ValueError, match="absent must be"):
        read_letor(path, absent="nan")


def test_a_mistyped_feature_number_does_not_fill_the_memory(tmp_path):
    path = written(tmp_path, GOOD + "1 qid:1 2000000000:5\n")
    with pytest.raises(ValueError, match="line 2 has feature number 2000000000"):
        read_letor(path)
    with pytest.raises(ValueError, match="n_features must be 1 or more, got 0"):
        read_letor(path, n_features=0)
    with pytest.raises(ValueError, match="has no features"):
        read_letor(written(tmp_path, "1 qid:1\n"))


def test_mq2008():
    path = Path(os.environ.get("MISERLY_DATA", ROOT.parent / "shared" / "data")) / "mq2008" / "S1.txt.gz"
    if not path.exists():
        pytest.skip(f"the data set MQ2008 is not at {path}; set MISERLY_DATA to the folder that holds mq2008/")
    table = read_letor(path, n_features=46, absent="error")
    assert table.X.shape == (2933, 46)
    assert len(np.unique(table.qid)) == 157
    assert set(table.y) == {0, 1, 2}
    assert table.qid[0] == 10002
    assert table.X[0, 0] == np.float32(0.007477)
