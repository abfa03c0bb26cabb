"""The helpers of the compiled grower in plain NumPy."""

import numpy as np


def words_of(owns):
    """Who owns what (row × acquisition) as words of 64 bits."""
    n_rows, n = owns.shape
    padded = np.zeros((n_rows, -(-n // 64) * 64), bool)
    padded[:, :n] = owns
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def divide_lacking(owns, rows, lacking):
    """How many of some rows lack each acquisition, if any row of the node does."""
    return np.where(lacking == 0, 0, (~owns[rows]).sum(axis=0))
