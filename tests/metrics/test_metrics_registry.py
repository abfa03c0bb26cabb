import pickle

import numpy as np
import pytest

from miserly.metrics import Metric, accuracy, auc, get_metric, log_loss, mse, ndcg, precision_at

Y, SCORE, QID = np.array([0, 1, 1, 0, 1]), np.array([0.1, 0.9, 0.2, 0.6, 0.7]), np.array([0, 0, 1, 1, 1])


@pytest.mark.parametrize(
    ("name", "wants", "greater", "grouped", "expected"),
    [
        ("accuracy", "value", True, False, accuracy(Y, Y)),
        ("mse", "value", False, False, mse(Y, Y)),
        ("auc", "score", True, False, auc(Y, SCORE)),
        ("logloss", "proba", False, False, log_loss(Y, SCORE, [0, 1])),
        ("ndcg@2", "score", True, True, ndcg(Y, SCORE, 2, QID)),
        ("ndcg@10", "score", True, True, ndcg(Y, SCORE, 10, QID)),
        ("precision@5", "score", True, True, precision_at(Y, SCORE, 5, QID)),
    ],
)
def test_a_name_gives_its_function_and_what_it_wants(name, wants, greater, grouped, expected):
    metric = get_metric(name)
    assert (metric.name, metric.input, metric.greater_is_better, metric.grouped) == (name, wants, greater, grouped)
    assert metric(Y, Y if wants == "value" else SCORE, qid=QID, classes=[0, 1]) == expected


@pytest.mark.parametrize("name", ["nonsense", "ndcg", "ndcg@0", "ndcg@five", "accuracy@5", ""])
def test_an_unknown_name_lists_the_valid_ones(name):
    with pytest.raises(ValueError, match=r"accuracy, auc, logloss, mse, ndcg@k, precision@k"):
        get_metric(name)


def test_a_metric_of_ones_own_passes_through():
    own = Metric("bias", False, "value", False, lambda y, out: float(np.mean(out - y)))
    assert get_metric(own) is own
    assert own(Y, Y + 1) == 1.0


def test_a_metric_can_be_sent_to_another_process():
    assert pickle.loads(pickle.dumps(get_metric("ndcg@5")))(Y, SCORE, qid=QID) == ndcg(Y, SCORE, 5, QID)
