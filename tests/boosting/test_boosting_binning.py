"""Bins: every value lies between its cuts, weights are even, what is rare or heavy keeps its place."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from miserly.boosting import bin_data

MISSING = 255


def column(values, **options):
    """One column's bins, its cuts and its number of bins."""
    data = bin_data(np.asarray(values)[:, None], **options)
    n_bins = int(data.n_bins[0])
    return data.bins[0], data.cuts[0, : max(n_bins - 1, 0)], n_bins


numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=False),
    st.integers(-3, 3).map(float),
    st.sampled_from([0.0, -0.0, 5e-324, 1.0, np.nextafter(1, 2), 1.7e308, -1.7e308]),
)


@settings(max_examples=100, deadline=None)
@given(arrays(np.float64, st.integers(1, 80), elements=numbers), st.sampled_from([2, 3, 5, 16, 255]))
def test_a_value_lies_in_the_bin_of_the_cuts_below_it(values, max_bins):
    bins, cuts, n_bins = column(values, max_bins=max_bins)
    missing = np.isnan(values)
    present = values[~missing]
    assert (bins[missing] == MISSING).all()
    assert bins[~missing].tolist() == [int((cuts < v).sum()) for v in present]
    assert np.isfinite(cuts).all()
    assert (np.diff(cuts) > 0).all()
    distinct = np.unique(present)
    assert n_bins <= min(max_bins, len(distinct))
    assert set(bins[~missing].tolist()) == set(range(n_bins))
    if len(distinct) <= max_bins:
        assert n_bins == len(distinct)
    for cut in cuts:
        assert present.min() <= cut < present.max()


@settings(max_examples=200, deadline=None)
@given(arrays(np.float64, st.integers(1, 300), elements=st.integers(0, 60).map(float)), st.integers(2, 40))
def test_cuts_are_those_of_a_slow_walk_over_all_values(values, max_bins):
    _, cuts, _ = column(values, max_bins=max_bins)
    assert cuts.tolist() == slow_cuts(values, max_bins)


