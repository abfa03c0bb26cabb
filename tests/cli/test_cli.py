"""The command line from an empty folder: the whole way, and the likeliest mistakes."""

import json
import subprocess
import sys

import numpy as np
import pytest
from command import miserly

import miserly as ms


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("user")
    miserly("data", "four_quadrants", "-n", 400, cwd=path)
    return path


TRAIN = ("--costs", "costs.toml", "--label", "label", "--n-estimators", 20, "--method", "greedy-miser")


def test_the_whole_way(folder):
    out = miserly("fit", "train.csv", "--tradeoff", "0.001", "-o", "a.plan", *TRAIN, cwd=folder)
    assert "Saved a.plan" in out
    assert "buys" in out
    printed = json.loads(miserly("explain", "a.plan", "--json", cwd=folder))
    assert printed["notes"]["estimator"] == "GreedyMiserRegressor"
    bought = [name for line in printed["purchases"] for name in line["buys"]]
    assert "What it buys" in miserly("explain", "a.plan", cwd=folder)
    assert miserly("explain", "a.plan", "--dot", cwd=folder).startswith("digraph")
    rows = json.loads(miserly("predict", "a.plan", "test.csv", "--label", "label", "--json", cwd=folder))
    assert len(rows) == 80
    assert rows[0]["cost"] == printed["purchases"][-1]["total"]
    assert len(bought) == len(set(bought))
    printed = miserly("predict", "a.plan", "test.csv", "--label", "label", "--budget", "5", cwd=folder)
    assert printed.splitlines()[0] == "prediction,cost,stopped"
    assert all(line.endswith("budget") for line in printed.splitlines()[1:])


