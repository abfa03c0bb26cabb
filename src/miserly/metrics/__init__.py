"""What a prediction is worth: figures from arrays alone, so that every package computes them the same way."""

from miserly.metrics._pointwise import accuracy, auc, log_loss, mse
from miserly.metrics._ranking import err, mrr, ndcg, precision_at
from miserly.metrics._registry import Metric, get_metric

__all__ = ["Metric", "accuracy", "auc", "err", "get_metric", "log_loss", "mrr", "mse", "ndcg", "precision_at"]
