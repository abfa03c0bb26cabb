"""What users bring to a plan: matrices, frames, query ids; and how its answers are read and ranked."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miserly.kernels.threads import threads
from miserly.plan import Gate, Node, Plan
from miserly.plan import _run as running
from miserly.plan._gates import passes
from oracles.executor import assert_run_is, execute
from oracles.hand_built import COSTS, PLANS, RAW, rows

NAMES = list(COSTS.features)
FRAMES = {
    "pandas": lambda X, names: pd.DataFrame(X, columns=names),
    "polars": lambda X, names: pl.DataFrame(X, schema=names),
    "pyarrow": lambda X, names: pa.table(dict(zip(names, X.T))),
}
frames = pytest.mark.parametrize("kind", FRAMES)


@frames
def test_frames_of_every_kind_are_read(kind):
    plan, X = PLANS["forest"](), rows(10, missing=0.2)
    np.testing.assert_array_equal(plan.run(FRAMES[kind](X, NAMES)).score, plan.run(X).score)


@frames
def test_missing_cells_of_a_frame_are_missing_values(kind):
    plan, X = PLANS["forest"](), rows(10, missing=0.3)
    cells = {f: [None if np.isnan(v) else v for v in X[:, j]] for j, f in enumerate(NAMES)}
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[kind](cells)
    np.testing.assert_array_equal(plan.run(frame).score, plan.run(X).score)


@frames
def test_columns_are_found_by_name_in_any_order_and_others_ignored(kind):
    plan, X = PLANS["forest"](), rows(10, missing=0.2)
    wide = np.column_stack([X, X[:, :1]])[:, ::-1]
    np.testing.assert_array_equal(plan.predict(FRAMES[kind](wide, ["more", *NAMES[::-1]])), plan.predict(X))


@frames
def test_a_frame_that_lacks_a_feature_is_refused_by_its_name(kind):
    with pytest.raises(ValueError, match="fti"):
        PLANS["forest"]().predict(FRAMES[kind](rows(3)[:, :5], NAMES[:5]))


@frames
def test_a_frame_of_strings_is_refused(kind):
    X = np.full((3, 8), "red")
    with pytest.raises(ValueError, match="not numbers"):
        PLANS["forest"]().predict(FRAMES[kind](X, NAMES))


@pytest.mark.parametrize("X", [rows(3)[:, :7], np.zeros((3, 9)), np.zeros(8), np.zeros((2, 8, 1)), np.float64(1)])
def test_a_matrix_of_another_shape_is_refused(X):
    with pytest.raises(ValueError, match=r"reads 8 features, X has"):
        PLANS["cascade"]().predict(X)


def test_strings_and_objects():
    plan = PLANS["cascade"]()
    with pytest.raises(ValueError, match="not numbers"):
        plan.predict(np.full((2, 8), "red"))
    with pytest.raises(ValueError, match="not numbers"):
        plan.predict(np.full((2, 8), {}, object))
    X = rows(5)
    np.testing.assert_array_equal(plan.score(X.astype(object)), plan.score(X))


@pytest.mark.parametrize(
    "same",
    [
        lambda X: X.tolist(),
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: X.astype(">f8"),
        lambda X: pd.DataFrame(X),
    ],
    ids=["list", "fortran", "strided", "big endian", "unnamed frame"],
)
def test_the_same_numbers_in_another_form_give_the_same_answers(same):
    plan, X = PLANS["cascade"](), rows(6)
    np.testing.assert_array_equal(plan.score(same(X)), plan.score(X))
    whole = np.round(X)
    np.testing.assert_array_equal(plan.score(whole.astype(int)), plan.score(whole))


def test_running_changes_no_input():
    for name, make in PLANS.items():
        plan = make()
        X = rows(9, n_features=len(plan.costs.features))
        before, qid = X.copy(), np.arange(9) % 2
        X.flags.writeable = qid.flags.writeable = False
        plan.run(X, qid, 5.0)
        np.testing.assert_array_equal(X, before, err_msg=name)


# ---- queries ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("qid", [np.zeros(4), np.zeros((5, 1)), "abc"])
def test_query_ids_must_be_one_per_row(qid):
    with pytest.raises(ValueError, match="qid"):
        PLANS["rank"]().run(rows(5), qid)


@pytest.mark.parametrize("name", ["proximity", "rank", "capacity"])
def test_query_ids_may_be_words_and_are_all_one_query_if_absent(name):
    plan, X = PLANS[name](), rows(30, 2)
    numbers = np.arange(30) * 11 % 4
    words = np.array(["d", "a", "c", "b"])[numbers]
    np.testing.assert_array_equal(plan.run(X, words).exit, plan.run(X, numbers).exit)
    np.testing.assert_array_equal(plan.run(X).exit, plan.run(X, np.ones(30)).exit)
    assert len(np.unique(plan.run(X, numbers).exit)) > 1


@pytest.mark.parametrize("gate", [Gate.near_top(3, 1.0), Gate.top(2), Gate.among_seen(2)])
def test_a_document_without_a_score_does_not_shut_the_gate_for_the_others(gate):
    """A missing raw feature makes the score NaN; the good documents must still pass."""
    score = np.array([np.nan, np.nan, 3.0, 2.5])
    passed = passes(gate, score, None, np.zeros(4, np.intp))
    assert passed[2:].all()


# ---- blocks and threads ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["shared_softmax", "rank", "capacity", "proximity"])
@pytest.mark.parametrize("budget", [None, 12.0])
def test_blocks_of_rows_give_the_same_result(name, budget, monkeypatch):
    plan = PLANS[name]()
    if plan.by_query:
        last = replace(plan.nodes[2], learners=[1, 0], weights=[0.7, 0.9])
        plan = replace(plan, nodes=(*plan.nodes[:2], last))
    X, qid = rows(500, 3, 0.1), np.arange(500) * 7 % 23
    whole = plan.run(X, qid, budget)
    monkeypatch.setattr(running, "BLOCK_CELLS", 1)
    sizes = [len(b) for b in running._blocks(plan.tables.program("all"), qid, 8)]
    assert len(sizes) > 3
    assert sum(sizes) == 500
    with threads(None):
        parts = plan.run(X, qid, budget)
    for what in running.Run.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(parts, what), getattr(whole, what))
    assert_run_is(plan, parts, execute(plan, X, qid, budget))


# ---- how scores are read -------------------------------------------------------------------------------------------


def test_votes_tie_to_the_first_class_and_zero_is_a_vote_for_the_second():
    """LibSVM: a pair's score above zero votes for its first class, else for its second; the first of the best wins."""
    raw = PLANS["cascade"]().dictionary
    node = Node([0, 1, 2], np.eye(3), 0.0, (0, 1, 2))
    plan = Plan(COSTS, raw, (node,), np.zeros(3), "vote", np.array(["b", "a", "c"]))
    X = np.zeros((5, 8))
    X[:, :3] = [[1, -1, 1], [-1, 1, -1], [0, 0, 0], [1, 1, 0], [0, 1, 1]]
    assert plan.predict(X).tolist() == ["b", "b", "c", "b", "a"]
    np.testing.assert_allclose(plan.predict_proba(X)[0], [1 / 3, 1 / 3, 1 / 3])