def test_as_a_process(folder):
    command = [sys.executable, "-c", "from miserly.cli import main; main()", "explain"]
    done = subprocess.run([*command, "train.csv"], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr


def test_charged_by_path_a_row_pays_for_its_own_way(folder):
    """Two signs say which of the four expensive features a row needs: 12 of the 42 that all cost."""
    how = ("--charge", "path", "--subsample", "0.8", "--tradeoff", "0.01", "--learning-rate", "0.5", *TRAIN)
    miserly("fit", "train.csv", "-o", "path.plan", *how, cwd=folder)
    rows = json.loads(miserly("predict", "path.plan", "test.csv", "--label", "label", "--json", cwd=folder))
    paid = [row["cost"] for row in rows]
    assert sum(paid) / len(paid) < 15
    assert "by path" in miserly("explain", "path.plan", cwd=folder)


def test_the_frontier_writes_a_table_a_picture_and_plans(folder):
    args = ("--grid", "1e-3:10:4", "--test", "test.csv", "--budget", "25", "--json", "--out", "sweep")
    result = json.loads(miserly("frontier", "train.csv", "validation.csv", *args, *TRAIN, cwd=folder))
    assert len(result["points"]) == 5  # the constant, four models
    assert result["complete"]
    assert (folder / "sweep/frontier.png").stat().st_size > 10_000
    assert len(list((folder / "sweep/plans").glob("*.plan"))) == 5
    assert (folder / "sweep/chosen.plan").exists()


def test_a_frontier_in_processes_that_goes_on_in_its_store(folder):
    grid = ("--grid", "1e-3:10:2", "--refine", 1)
    args = ("frontier", "train.csv", "validation.csv", *grid, "--store", "kept", "--json", *TRAIN)
    first = json.loads(miserly(*args, "--jobs", 2, "--out", "one", cwd=folder))
    again = json.loads(miserly(*args, "--out", "two", cwd=folder))
    assert first == again
    for number in range(3):
        name = f"plans/{number:03d}.plan"
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes()
    assert len(list((folder / "kept").iterdir())) == 7
    printed = miserly(*args, "--max-depth", 2, cwd=folder, code=1)
    assert "max_depth=3 there, 2 here. Use another folder" in printed
    assert "number of processes" in miserly(*args, "--jobs", 0, cwd=folder, code=1)


def test_ranking_from_letor_files(folder):
    from miserly.datasets import yahoo_like

    for name, seed in (("train", 0), ("validation", 1)):
        data = yahoo_like(20, seed)
        lines = (
            f"{y} qid:{q} " + " ".join(f"{i + 1}:{v:.4f}" for i, v in enumerate(row[:30]))
            for y, q, row in zip(data.y, data.qid, data.X)
        )
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    (folder / "letor.csv").write_text("feature,cost\n" + "".join(f"{i + 1},{i % 3 + 1}\n" for i in range(30)))
    args = ("--costs", "letor.csv", "--n-estimators", 20, "--json")
    printed = json.loads(
        miserly(
            "fit", "train.txt", "--validation", "validation.txt", "--patience", 5, *args, "-o", "r.plan", cwd=folder
        )
    )
    assert printed["plan"] == "r.plan"
    notes = json.loads(miserly("explain", "r.plan", "--json", cwd=folder))["notes"]
    assert notes["estimator"] == "GreedyMiserRanker"
    args = (*args, "--method", "greedy-miser", "--metric", "ndcg@5", "--grid", "1e-4:1e-2:2", "--out", "ranks")
    swept = json.loads(miserly("frontier", "train.txt", "validation.txt", *args, cwd=folder))
    assert len(swept["points"]) == 3  # the constant, two models
    answers = json.loads(miserly("predict", "r.plan", "validation.txt", "--json", cwd=folder))
    assert len(answers) > 100

    # Prices under names of their own are those of the columns in their order, also where a file lacks the last one.
    (folder / "named.csv").write_text("feature,cost\n" + "".join(f"f{i + 1},{i % 3 + 1}\n" for i in range(31)))
    args = ("fit", "train.txt", "--n-estimators", 20, "--json", "-o", "n.plan")
    miserly(*args, "--costs", "named.csv", cwd=folder)
    miserly(*args[:-1], "o.plan", "--costs", "letor.csv", cwd=folder)
    one, other = (
        json.loads(miserly("predict", plan, "validation.txt", "--json", cwd=folder)) for plan in ("n.plan", "o.plan")
    )
    assert one == other
    assert "f1" in miserly("explain", "n.plan", cwd=folder)
    (folder / "few.csv").write_text("feature,cost\na,1\nb,2\n")
    printed = miserly("fit", "train.txt", "--costs", "few.csv", cwd=folder, code=1)
    assert "'train.txt', line 1: expected feature numbers from 1 to 2, got feature 3" in printed


def test_options_from_toml(folder):
    (folder / "run.toml").write_text('costs = "costs.toml"\nlabel = "label"\nn-estimators = 5\ntradeoff = 0.5\n')
    printed = json.loads(miserly("fit", "train.csv", "--config", "run.toml", "--json", "-o", "b.plan", cwd=folder))
    assert printed["rounds"] == 5
    more = ("--config", "run.toml", "--l2-regularization", 1e6, "--json", "-o", "l.plan")
    assert json.loads(miserly("fit", "train.csv", *more, cwd=folder))["train_loss"] > printed["train_loss"]
    (folder / "bad.toml").write_text("tradeof = 0.5\n")
    assert "unknown options: tradeof" in miserly("fit", "train.csv", "--config", "bad.toml", cwd=folder, code=2)


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("fit", "train.csv", "--label", "label"), 2, "--costs"),
        (("fit", "train.csv", "--costs", "costs.toml"), 1, "--label COLUMN"),
        (("fit", "nothing.csv", *TRAIN), 2, "does not exist"),
        (("fit", "train.csv", "--costs", "costs.toml", "--label", "grade"), 1, "no column 'grade'"),
        (("fit", "train.csv", "--costs", "short.csv", "--label", "label"), 1, "column 'z_mm': No price in 'short.csv'"),
        (("fit", "train.csv", "--costs", "negative.csv", "--label", "label"), 1, "not negative"),
        (("fit", "words.csv", "--costs", "costs.toml", "--label", "label"), 1, "line 3, column 'sign_z'"),
        (
            ("fit", "ragged.csv", "--costs", "costs.toml", "--label", "label"),
            1,
            "line 2: 2 cells, the header has 7. Add the missing cells",
        ),
        (("explain", "train.csv"), 1, "not a plan file"),
        (("frontier", "train.csv", "validation.csv", "--grid", "1:2", *TRAIN), 2, "LOW:HIGH:N"),
        (("data", "nonsense"), 1, "no data set 'nonsense'"),
        (("fit", "train.csv", "-o", "no/such/folder.plan", *TRAIN), 2, "does not exist"),
        (("predict", "c.plan", "words.csv", "--label", "label"), 1, "not a number"),
        (("fit", "train.csv", "--patience", "5", *TRAIN), 2, "--validation"),
        (("frontier", "train.csv", "validation.csv", "--budget", "1", "--quality", "1", *TRAIN), 2, "not by both"),
    ],
)
def test_likely_mistakes(folder, args, code, message):
    header, *lines = (folder / "train.csv").read_text().splitlines()
    prices = ["feature,cost", "sign_x,1", "sign_z,1", "z_pp,10", "z_mp,10", "z_pm,10", "z_mm,10"]
    (folder / "short.csv").write_text("\n".join(prices[:-1]))
    (folder / "negative.csv").write_text("\n".join([*prices[:-1], "z_mm,-4"]))
    cells = lines[1].split(",")
    (folder / "words.csv").write_text("\n".join([header, lines[0], ",".join([cells[0], "high", *cells[2:]])]))
    (folder / "ragged.csv").write_text("\n".join([header, "1,2", *lines]))
    if args[1] == "c.plan":
        miserly("fit", "train.csv", "-o", "c.plan", *TRAIN, cwd=folder)
    assert message in miserly(*args, cwd=folder, code=code)


def test_help_is_light(folder):
    code = (
        "import sys; from miserly.cli.main import cli; import miserly\n"
        "try: cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = [m for m in ('numba', 'sklearn', 'numpy', 'matplotlib', 'rich') if m in sys.modules]\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "frontier" in done.stdout


def test_import_saves_a_plan_that_predicts_as_the_model(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    X = np.random.default_rng(0).normal(size=(300, 3))
    data = lightgbm.Dataset(X, X[:, 0] + X[:, 1], feature_name=["age", "crp", "wbc"])
    booster = lightgbm.train({"verbose": -1, "num_threads": 1}, data, 5)
    booster.save_model(tmp_path / "model.txt")
    prices = '[acquisitions]\nvisit = 1\nblood = 5\n[features]\nage = ["visit"]\ncrp = ["blood"]\n'
    (tmp_path / "costs.toml").write_text(prices + 'wbc = ["blood"]\n')
    said = miserly("import", "model.txt", "--costs", "costs.toml", "-o", "m.plan", cwd=tmp_path)
    assert "Saved m.plan" in said
    np.testing.assert_allclose(ms.load_plan(tmp_path / "m.plan").predict(X), booster.predict(X), atol=1e-12)
    (tmp_path / "costs.toml").write_text(prices)
    assert "missing 'wbc'" in miserly("import", "model.txt", "--costs", "costs.toml", cwd=tmp_path, code=1)
    (tmp_path / "model.txt").write_text((tmp_path / "model.txt").read_text()[:500])
    assert "cut off" in miserly("import", "model.txt", "--costs", "costs.toml", cwd=tmp_path, code=1)
