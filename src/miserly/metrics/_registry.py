"""Metrics by name, with what each wants from a model, for `frontier` and the command line."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Literal

from miserly.metrics._pointwise import accuracy, auc, log_loss, mse
from miserly.metrics._ranking import err, mrr, ndcg, precision_at


@dataclass(frozen=True)
class Metric:
    """A figure and what it is made from: `input` names what the model gives (predicted values or labels,
    probabilities, raw scores), `grouped` says that the function takes qid.

    Parameters
    ----------
    name : str
        What tables and files call it.
    greater_is_better : bool
        Whether a greater figure is better.
    input : {"value", "proba", "score"}
        What of a model it reads: predicted values or labels, probabilities, or raw scores.
    grouped : bool
        Whether `function` takes `qid=`.
    function : callable
        `function(y, output)`, with `qid=` if grouped and `classes=` if it reads probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> Metric("mae", False, "value", False, lambda y, z: float(np.abs(y - z).mean()))(np.array([1.0]), np.array([3.0]))
    2.0
    """

    name: str
    greater_is_better: bool
    input: Literal["value", "proba", "score"]
    grouped: bool
    function: Callable[..., float]

    def __call__(self, y, output, qid=None, classes=None, multiplicity=None, sample_weight=None) -> float:
        """The figure; qid matters to grouped metrics only, classes (the columns' order) to probabilities.
        Multiplicities and weights of rows are refused where they would not be heard."""
        if sample_weight is not None:
            return self._weighted(y, output, classes, sample_weight)
        if self.grouped:
            repeats = {} if multiplicity is None else {"multiplicity": multiplicity}
            return self.function(y, output, qid=qid, **repeats)
        if multiplicity is not None:
            raise ValueError(
                f"{self.name} takes no multiplicity, only ranking metrics do. Repeat the rows with np.repeat instead."
            )
        if self.input == "proba":
            return self.function(y, output, classes=classes)
        return self.function(y, output)

    def _weighted(self, y, output, classes, sample_weight) -> float:
        """The figure where rows count differently."""
        if self.grouped or "sample_weight" not in signature(self.function).parameters:
            raise ValueError(
                f"{self.name} takes no weights of rows. Use accuracy, auc, logloss or mse, or a Metric whose function "
                "has a parameter sample_weight."
            )
        more = {"classes": classes} if self.input == "proba" else {}
        return self.function(y, output, sample_weight=sample_weight, **more)


_PLAIN = {
    "accuracy": Metric("accuracy", True, "value", False, accuracy),
    "auc": Metric("auc", True, "score", False, auc),
    "logloss": Metric("logloss", False, "proba", False, log_loss),
    "mse": Metric("mse", False, "value", False, mse),
}
_ALIASES = {  # scikit-learn's names; its signs are turned, since a Metric says which way is better
    "roc_auc": "auc",
    "log_loss": "logloss",
    "neg_log_loss": "logloss",
    "mean_squared_error": "mse",
    "neg_mean_squared_error": "mse",
}
_AT_K: dict[str, Callable[..., float]] = {"ndcg": ndcg, "precision": precision_at, "err": err, "mrr": mrr}
_WHOLE_LIST = {name: Metric(name, True, "score", True, _AT_K[name]) for name in ("err", "mrr")}


def get_metric(name: str | Metric) -> Metric:
    """The metric of that name.

    Parameters
    ----------
    name : str or Metric
        `accuracy`, `auc`, `logloss`, `mse`, `ndcg@k`, `precision@k`, `err@k`, `mrr@k` with any k of 1 or more, `err`
        or `mrr` (the whole list); also scikit-learn's names of these: `roc_auc`, `log_loss`, `neg_log_loss`,
        `neg_mean_squared_error`, `mean_squared_error`. A Metric is returned as it is.

    Returns
    -------
    Metric
        The figure and what it reads of a model.

    Examples
    --------
    >>> get_metric("ndcg@5").greater_is_better
    True
    >>> get_metric("roc_auc").name
    'auc'
    """
    if isinstance(name, Metric):
        return name
    name = _ALIASES.get(name, name)
    if name in _PLAIN:
        return _PLAIN[name]
    if name in _WHOLE_LIST:
        return _WHOLE_LIST[name]
    match = re.fullmatch(r"(\w+)@([1-9][0-9]*)", name)
    if match and match[1] in _AT_K:
        function = partial(_AT_K[match[1]], k=int(match[2]))
        return Metric(name, True, "score", True, function)
    valid = [*_PLAIN, *(f"{family}@k" for family in _AT_K), *_WHOLE_LIST]
    raise ValueError(
        f"There is no metric {name!r}. Use one of {', '.join(valid)} with a whole k of 1 or more, "
        "as in 'ndcg@5', or pass a miserly.metrics.Metric of your own."
    )
