"""Rounds kept in a file: a fit that was killed goes on from it to the same bits."""

import numpy as np
import pytest

import miserly as ms


def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    return X, np.digitize(X[:, 0] * X[:, 1] + X[:, 2], [-0.5, 0.5])


def model(**options):
    settings = {"n_estimators": 12, "subsample": 0.7, "random_state": 3, "warm_start": True} | options
    return ms.GreedyMiserClassifier(ms.CostTable.per_feature(np.arange(5) + 1.0), 1e-3, **settings)


@pytest.mark.parametrize("charge", ["learner", "path"])
def test_another_process_goes_on_where_the_file_ends(tmp_path, charge):
    X, y = problem()
    whole = model(charge=charge).fit(X, y).plan_
    path = tmp_path / "rounds.jsonl"
    model(charge=charge, n_estimators=5).fit(X, y, checkpoint=path)
    content = path.read_text()
    path.write_text(content[: len(content) - 10])
    again = model(charge=charge).fit(X, y, checkpoint=path)
    assert again.plan_ == whole
    assert [n.gain for n in again.plan_.nodes] == [n.gain for n in whole.nodes]
    assert again.plan_.notes == whole.notes
    before = path.read_text()
    assert model(charge=charge).fit(X, y, checkpoint=path).plan_ == whole
    assert path.read_text() == before
    assert len(before.splitlines()) == 1 + len(whole.nodes)


def test_a_file_of_another_model_is_refused_and_started_again_without_warm_start(tmp_path):
    X, y = problem()
    path = tmp_path / "rounds.jsonl"
    model(n_estimators=3).fit(X, y, checkpoint=path)
    with pytest.raises(ValueError, match="checkpoint of another model"):
        model(learning_rate=0.2).fit(X, y, checkpoint=path)
    higher = model().set_params(costs=ms.CostTable.per_feature(np.arange(5) + 2.0))
    with pytest.raises(ValueError, match="checkpoint of another model"):  # the names alone were compared once
        higher.fit(X, y, checkpoint=path)
    model(learning_rate=0.2, warm_start=False, n_estimators=2).fit(X, y, checkpoint=path)
    assert len(path.read_text().splitlines()) == 3
    path.write_text("nothing\n")
    with pytest.raises(ValueError, match="not a checkpoint"):
        model().fit(X, y, checkpoint=path)


def test_a_fit_that_stopped_early_stays_so(tmp_path):
    X, y = problem()
    eval_set = (X[::3], np.random.default_rng(1).permutation(y[::3]))
    options = {"n_iter_no_change": 2, "learning_rate": 1.0, "n_estimators": 30}
    first = model(**options).fit(X, y, eval_set=eval_set, checkpoint=tmp_path / "rounds")
    assert first.n_iter_ < 28
    again = model(**options).fit(X, y, eval_set=eval_set, checkpoint=tmp_path / "rounds")
    assert again.plan_ == first.plan_
    assert again.validation_loss_ == first.validation_loss_


@pytest.mark.parametrize("change", ["doubled", "removed", "swapped", "edited", "header"])
def test_a_line_that_was_changed_is_refused(tmp_path, change):
    X, y = problem()
    path = tmp_path / "rounds.jsonl"
    model(n_estimators=5).fit(X, y, checkpoint=path)
    lines = path.read_text().splitlines(keepends=True)
    changed = {
        "doubled": [*lines[:3], lines[2], *lines[3:]],
        "removed": lines[:2] + lines[3:],
        "swapped": [*lines[:2], lines[3], lines[2], *lines[4:]],
        "edited": [*lines[:2], lines[2].replace('"missing_right": [', '"missing_right": [true, ', 1), *lines[3:]],
        "header": [lines[0].replace('"start_loss": ', '"start_loss": 1', 1), *lines[1:]],
    }[change]
    assert changed != lines
    path.write_text("".join(changed))
    with pytest.raises(ValueError, match="damaged"):
        model().fit(X, y, checkpoint=path)


def test_rounds_removed_at_the_end_are_made_again(tmp_path):
    X, y = problem()
    path = tmp_path / "rounds.jsonl"
    whole = model().fit(X, y, checkpoint=path).plan_
    before = path.read_text()
    path.write_text("".join(before.splitlines(keepends=True)[:4]))
    assert model().fit(X, y, checkpoint=path).plan_ == whole
    assert path.read_text() == before
