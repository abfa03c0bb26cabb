"""Data larger than memory: the same bins, the same trees; a killed pass goes on; damage is told."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import miserly as ms
from miserly.boosting import BinnedFileError, bin_data
from miserly.boosting import _binned_dataset as binned_dataset
from miserly.boosting import _binning as binning
from miserly.datasets import CsvStream, LetorStream, ParquetStream, write_csv
from miserly.datasets import _streams as streams

N_FEATURES = 10


def problem(n_rows=1500, seed=0, dtype=np.float32):
    """Columns of many and of few values, some missing; queries of five."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_FEATURES)).astype(dtype)
    X[:, 3] = np.round(X[:, 3])
    score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 4]) + X[:, 3] + 0.3 * rng.normal(size=n_rows)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, score.astype(float), np.arange(n_rows) // 5


def costs():
    """Two features share an acquisition."""
    needs = {f"x{f}": (f"own {f}", f"group {f // 2}") for f in range(N_FEATURES)}
    prices = {f"own {f}": 0.2 for f in range(N_FEATURES)} | {f"group {g}": 1.0 for g in range(N_FEATURES // 2)}
    return ms.CostTable(tuple(needs), needs, prices)


def frame(X, y, qid=None):
    columns = {f"x{f}": column for f, column in enumerate(X.T)} | {"y": y}
    return pd.DataFrame(columns | ({} if qid is None else {"q": qid}))


def write_parquet(folder, table, borders=(0, 400, 900, None), row_group_size=170):
    paths = []
    for i, (a, b) in enumerate(pairwise(borders)):
        paths.append(folder / f"part{i}.parquet")
        part = pa.Table.from_pandas(table.iloc[a:b], preserve_index=False)
        pq.write_table(part, paths[-1], row_group_size=row_group_size)
    return paths


def same_plan(a, b):
    assert a == b
    assert [node.gain for node in a.nodes] == [node.gain for node in b.nodes]
    assert json.dumps(a.notes) == json.dumps(b.notes)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of 64 rows, a sample of 300: several blocks, several rounds of the sample."""
    monkeypatch.setattr(streams.RowStream, "rows_at_once", 64)
    monkeypatch.setattr(binned_dataset, "SAMPLE", 300)
    monkeypatch.setattr(binned_dataset, "DECODED_CELLS", 100 * N_FEATURES)


def in_memory(X):
    return bin_data(X, sample=300)


def equal_bins(a, b):
    assert np.array_equal(a.words, b.words)
    assert np.array_equal(a.cuts, b.cuts)
    assert np.array_equal(a.n_bins, b.n_bins)


def test_bins_of_parquet_are_those_of_memory(tmp_path):
    X, y, qid = problem()
    paths = write_parquet(tmp_path, frame(X, y, qid))
    data = ms.BinnedDataset.from_parquet(paths, tmp_path / "bins", label="y", qid="q")
    equal_bins(data.data, in_memory(X))
    assert np.array_equal(data.y, y)
    assert np.array_equal(data.qid, qid)
    assert data.features == tuple(f"x{f}" for f in range(N_FEATURES))
    assert data.shape == X.shape
    equal_bins(ms.BinnedDataset(tmp_path / "bins").data, data.data)


def test_bins_of_csv_and_letor_are_those_of_memory(tmp_path):
    X, y, qid = problem(300)
    X, y = np.nan_to_num(X).astype(np.float64), np.round(y)
    write_csv(tmp_path / "a.csv", [*(f"x{f}" for f in range(N_FEATURES)), "y"], [*X[:200].T, y[:200]])
    write_csv(tmp_path / "b.csv", [*(f"x{f}" for f in range(N_FEATURES)), "y"], [*X[200:].T, y[200:]])
    data = ms.BinnedDataset.from_csv([tmp_path / "a.csv", tmp_path / "b.csv"], label="y")
    equal_bins(data.data, in_memory(X))
    assert data.folder == tmp_path / "a.csv.bins"
    assert np.array_equal(data.y, y)
    lines = (
        f"{label:g} qid:{q} " + " ".join(f"{f + 1}:{v!r}" for f, v in enumerate(row.tolist()) if v)
        for row, label, q in zip(X, y, qid)
    )
    (tmp_path / "c.txt").write_text("\n".join(lines) + "\n")
    data = ms.BinnedDataset.from_letor(tmp_path / "c.txt", tmp_path / "letor")
    equal_bins(data.data, in_memory(X.astype(np.float32)))
    assert np.array_equal(data.qid, qid)


@pytest.mark.parametrize("charge", ["learner", "path"])
@pytest.mark.parametrize("kind", ["regressor", "classifier", "ranker"])
def test_models_are_those_of_memory(tmp_path, kind, charge):
    X, score, qid = problem()
    y = score if kind == "regressor" else np.digitize(score, [-1, 1])
    paths = write_parquet(tmp_path, frame(X, y, qid))
    data = ms.BinnedDataset.from_parquet(paths, tmp_path / "bins", label="y", qid="q")
    more = {"qid": qid} if kind == "ranker" else {}
    options = {"charge": charge} | ({"loss": "lambdarank"} if kind == "ranker" else {})
    make = getattr(ms, f"GreedyMiser{kind.title()}")
    model = make(costs(), 1e-3, n_estimators=8, **options)
    table = frame(X, y)[list(data.features)]
    here = model.fit(table, y, binned=in_memory(X), **more)
    plan, answers, paid = here.plan_, here.predict(table), here.predict_cost(table)
    there = make(costs(), 1e-3, n_estimators=8, **options).fit(data, data.y, **more)
    same_plan(plan, there.plan_)
    assert np.array_equal(there.predict(data), answers)
    assert np.array_equal(there.predict(ParquetStream(paths, "y", "q")), answers)
    assert np.array_equal(there.predict_cost(data), paid)
    assert any(s.bought for r in there._boosted.rounds for t in r.trees for s in t.splits)
    half = make(costs(), 1e-3, n_estimators=4, warm_start=True, **options).fit(data, data.y, **more)
    same_plan(half.set_params(n_estimators=8).fit(data, data.y, **more).plan_, plan)


def test_validation_data_lie_in_the_bins_of_the_training_data(tmp_path):
    X, y, _ = problem()
    Xv, yv, _ = problem(700, seed=1)
    train, valid = tmp_path / "train.parquet", tmp_path / "valid.parquet"
    frame(X, y).to_parquet(train)
    frame(Xv, yv).to_parquet(valid)
    data = ms.BinnedDataset.from_parquet(train, label="y")
    held_out = ms.BinnedDataset.from_parquet(valid, label="y", like=data)
    options = {"n_estimators": 30, "learning_rate": 0.5, "n_iter_no_change": 3}
    table = frame(X, y)[list(data.features)]
    one = ms.GreedyMiserRegressor(costs(), 1e-3, **options).fit(data, data.y, eval_set=(held_out, held_out.y))
    other = ms.GreedyMiserRegressor(costs(), 1e-3, **options)
    other.fit(table, y, binned=in_memory(X), eval_set=(frame(Xv, yv)[list(data.features)], yv))
    same_plan(one.plan_, other.plan_)
    assert one.validation_loss_ == other.validation_loss_
    assert np.array_equal(one.predict(held_out), one.predict(frame(Xv, yv)[list(data.features)]))
    own = ms.BinnedDataset.from_parquet(valid, tmp_path / "own", label="y")
    with pytest.raises(ValueError, match="no border of these bins"):
        one.predict(own)


@pytest.mark.parametrize("when", ["first pass", "second pass", "mid-line"])
def test_a_killed_pass_goes_on(tmp_path, monkeypatch, when):
    X, y, _ = problem()
    paths = write_parquet(tmp_path, frame(X, y))
    folder = tmp_path / "bins"
    if when == "first pass":
        original = ParquetStream.after
        monkeypatch.setattr(ParquetStream, "after", killed_after(original, 5))
    else:
        monkeypatch.setattr(binned_dataset, "encode_rows", killed_after_calls(binning.encode_rows, 7))
    with pytest.raises(KeyboardInterrupt):
        ms.BinnedDataset.from_parquet(paths, folder, label="y")
    with pytest.raises(BinnedFileError, match=r"header\.json"):
        ms.BinnedDataset(folder)
    if when == "first pass":
        monkeypatch.setattr(ParquetStream, "after", original)
    else:
        monkeypatch.setattr(binned_dataset, "encode_rows", counted := killed_after_calls(binning.encode_rows, 10**9))
    if when == "mid-line":
        note = folder / "blocks.jsonl"
        note.write_text(note.read_text()[:-3])
    data = ms.BinnedDataset.from_parquet(paths, folder, label="y")
    equal_bins(data.data, in_memory(X))
    if when != "first pass":
        n_blocks = -(-len(X) // 64)
        assert counted.calls == n_blocks - (7 if when == "second pass" else 6)


def killed_after(after, n):
    def stopped(self, n_rows):
        for i, block in enumerate(after(self, n_rows)):
            if i == n:
                raise KeyboardInterrupt
            yield block

    return stopped


def killed_after_calls(function, n):
    def counted(*arguments):
        if counted.calls == n:
            raise KeyboardInterrupt
        counted.calls += 1
        return function(*arguments)

    counted.calls = 0
    return counted


@pytest.mark.parametrize("name", ["words", "cuts.npy", "y.npy", "header.json"])
def test_damage_is_told(tmp_path, name):
    X, y, _ = problem(200)
    frame(X, y).to_parquet(tmp_path / "a.parquet")
    ms.BinnedDataset.from_parquet(tmp_path / "a.parquet", tmp_path / "bins", label="y")
    place = tmp_path / "bins" / name
    content = bytearray(place.read_bytes())
    content[len(content) // 2] ^= 4
    place.write_bytes(content)
    with pytest.raises(BinnedFileError):
        ms.BinnedDataset(tmp_path / "bins")
    place.write_bytes(content[: len(content) // 2])
    with pytest.raises(BinnedFileError):
        ms.BinnedDataset(tmp_path / "bins")


def test_bad_input_is_refused(tmp_path):
    X, y, _ = problem(100)
    table = frame(X, y)
    table.to_parquet(tmp_path / "a.parquet")
    table.rename(columns={"x3": "other"}).to_parquet(tmp_path / "b.parquet")
    table.astype({"x3": np.float64}).to_parquet(tmp_path / "c.parquet")
    table.assign(x1=np.inf).to_parquet(tmp_path / "d.parquet")
    (tmp_path / "e.parquet").write_text("no")
    make = ms.BinnedDataset.from_parquet
    with pytest.raises(ValueError, match="'other' where the other has 'x3'"):
        make([tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "bins", label="y")
    with pytest.raises(ValueError, match="'x3' is double, there float"):
        make([tmp_path / "a.parquet", tmp_path / "c.parquet"], tmp_path / "bins", label="y")
    with pytest.raises(ValueError, match="'x1' holds infinity"):
        make(tmp_path / "d.parquet", tmp_path / "bins", label="y")
    with pytest.raises(ValueError, match="not a Parquet file"):
        make(tmp_path / "e.parquet", tmp_path / "bins", label="y")
    with pytest.raises(FileNotFoundError):
        make(tmp_path / "f.parquet", tmp_path / "bins", label="y")
    with pytest.raises(ValueError, match="no column 'z'"):
        make(tmp_path / "a.parquet", tmp_path / "bins", label="z")
    data = make(tmp_path / "a.parquet", tmp_path / "bins", label="y")
    with pytest.raises(BinnedFileError, match="other files or settings"):
        make(tmp_path / "a.parquet", tmp_path / "bins", label="y", max_bins=10)
    with pytest.raises(ValueError, match="at most 255 bins, max_bins is 10"):
        ms.GreedyMiserRegressor(costs(), max_bins=10).fit(data, data.y)
    with pytest.raises(ValueError, match="Give one label per row"):
        ms.GreedyMiserRegressor(costs()).fit(data, data.y[:-1])


def test_streams_give_the_rows_in_order_from_any_block(tmp_path):
    X, y, qid = problem(1000)
    paths = write_parquet(tmp_path, frame(X, y, qid), (0, 10, 500, None))
    write_csv(tmp_path / "a.csv", [f"x{f}" for f in range(N_FEATURES)], X.T)
    for stream in (ParquetStream(paths, "y", "q"), CsvStream(tmp_path / "a.csv")):
        for skip in (0, 64, 640, 960):
            blocks = list(stream.after(skip))
            assert [len(block.X) for block in blocks[:-1]] == [64] * (len(blocks) - 1)
            assert np.array_equal(np.concatenate([b.X for b in blocks]), X[skip:], equal_nan=True)
    (tmp_path / "b.txt").write_text("1 qid:3 1:2\n0 qid:3 3:1\n")
    assert [block.X.tolist() for block in LetorStream(tmp_path / "b.txt")] == [[[2, 0, 0], [0, 0, 1]]]


def test_notes_of_blocks_are_never_taken_back(tmp_path, monkeypatch):
    """A pass that went on took all notes away until its first block was done: killed before, it began anew."""
    X, y, _ = problem()
    paths, folder = write_parquet(tmp_path, frame(X, y)), tmp_path / "bins"
    monkeypatch.setattr(binned_dataset, "encode_rows", killed_after_calls(binning.encode_rows, 7))
    with pytest.raises(KeyboardInterrupt):
        ms.BinnedDataset.from_parquet(paths, folder, label="y")
    before, seen = (folder / "blocks.jsonl").read_text(), []

    def looked_at(*arguments):
        seen.append((folder / "blocks.jsonl").read_text())
        return binning.encode_rows(*arguments)

    monkeypatch.setattr(binned_dataset, "encode_rows", looked_at)
    ms.BinnedDataset.from_parquet(paths, folder, label="y")
    assert before.count("\n") == 7
    assert all(text.startswith(before) for text in seen)


def test_labels_of_a_killed_pass_are_not_those_of_another(tmp_path):
    """A pass that was killed after it had kept its labels left them to one without any."""
    X, y, _ = problem(100)
    frame(X, y).to_parquet(tmp_path / "a.parquet")
    ms.BinnedDataset.from_parquet(tmp_path / "a.parquet", tmp_path / "bins", label="y")
    for name in ("survey.json", "blocks.jsonl", "words", "header.json"):
        (tmp_path / "bins" / name).unlink()
    assert ms.BinnedDataset.from_parquet(tmp_path / "a.parquet", tmp_path / "bins").y is None


def test_constrained_trees_out_of_core_are_those_of_memory(tmp_path):
    X, y, qid = problem()
    data = ms.BinnedDataset.from_parquet(
        write_parquet(tmp_path, frame(X, y, qid)), tmp_path / "bins", label="y", qid="q"
    )
    costs = ms.CostTable.uniform()
    signs = [1, -1] + [0] * (N_FEATURES - 2)
    model = ms.GreedyMiserRegressor(costs, n_estimators=8, monotonic_cst=signs, interaction_cst=[[0, 1, 2]])
    here, there = (
        model.fit(X, y, binned=in_memory(X)).plan_,
        ms.GreedyMiserRegressor(**model.get_params()).fit(data, data.y).plan_,
    )
    assert here.dictionary == there.dictionary
    assert here.nodes == there.nodes


@pytest.mark.parametrize("how", ["cut", "overwritten"])
def test_a_file_that_changes_while_it_is_mapped_changes_nothing(tmp_path, how):
    """A file cut short under the mapping ended the process with SIGBUS; an overwritten one gave garbage."""
    (tmp_path / "a.csv").write_text("age,y\n" + "".join(f"{i % 97},{i % 3}\n" for i in range(3000)))
    opened = ms.BinnedDataset.from_csv(tmp_path / "a.csv", tmp_path / "bins", label="y")
    before = ms.BinnedDataset(tmp_path / "bins").data.bins
    size = (tmp_path / "bins" / "words").stat().st_size
    with (tmp_path / "bins" / "words").open("r+b") as file:
        file.truncate(0)
        file.write(b"\xff" * (0 if how == "cut" else size))
    assert (opened.data.bins == before).all()
    with pytest.raises(BinnedFileError):
        ms.BinnedDataset(tmp_path / "bins")