def tiered(scores, tiers):
    """A plan under which row i leaves at tier `tiers[i]` with score `scores[i]`; returns it with its rows."""
    nodes = (
        Node([0], [1.0], combine="replace", routing=[0.0], routing_bias=0.0, passed=1),
        Node([0, 1], [1.0, 0.0], combine="replace", routing=[0, 1], gate=Gate.above(0.5), passed=2, tier=0),
        Node([0, 1], [1.0, 0.0], combine="replace", routing=[0, 1], gate=Gate.above(1.5), passed=3, tier=1),
        Node([0], [1.0], combine="replace", tier=2),
    )
    X = np.zeros((len(scores), 8))
    X[:, 0], X[:, 1] = scores, tiers
    return Plan(COSTS, RAW, nodes, [0.0]), X


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-2000, 2000), st.integers(0, 2)), min_size=2, max_size=12))
def test_ranks_go_by_tier_and_then_by_score(pairs):
    plan, X = tiered([s / 8 for s, _ in pairs], [t for _, t in pairs])
    ranked = plan.rank_score(X)
    keys = [(t, s) for s, t in pairs]
    for i in range(len(pairs)):
        for j in range(len(pairs)):
            assert (ranked[i] < ranked[j]) == (keys[i] < keys[j])


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ((0, 1e20), (1, -1e20)),
        ((1, 1e9), (1, 1e9 + 1)),
        ((0, -np.inf), (0, 1.0)),
        ((1, 1.0), (1, 1.0 + 1e-11)),
    ],
)
def test_ranks_keep_the_order_of_any_two_scores(lower, upper):
    plan, X = tiered([lower[1], upper[1]], [lower[0], upper[0]])
    ranked = plan.rank_score(X)
    assert ranked[0] < ranked[1]
