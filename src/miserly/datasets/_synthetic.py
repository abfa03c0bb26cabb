"""The small synthetic sets of the papers, with the constants of our corrected notes."""

from typing import Literal

import numpy as np

from miserly.costs import CostTable
from miserly.datasets._dataset import Dataset

XOR_PRICES = (1, 1, 1, 2, 5, 15, 25, 70, 100, 1000)
UNIT = "units"


def four_quadrants(
    n: int,
    seed: int,
    means: tuple[float, float, float, float] = (-15, -5, 5, 15),
    junk: Literal["quadrant", "standard"] = "quadrant",
) -> Dataset:
    """CSTC's regression task (thesis 3.7.1): two cheap signs say which one expensive column holds the target.

    `means` are those of y ~ N(μ_q, 1) for (sign x, sign z) = ++, −+, +−, −−. Outside its quadrant an
    expensive column is junk: N(μ_q, 1) of the column's own quadrant, or N(0, 1). The best tree costs 12 per row.

    Parameters
    ----------
    n : int
        Rows, 1 or more.
    seed : int
        Seed of the generator.
    means : tuple of four floats, default=(-15, -5, 5, 15)
        Mean of the target in each quadrant.
    junk : {"quadrant", "standard"}, default="quadrant"
        What an expensive column holds outside its quadrant.

    Returns
    -------
    Dataset
        Six columns: two signs at 1, four readings at 10.

    Examples
    --------
    >>> four_quadrants(100, seed=0).X.shape
    (100, 6)
    """
    if junk not in ("quadrant", "standard"):
        raise ValueError(f"junk must be 'quadrant' or 'standard', got {junk!r}.")
    rng = np.random.default_rng(seed)
    x, z = np.where(rng.uniform(-1, 1, size=(2, n)) < 0, -1.0, 1.0)
    quadrant = (x < 0) + 2 * (z < 0)
    mu = np.asarray(means, dtype=np.float64)
    y = rng.normal(mu[quadrant], 1.0)
    expensive = rng.normal(mu if junk == "quadrant" else 0.0, 1.0, size=(n, 4))
    expensive[np.arange(n), quadrant] = y
    prices = {"sign_x": 1.0, "sign_z": 1.0, "z_pp": 10.0, "z_mp": 10.0, "z_pm": 10.0, "z_mm": 10.0}
    costs = CostTable.per_feature(prices, unit=UNIT)
    return Dataset(np.column_stack([x, z, expensive]), y, costs, name="four_quadrants")


def bent_sum(n: int, seed: int) -> Dataset:
    """A sum of waves in three columns, the same for all rows, among eight: y = Σ sin(2π x_j) + N(0, 0.1²).

    Columns are uniform in (0, 1) and cost 1 each; no half-space of them is easier than another.

    Parameters
    ----------
    n : int
        Rows, 1 or more.
    seed : int
        Seed of the generator.

    Returns
    -------
    Dataset
        Eight columns of price 1.

    Examples
    --------
    >>> bent_sum(100, seed=0).X.shape
    (100, 8)
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 8))
    y = np.sin(2 * np.pi * X[:, :3]).sum(axis=1) + 0.1 * rng.normal(size=n)
    costs = CostTable.per_feature({f"x{j}": 1.0 for j in range(8)}, unit=UNIT)
    return Dataset(X, y, costs, name="bent_sum")


def noisy_xor(n: int, seed: int, squares: tuple[float, float] = (0.5, 1.5)) -> Dataset:
    """AFR's task: XOR of two signs seen through ten random projections, each with noise N(0, 1/price).

    Points lie in four squares, |coordinate| within `squares`; y is −1 or +1. The projection is drawn with the
    seed too: to train and test, draw once and split.

    Parameters
    ----------
    n : int
        Rows, 1 or more.
    seed : int
        Seed of the generator.
    squares : tuple of two floats, default=(0.5, 1.5)
        Least and greatest absolute coordinate of a point.

    Returns
    -------
    Dataset
        Ten columns that cost 1 to 1000; labels −1 and +1.

    Examples
    --------
    >>> train, test = noisy_xor(100, seed=0).split(0.5, 0.5, seed=0)
    """
    rng = np.random.default_rng(seed)
    signs = np.where(rng.random((n, 2)) < 0.5, -1.0, 1.0)
    Z = signs * rng.uniform(*squares, size=(n, 2))
    A = rng.normal(size=(len(XOR_PRICES), 2))
    noise = rng.normal(size=(n, len(XOR_PRICES))) / np.sqrt(XOR_PRICES)
    costs = CostTable.per_feature({f"x{j}": float(c) for j, c in enumerate(XOR_PRICES)}, unit=UNIT)
    return Dataset(Z @ A.T + noise, signs.prod(axis=1).astype(np.int64), costs, name="noisy_xor")


def circle(n: int, seed: int) -> Dataset:
    """CVM's task in the plane: a blob N(0, I) (y = +1) inside a ring of radius 3 ± 0.5 (y = −1), half each.

    Parameters
    ----------
    n : int
        Rows, 1 or more.
    seed : int
        Seed of the generator.

    Returns
    -------
    Dataset
        Two columns of price 1; labels −1 and +1.

    Examples
    --------
    >>> circle(100, seed=0).y.sum()
    np.int64(0)
    """
    rng = np.random.default_rng(seed)
    inside = rng.permutation(n) < (n + 1) // 2
    angle = rng.uniform(0, 2 * np.pi, size=n)
    radius = 3 + 0.5 * rng.normal(size=n)
    ring = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.where(inside[:, None], rng.normal(size=(n, 2)), ring)
    costs = CostTable.per_feature({"x0": 1.0, "x1": 1.0}, unit=UNIT)
    return Dataset(X, np.where(inside, 1, -1), costs, name="circle")
