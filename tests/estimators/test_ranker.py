"""The ranker: queries, both objectives, what is watched, and mistakes with query ids."""

import numpy as np
import pytest

import miserly as ms
from miserly.datasets import yahoo_like
from miserly.metrics import ndcg


@pytest.fixture(scope="module")
def data():
    return yahoo_like(150, 0), yahoo_like(80, 1)


def test_the_squared_ranker_is_the_regressor(data):
    train, _ = data
    settings = {"costs": train.costs, "tradeoff": 1e-4, "n_estimators": 15}
    ranker = ms.GreedyMiserRanker(**settings).fit(train.X, train.y, train.qid)
    regressor = ms.GreedyMiserRegressor(**settings).fit(train.X, train.y)
    assert np.array_equal(ranker.predict(train.X), regressor.predict(train.X))


@pytest.mark.parametrize("loss", ["squared", "lambdarank"])
def test_ranking_gets_better_and_stops_at_the_best(data, loss):
    train, test = data
    model = ms.GreedyMiserRanker(
        train.costs, tradeoff=0, n_estimators=200, learning_rate=0.2, loss=loss, n_iter_no_change=10
    )
    model.fit(train.X, train.y, train.qid, eval_set=(test.X, test.y, test.qid))
    reached = ndcg(test.y, model.predict(test.X), k=5, qid=test.qid)
    assert reached == pytest.approx(max(model.validation_score_))
    assert model.n_iter_ == int(np.argmax(model.validation_score_)) + 1 or model.n_iter_ < 200
    assert reached > ndcg(test.y, np.zeros(len(test.y)), k=5, qid=test.qid) + 0.1


def test_lambdarank_raises_ndcg_on_training_data(data):
    train, _ = data
    model = ms.GreedyMiserRanker(train.costs, tradeoff=0, n_estimators=60, loss="lambdarank")
    model.fit(train.X, train.y, train.qid)
    assert model.train_loss_[-1] < 0.6 * model.train_loss_[0]
    assert 1 - model.train_loss_[-1] == pytest.approx(ndcg(train.y, model.predict(train.X), qid=train.qid))


def test_a_sweep_hands_queries_through(data):
    train, test = data
    parts = [(d.X, d.y, d.qid) for d in (train, test)]
    model = ms.GreedyMiserRanker(train.costs, n_estimators=20, loss="lambdarank", n_iter_no_change=5)
    front = ms.frontier(model, *parts, grid={"tradeoff": [0, 1e-3]}, metric="ndcg@5")
    by_hand = ms.GreedyMiserRanker(**{**model.get_params(), "tradeoff": 1e-3})
    by_hand.fit(*parts[0], eval_set=parts[1])
    assert front.points[1].model.plan_ == by_hand.plan_


@pytest.mark.parametrize(
    ("qid", "message"),
    [
        ([1, 1, 2, 2, 1, 1], "comes back to query 1 after"),
        ([1, 1, 2], "one query id per row"),
    ],
)
def test_query_ids_that_do_not_fit(qid, message):
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6)
    with pytest.raises(ValueError, match=message):
        ms.GreedyMiserRanker(ms.CostTable.uniform()).fit(X, y, qid)


def test_other_mistakes(data):
    train, _ = data
    model = ms.GreedyMiserRanker(train.costs, loss="lambdarank")
    with pytest.raises(ValueError, match="grades of 0 or more"):
        model.fit(train.X, train.y - 1, train.qid)
    with pytest.raises(ValueError, match=r"\(X, y, qid\)"):
        model.fit(train.X, train.y, train.qid, eval_set=(train.X, train.y))
