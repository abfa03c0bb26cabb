"""Figures of single rows: no queries, each row counts alike."""

import numpy as np

from miserly.metrics._inputs import as_numbers, as_probabilities, as_vector, as_weights, check_rows


def accuracy(y_true, y_pred, sample_weight=None) -> float:
    """Share of rows whose predicted label is the true one.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        True labels, none missing.
    y_pred : array-like of shape (n_rows,)
        Predicted labels.
    sample_weight : array-like of shape (n_rows,), default=None
        How much each row counts, 0 or more; None: all the same.

    Returns
    -------
    float
        From 0 to 1; greater is better.

    Examples
    --------
    >>> accuracy(["ill", "well", "well"], ["ill", "ill", "well"])
    0.6666666666666666
    """
    y_true, y_pred = as_vector(y_true, "y_true"), as_vector(y_pred, "y_pred")
    check_rows("y_pred", len(y_pred), len(y_true))
    return _mean(y_true == y_pred, sample_weight)


def mse(y_true, y_pred, sample_weight=None) -> float:
    """Mean squared error.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        True numbers, none missing.
    y_pred : array-like of shape (n_rows,)
        Predicted numbers.
    sample_weight : array-like of shape (n_rows,), default=None
        How much each row counts, 0 or more; None: all the same.

    Returns
    -------
    float
        0 or more; smaller is better.

    Examples
    --------
    >>> mse([1.0, 2.0], [1.0, 4.0])
    2.0
    """
    y_true, y_pred = as_numbers(y_true, "y_true"), as_numbers(y_pred, "y_pred")
    check_rows("y_pred", len(y_pred), len(y_true))
    return _mean((y_true - y_pred) ** 2, sample_weight)


def auc(y_true, score, sample_weight=None) -> float:
    """Chance that a row of the greater label outscores one of the smaller; a tie counts one half.

    Computed from ranks (ties get their average rank), so it is exact and takes one sort.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        True labels: exactly two different ones. The greater one is the positive class.
    score : array-like of shape (n_rows,)
        Scores of any scale; higher means more likely the positive class.
    sample_weight : array-like of shape (n_rows,), default=None
        How much each row counts, 0 or more; None: all the same.

    Returns
    -------
    float
        From 0 to 1, 0.5 for scores without information; greater is better.

    Examples
    --------
    >>> auc([0, 1, 1, 0], [0.1, 0.9, 0.4, 0.4])
    0.875
    """
    y_true, score = as_vector(y_true, "y_true"), as_numbers(score, "score")
    check_rows("score", len(score), len(y_true))
    labels = np.unique(y_true)
    if len(labels) != 2:
        raise ValueError(
            f"auc needs exactly two labels in y_true, got {len(labels)}: {labels[:5].tolist()}. "
            "Use rows of both classes, or 'accuracy' or 'logloss' for more than two."
        )
    if sample_weight is not None:
        return _weighted_auc(y_true == labels[1], score, as_weights(sample_weight, len(score)))
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    average_rank = np.cumsum(count) - (count - 1) / 2.0
    positive = y_true == labels[1]
    n_pos = int(positive.sum())
    n_neg = len(y_true) - n_pos
    rank_sum = average_rank[place[positive]].sum()
    return float((rank_sum - n_pos * (n_pos + 1) / 2.0) / (n_pos * n_neg))


def log_loss(y_true, proba, classes=None, sample_weight=None) -> float:
    """Mean negative log-probability (nats) of the true class; column j of proba belongs to classes[j].

    Without `classes` the columns follow the sorted labels of y_true. Probabilities are clipped to the
    float64 epsilon, as in scikit-learn, so one certain mistake costs 36 nats and not infinity.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        True labels.
    proba : array-like of shape (n_rows, n_classes) or (n_rows,)
        Probabilities whose rows sum to 1; a vector is the probability of the second of two classes.
    classes : array-like of shape (n_classes,), default=None
        The label of each column; None takes the sorted labels of `y_true`.
    sample_weight : array-like of shape (n_rows,), default=None
        How much each row counts, 0 or more; None: all the same.

    Returns
    -------
    float
        0 or more; smaller is better.

    Examples
    --------
    >>> round(log_loss([0, 1], [0.5, 0.5]), 4)
    0.6931
    """
    y_true, proba = as_vector(y_true, "y_true"), as_probabilities(proba, "proba")
    check_rows("proba", len(proba), len(y_true))
    classes = np.unique(y_true) if classes is None else np.asarray(classes)
    if len(classes) != proba.shape[1]:
        raise ValueError(
            f"proba has {proba.shape[1]} columns, classes has {len(classes)}: {classes[:5].tolist()}. "
            "Pass classes= in the order of the columns (a fitted classifier's classes_)."
        )
    by_label = np.argsort(classes)
    slot = np.minimum(np.searchsorted(classes, y_true, sorter=by_label), len(classes) - 1)
    column = by_label[slot]
    unknown = classes[column] != y_true
    if unknown.any():
        raise ValueError(
            f"y_true holds labels outside classes {classes[:5].tolist()}: {np.unique(y_true[unknown])[:5].tolist()}. "
            "Pass the classes the model was fitted on, and rows of these classes only."
        )
    chosen = proba[np.arange(len(y_true)), column]
    eps = np.finfo(np.float64).eps
    return -_mean(np.log(np.clip(chosen, eps, 1.0 - eps)), sample_weight)


def _mean(figures, sample_weight) -> float:
    """The mean over rows, weighted if weights are given."""
    if sample_weight is None:
        return float(np.mean(figures))
    return float(np.average(figures, weights=as_weights(sample_weight, len(figures))))


def _weighted_auc(positive, score, weight) -> float:
    """The share of the weight of pairs, one row of each class, that are in order; a tie counts one half."""
    _, place = np.unique(score, return_inverse=True)
    above, below = np.bincount(place, weight * positive), np.bincount(place, weight * ~positive)
    if not above.any() or not below.any():
        raise ValueError("auc needs rows of both labels with a weight above 0.")
    lower = np.cumsum(below) - below
    return float((above * (lower + below / 2.0)).sum() / (above.sum() * below.sum()))
