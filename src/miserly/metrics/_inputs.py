"""Validation of the arguments of all metrics: they become arrays here, once, or are refused."""

import numpy as np


def as_vector(values, name: str) -> np.ndarray:
    """One value per row, none of them NaN: a figure made from NaN would look like a result."""
    vector = np.asarray(values)
    if vector.ndim != 1 or vector.size == 0:
        raise ValueError(
            f"{name} must be a vector with one value per row, got shape {vector.shape}. "
            "Pass a one-dimensional array with at least one row."
        )
    return _without_nan(vector, name)


def as_numbers(values, name: str) -> np.ndarray:
    """A vector of numbers, as float64."""
    vector = as_vector(values, name)
    if vector.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be numbers, got dtype {vector.dtype}. Pass numeric values, not labels.")
    return vector.astype(np.float64, copy=False)


def as_copies(values, name: str) -> np.ndarray:
    """How often each row counts: whole numbers that float64 holds exactly, at least one of them above 0."""
    vector = as_numbers(values, name)
    wrong = (vector < 0) | (vector > 2.0**53) | (vector != np.floor(vector))
    if wrong.any():
        raise ValueError(
            f"{name} must be whole numbers from 0 to 2^53, got {vector[wrong][0]:g} in row {np.argmax(wrong)}. "
            "It says how often a row is repeated; round or scale weights to counts first."
        )
    if not vector.any():
        raise ValueError(f"{name} is 0 for all {len(vector)} rows: none is left to count. Give one row 1 or more.")
    return vector.astype(np.int64)


def as_weights(values, n_rows: int) -> np.ndarray:
    """How much each row counts: finite numbers of 0 or more, at least one of them above 0."""
    vector = as_numbers(values, "sample_weight")
    check_rows("sample_weight", len(vector), n_rows)
    if vector.min() < 0.0 or not np.isfinite(vector).all() or not vector.any():
        raise ValueError("sample_weight must be finite numbers of 0 or more, not all 0.")
    return vector


def as_probabilities(values, name: str) -> np.ndarray:
    """Rows of probabilities that sum to 1; a vector is the probability of the second of two classes."""
    proba = _without_nan(np.asarray(values, dtype=np.float64), name)
    if proba.ndim == 1:
        proba = np.column_stack([1.0 - proba, proba])
    if proba.ndim != 2 or proba.size == 0:
        raise ValueError(
            f"{name} must have one row per sample and one column per class, got shape {proba.shape}. "
            "Pass what predict_proba returns."
        )
    if proba.min() < 0.0 or proba.max() > 1.0 or not np.allclose(proba.sum(axis=1), 1.0, atol=1e-4):
        raise ValueError(
            f"{name} must be probabilities: within [0, 1], each row summing to 1. Got values from "
            f"{proba.min():g} to {proba.max():g}. Pass what predict_proba returns, not scores."
        )
    return proba


def check_rows(name: str, n_rows: int, n_expected: int) -> None:
    """Refuse arrays of different lengths, naming both."""
    if n_rows != n_expected:
        raise ValueError(f"{name} has {n_rows} rows, y_true has {n_expected}. Pass both for the same rows.")


def _without_nan(values: np.ndarray, name: str) -> np.ndarray:
    if values.dtype.kind == "O" and any(v is None for v in values.flat):
        raise ValueError(f"{name} must not hold None. Look for the rows that gave it; drop or repair these first.")
    n_nan = np.count_nonzero(values != values)
    if n_nan:
        raise ValueError(
            f"{name} must not hold NaN, got {n_nan} NaN in {values.size} values. "
            "Look for the model or the rows that gave them; drop or repair these first."
        )
    return values
