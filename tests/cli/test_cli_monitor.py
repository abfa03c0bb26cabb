"""`miserly monitor`: silent where all is as promised, with an exit code and plain words where it is not."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from litestar.testing import TestClient

import miserly as ms
from miserly.cli.main import cli
from miserly.plan import load_plan
from miserly.runtime import compare_log, compare_rows
from miserly.serve import create_app

COSTS = ms.CostTable.per_feature({"age": 1.0, "crp": 10.0}, unit="min")


def rows(n, seed, shift=0.0, gone=0.0, noise=0.0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(50, 10, n), rng.gamma(2.0, size=n) + shift])
    y = np.where(X[:, 1] + (X[:, 0] - 50) / 10 + noise * rng.normal(size=n) > 2, "ill", "well")
    X[rng.random(n) < gone, 0] = np.nan
    return X, y


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("monitor")
    model = ms.GreedyMiserClassifier(COSTS, tradeoff=1e-4, n_estimators=30, random_state=0).fit(*rows(2000, 0))
    model.plan_.with_promise(*rows(2000, 1)).save(where / "a.plan")
    return where


def table(folder, name, X, y):
    lines = [",".join(["" if v != v else repr(v) for v in row] + [label]) for row, label in zip(X.tolist(), y)]
    (folder / name).write_text("age,crp,outcome\n" + "\n".join(lines) + "\n")
    return str(folder / name)


def run(folder, records, *args):
    return CliRunner().invoke(cli, ["monitor", str(folder / "a.plan"), records, *args])


@pytest.mark.parametrize("seed", range(2, 12))
def test_rows_as_promised_are_never_called_drift(folder, seed):
    assert not any(f.is_drift for f in compare_rows(load_plan(folder / "a.plan"), *rows(400, seed)))


def test_a_table_with_outcomes(folder):
    fine = run(folder, table(folder, "fine.csv", *rows(1000, 2)), "--label", "outcome")
    assert fine.exit_code == 0, fine.output
    assert "DRIFT" not in fine.output
    assert "as promised" in fine.output
    other = run(folder, table(folder, "other.csv", *rows(1000, 3, shift=1.0, gone=0.3)), "--label", "outcome")
    assert other.exit_code == 3
    assert "DRIFT 'crp' has a stability index of" in other.output
    assert "(a large change)" in other.output
    assert "missing 2" in other.output or "missing 3" in other.output
    assert "DRIFT Predicted classes: 'ill'" in other.output or "DRIFT Predicted classes: 'well'" in other.output
    noisy = run(folder, table(folder, "noisy.csv", *rows(1000, 4, noise=2.0)), "--label", "outcome", "--json")
    assert noisy.exit_code == 3
    found = json.loads(noisy.stdout)
    assert [f["about"] for f in found if f["is_drift"]] == ["quality"]
    assert "Accuracy is" in found[0]["text"]


def test_the_access_log_of_the_server(folder):
    plan = load_plan(folder / "a.plan")
    X, y = rows(300, 5)
    log = folder / "access.jsonl"
    with TestClient(create_app(plan, access_log=log)) as client:
        for i, row in enumerate(X.tolist()):
            body = {"row": dict(zip(COSTS.features, row)), **({"budget": 2.0} if i % 3 == 0 else {})}
            assert client.post("/v1/predict", json=body, headers={"X-Request-Id": f"r{i}"}).status_code == 200
        assert client.post("/v1/predict", content=b"no").status_code == 400
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(lines) == 301
    came = folder / "came.csv"
    came.write_text("request_id,outcome\n" + "".join(f"r{i},{label}\n" for i, label in enumerate(y)))
    fine = run(folder, str(log), "--outcomes", str(came))
    assert fine.exit_code == 0, fine.output
    assert "in the mean of 200" in fine.output, "rows under a budget are not compared"
    assert "200 rows with outcomes" in fine.output

    spent = [{**line, "cost": 1.5 * line["cost"]} if "cost" in line else line for line in lines]
    assert [f.about for f in compare_log(plan, spent) if f.is_drift] == ["spending"]
    failed = [{**line, "stopped": "failed:crp"} for line in lines]
    assert [f.text for f in compare_log(plan, failed) if f.is_drift] == ["'crp' failed for 100 % of 300 rows."]
    other = [{**line, "version": "other"} for line in lines]
    with pytest.raises(ValueError, match="0 answers of version"):
        compare_log(plan, other)
    wrong = {"ill": "well", "well": "ill"}
    worse = compare_log(plan, lines, {f"r{i}": wrong[label] for i, label in enumerate(y)})
    assert [f.about for f in worse if f.is_drift] == ["quality"]


def test_mistakes(folder, tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"a": 1}\n{no\n')
    assert "line 2" in str(run(folder, str(tmp_path / "bad.jsonl")).exception)
    assert run(folder, table(folder, "t.csv", *rows(50, 6)), "--outcomes", str(tmp_path / "bad.jsonl")).exit_code == 2
    plain = ms.GreedyMiserClassifier(COSTS, n_estimators=2).fit(*rows(100, 0)).plan_
    with pytest.raises(ValueError, match="with_promise"):
        compare_log(plain, [])
