"""Files in blocks give the bytes that the whole file gives: quotes, encodings, errors, processes, a cluster, memory."""

import csv
import gzip
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import miserly as ms
from miserly.batch import FileBlocks, FileTask, open_output, predict_file
from miserly.cli.main import cli
from miserly.datasets import Roles, TableError, read_table
from miserly.plan import Menu, load_plan

N = 700
WORDS = ["plain", 'with "quotes"', "two\nlines", "a, comma", "ünicode"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("batch")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2)).round(3)
    kinds = rng.integers(0, len(WORDS), N)
    with (where / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "a", "kind", "b", "y"])
        for i in range(N):
            label = "ill" if X[i, 0] + kinds[i] > 1 else "well"
            writer.writerow([f"row {i}", X[i, 0], WORDS[kinds[i]], "" if i % 7 == 0 else X[i, 1], label])
    table = read_table(where / "rows.csv", label="y", id="name")
    costs = ms.CostTable.per_feature({"a": 1.0, "kind": 2.0, "b": 4.0})
    import dataclasses

    plans = []
    for tradeoff in (1e-4, 10.0):
        plan = ms.GreedyMiserClassifier(costs, tradeoff=tradeoff, n_estimators=10).fit(table.X, table.y).plan_
        plans.append(dataclasses.replace(plan, schema=table.schema))
    plans[0].save(where / "a.plan")
    Menu.measured(plans, table.X, lambda p, run: float((p.read(run.z) == table.y).mean())).save(where / "a.menu")
    return where


def streamed(folder, name="rows.csv", model="a.plan", size=3000, **how):
    out = folder / "out.csv"
    task = FileTask((folder / model).read_bytes(), Roles(id="name", drop=("y",)), id_name="name", **how.pop("task", {}))
    with open_output(out, None) as write:
        result = predict_file(task, folder / name, write, size=size, **how)
    return out.read_text(encoding="utf-8"), result


def test_blocks_give_what_the_whole_file_gives(folder):
    whole, alone = streamed(folder, size=1 << 30)
    text, result = streamed(folder)
    assert len(list(FileBlocks(folder / "rows.csv", size=3000))) > 5
    assert text == whole
    assert (result.n_rows, result.n_rows) == (N, alone.n_rows)
    assert result.mean_cost == pytest.approx(alone.mean_cost)
    plan, rows = load_plan(folder / "a.plan"), read_table(folder / "rows.csv", label="y", id="name")
    lines = list(csv.DictReader(text.splitlines()))
    assert [line["prediction"] for line in lines] == plan.predict(rows.X).tolist()
    assert [line["name"] for line in lines] == rows.ids.tolist()


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8-sig"])
def test_encodings_and_gzip(folder, encoding):
    text = (folder / "rows.csv").read_text(encoding="utf-8")
    (folder / "other.csv").write_bytes(text.encode(encoding))
    (folder / "other.csv.gz").write_bytes(gzip.compress(text.encode(encoding)))
    expected = streamed(folder, size=1 << 30)[0]
    assert streamed(folder, "other.csv")[0] == expected
    assert streamed(folder, "other.csv.gz")[0] == expected


def test_semicolons_and_decimal_commas(folder):
    rows = list(csv.reader((folder / "rows.csv").open(newline="", encoding="utf-8")))
    with (folder / "comma.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(rows[0])
        writer.writerows([r[0], r[1].replace(".", ","), r[2], r[3].replace(".", ","), r[4]] for r in rows[1:])
    assert streamed(folder, "comma.csv")[0] == streamed(folder, size=1 << 30)[0]


def test_an_error_names_the_line_of_the_file(folder):
    lines = [f"{i},{i}.5,plain,1.0,ill" for i in range(N)]
    lines[600] = "600,oops,plain,1.0,ill"
    (folder / "bad.csv").write_text("name,a,kind,b,y\n" + "\n".join(lines) + "\n")
    with pytest.raises(TableError, match=r"bad\.csv") as error:
        streamed(folder, "bad.csv")
    assert "line 602" in str(error.value), "the header is line 1"
    assert "oops" in str(error.value)


def test_quotes_that_do_not_pair_are_not_cut(folder):
    lines = [f'{i},{i}.5,5" disk,1.0,ill' if i == 3 else f"{i},{i}.5,plain,1.0,ill" for i in range(N)]
    (folder / "stray.csv").write_text("name,a,kind,b,y\n" + "\n".join(lines) + "\n")
    assert streamed(folder, "stray.csv")[0] == streamed(folder, "stray.csv", size=1 << 30)[0]


def test_parquet_in_and_out(folder):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = read_table(folder / "rows.csv", label="y", id="name")
    kinds = [rows.schema.word("kind", code) for code in rows.X[:, 1]]
    frame = pa.table({"name": rows.ids.tolist(), "a": rows.X[:, 0], "kind": kinds, "b": rows.X[:, 2]})
    pq.write_table(frame, folder / "rows.parquet")
    task = FileTask((folder / "a.plan").read_bytes(), Roles(id="name"), proba=True, id_name="name")
    with open_output(folder / "out.parquet", None) as write:
        result = predict_file(task, folder / "rows.parquet", write)
    found = pq.read_table(folder / "out.parquet")
    assert result.n_rows == found.num_rows == N
    plan = load_plan(folder / "a.plan")
    assert found["prediction"].to_pylist() == plan.predict(rows.X).tolist()
    assert found["p(ill)"].to_pylist() == plan.predict_proba(rows.X)[:, 0].tolist()


def test_processes_and_a_menu_give_the_same(folder):
    task = {"budget": 3.0}
    whole, _ = streamed(folder, model="a.menu", size=1 << 30, task=task)
    assert streamed(folder, model="a.menu", size=5000, task=task, workers=2)[0] == whole


def test_a_cluster_predicts_with_a_menu(folder):
    distributed = pytest.importorskip("distributed")
    whole, _ = streamed(folder, model="a.menu", size=1 << 30)
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as client:
        assert streamed(folder, model="a.menu", size=5000, executor=client)[0] == whole


def test_the_command_writes_a_whole_file_or_none(folder):
    args = ["predict", str(folder / "a.plan"), str(folder / "rows.csv"), "--id", "name", "-o", str(folder / "x.csv")]
    done = CliRunner().invoke(cli, args)
    assert done.exit_code == 0, done.output
    assert f"{N} predictions" in done.output
    assert (folder / "x.csv").read_text(encoding="utf-8") == streamed(folder, size=1 << 30)[0]
    (folder / "gone.csv").write_text("name,a\n1,2\n")
    failed = CliRunner().invoke(cli, [*args[:2], str(folder / "gone.csv"), "-o", str(folder / "y.csv")])
    assert failed.exit_code != 0
    assert not (folder / "y.csv").exists()


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_memory_does_not_grow_with_the_file(folder):
    """A file of eight times the size takes hardly more memory."""
    line = "1,0.25,plain,0.5,ill\n"
    code = (
        "import re, sys; from miserly.cli import main\n"  # getrusage would count the parent of a new process too
        "try: main()\n"
        "finally: print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1], file=sys.stderr)"
    )
    peaks = []
    for n in (500_000, 4_000_000):
        with (folder / "large.csv").open("w") as file:
            file.write("name,a,kind,b,y\n")
            for _ in range(n // 10_000):
                file.write(line * 10_000)
        command = ["predict", str(folder / "a.plan"), str(folder / "large.csv"), "-o", str(folder / "large.out.csv")]
        done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=True)
        peaks.append(int(done.stderr.split()[-1]))
        assert f"{n} predictions" in done.stdout
    assert peaks[1] < 1.2 * peaks[0], peaks
