"""Sums over rows for every column of a dense table, standardised on the way: no copy is made."""

import numpy as np

from miserly.kernels.compiling import compiled

ROWS_AT_ONCE = 512  # their sums are added up apart, which keeps rounding small


@compiled(error_model="numpy")
def sum_products(X, centre, inverse, values, out):
    """Add Σ_i values[i, k] (X[i, j] − centre[j]) · inverse[j] to out[k, j]."""
    n_columns = X.shape[1]
    part = np.empty(n_columns)
    for first in range(0, X.shape[0], ROWS_AT_ONCE):
        last = min(first + ROWS_AT_ONCE, X.shape[0])
        for k in range(values.shape[1]):
            part[:] = 0.0
            for i in range(first, last):
                v = values[i, k]
                if v != 0.0:
                    for j in range(n_columns):
                        part[j] += (X[i, j] - centre[j]) * inverse[j] * v
            for j in range(n_columns):
                out[k, j] += part[j]


@compiled(error_model="numpy")
def sum_squares(X, centre, inverse, share, out):
    """Add Σ_i share[i] ((X[i, j] − centre[j]) · inverse[j])² to out[j]."""
    n_columns = X.shape[1]
    part = np.empty(n_columns)
    for first in range(0, X.shape[0], ROWS_AT_ONCE):
        part[:] = 0.0
        for i in range(first, min(first + ROWS_AT_ONCE, X.shape[0])):
            v = share[i]
            if v != 0.0:
                for j in range(n_columns):
                    z = (X[i, j] - centre[j]) * inverse[j]
                    part[j] += z * z * v
        for j in range(n_columns):
            out[j] += part[j]
