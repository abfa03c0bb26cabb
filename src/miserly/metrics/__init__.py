"""What a prediction is worth: figures from arrays alone, so that every room counts them the same way."""

from miserly.metrics.pointwise import accuracy, auc, log_loss, mse
from miserly.metrics.ranking import err, mrr, ndcg, precision_at
from miserly.metrics.registry import Metric, get_metric

__all__ = ["Metric", "accuracy", "auc", "err", "get_metric", "log_loss", "mrr", "mse", "ndcg", "precision_at"]