def slow_cuts(values, max_bins):
    """Value by value: heavy ones get a bin of their own, light ones are cut whenever another even part is full."""
    distinct, counts = np.unique(values, return_counts=True)
    heavy = counts >= (-(-len(values) // max_bins) if len(distinct) > max_bins else 1)
    before_heavy = np.append(~heavy[:-1] & heavy[1:], False)
    room = max_bins - heavy.sum() - before_heavy.sum()
    if room < 1 and len(distinct) > max_bins:
        heavy[:], before_heavy[:], room = False, False, max_bins
    light = counts[~heavy].sum()
    cuts, seen, passed = [], 0, 0
    for k in range(len(distinct) - 1):
        seen += 0 if heavy[k] else counts[k]
        full = seen * room >= (passed + 1) * light
        if len(cuts) < max_bins - 1 and (heavy[k] or full or before_heavy[k]):
            cuts.append((distinct[k] + distinct[k + 1]) / 2)
            passed = seen * room // light if light else 0
    return cuts


@pytest.mark.parametrize("n_distinct", [1, 2, 7, 254, 255])
def test_few_distinct_values_get_a_bin_each(n_distinct):
    rng = np.random.default_rng(n_distinct)
    distinct = np.sort(rng.normal(size=n_distinct))
    values = rng.permutation(np.repeat(distinct, rng.integers(1, 40, n_distinct)))
    bins, cuts, n_bins = column(values)
    assert n_bins == n_distinct
    assert (distinct[bins] == values).all()
    assert cuts == pytest.approx((distinct[1:] + distinct[:-1]) / 2, rel=1e-15)


@pytest.mark.parametrize("max_bins", [8, 64, 255])
@pytest.mark.parametrize("draw", ["normal", "exponential", "standard_cauchy"])
def test_bins_of_continuous_values_are_even(draw, max_bins):
    values = getattr(np.random.default_rng(0), draw)(size=20_000)
    bins, _, n_bins = column(values, max_bins=max_bins)
    weights = np.bincount(bins, minlength=n_bins)
    assert 0.95 * max_bins <= n_bins <= max_bins
    assert weights.max() <= 1.1 * weights.mean()
    assert weights[:-1].min() >= 0.9 * weights.mean()


@pytest.mark.parametrize("max_bins", [16, 255])
@pytest.mark.parametrize("shape", ["rounded", "poisson", "zero-inflated", "atoms"])
def test_no_bin_without_a_heavy_value_is_much_heavier_than_the_others(shape, max_bins):
    rng = np.random.default_rng(3)
    continuous = rng.exponential(size=30_000)
    values = {
        "rounded": np.round(rng.normal(size=30_000) * 60),
        "poisson": rng.poisson(400, 30_000).astype(float) * rng.integers(1, 3, 30_000),
        "zero-inflated": np.where(rng.random(30_000) < 0.7, 0.0, continuous),
        "atoms": np.where(rng.random(30_000) < 0.5, np.round(continuous), continuous),
    }[shape]
    bins, _, n_bins = column(values, max_bins=max_bins)
    distinct, counts = np.unique(values, return_counts=True)
    heavy = distinct[counts >= len(values) / max_bins]
    light = ~np.isin(bins, np.unique(bins[np.isin(values, heavy)]))
    weights = np.bincount(bins[light], minlength=n_bins)
    assert weights.max() <= 2 * len(values) / max_bins
    assert n_bins > max_bins / 2


def test_heavy_values_share_a_bin_with_less_than_half_a_bin_of_others():
    rng = np.random.default_rng(5)
    values = np.concatenate([np.full(5000, 2.0), np.full(2000, 0.5), rng.normal(size=5000) * 3])
    bins, _, n_bins = column(values, max_bins=20)
    assert n_bins > 10
    for atom in (2.0, 0.5):
        together = values[bins == bins[values == atom][0]]
        assert (together != atom).sum() < 0.5 * 5000 / 18
        assert together.max() == atom


def test_a_heavy_value_has_a_bin_of_its_own():
    """Five rows below zero, half of the rows at zero: zero is heavier than the mean bin, as `find_cuts` has it."""
    values = np.concatenate([-np.arange(1.0, 6.0), np.zeros(5000), np.random.default_rng(0).exponential(size=5000)])
    bins, _, _ = column(values)
    assert np.unique(values[bins == bins[values == 0.0][0]]).tolist() == [0.0]


def test_columns_of_one_value_or_of_none():
    X = np.column_stack([np.full(30, 4.5), np.full(30, np.nan), np.where(np.arange(30) < 3, np.nan, -1.0)])
    data = bin_data(X)
    assert data.n_bins.tolist() == [1, 0, 1]
    assert (data.bins[0] == 0).all()
    assert (data.bins[1] == MISSING).all()
    assert data.bins[2].tolist() == [MISSING] * 3 + [0] * 27
    assert np.isinf(data.threshold(2, 0))


def test_neighbouring_numbers_are_still_parted():
    values = np.array([1.0, np.nextafter(1.0, 2.0), -1.7e308, 1.7e308, 0.0, 5e-324])
    bins, cuts, _ = column(values)
    assert bins.tolist() == [3, 4, 0, 5, 1, 2]
    ordered = np.sort(values)
    assert ((ordered[:-1] <= cuts) & (cuts < ordered[1:])).all()


def test_the_sample_is_chosen_by_the_number_of_the_row():
    X = np.random.default_rng(0).normal(size=(5000, 3))
    one, again, all_rows = bin_data(X, sample=500), bin_data(X, sample=500, n_jobs=1), bin_data(X, sample=None)
    assert one.cuts.tobytes() == again.cuts.tobytes()
    assert one.bins.tobytes() == again.bins.tobytes()
    assert (one.cuts != all_rows.cuts).any()
    columns = bin_data(X[:, :1].copy(), sample=500)
    assert columns.cuts[0].tobytes() == one.cuts[0].tobytes()
    assert bin_data(X, sample=5000).cuts.tobytes() == all_rows.cuts.tobytes()
    weights = np.bincount(bin_data(X, max_bins=8, sample=1000).bins[0])
    assert weights.max() < 1.5 * weights.min()


def test_single_precision_is_binned_as_the_same_double_numbers():
    X = np.random.default_rng(0).normal(size=(2000, 20)).astype(np.float32)
    X[::7, 3] = np.nan
    for order in "CF":
        single, double = bin_data(np.asarray(X, order=order)), bin_data(X.astype(np.float64))
        assert single.bins.tobytes() == double.bins.tobytes()
        assert single.cuts.tobytes() == double.cuts.tobytes()
