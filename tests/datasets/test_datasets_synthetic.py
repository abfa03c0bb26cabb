import numpy as np
import pytest

from miserly.datasets import bent_sum, circle, four_quadrants, load, noisy_xor


@pytest.mark.parametrize("junk", ["quadrant", "standard"])
def test_two_signs_say_which_dear_column_is_the_target(junk):
    means = np.array((-15, -5, 5, 15))
    data = four_quadrants(4000, seed=0, junk=junk)
    assert data.X.shape == (4000, 6)
    assert list(data.costs.prices.values()) == [1, 1, 10, 10, 10, 10]
    for q, (sx, sz) in enumerate([(1, 1), (-1, 1), (1, -1), (-1, -1)]):
        inside = (data.X[:, 0] == sx) & (data.X[:, 1] == sz)
        assert abs(inside.mean() - 0.25) < 0.03
        assert (data.X[inside, 2 + q] == data.y[inside]).all()
        assert abs(data.y[inside].mean() - means[q]) < 0.15
        junk_values = data.X[~inside, 2 + q]
        assert abs(junk_values.mean() - (means[q] if junk == "quadrant" else 0)) < 0.1
        assert abs(junk_values.std() - 1) < 0.05


def test_unknown_junk_is_refused():
    with pytest.raises(ValueError, match="'quadrant' or 'standard', got 'none'"):
        four_quadrants(10, seed=0, junk="none")


def test_xor_is_in_the_plane_behind_the_projections_and_dear_columns_are_cleaner():
    data = noisy_xor(4000, seed=0)
    assert list(data.costs.prices.values()) == [1, 1, 1, 2, 5, 15, 25, 70, 100, 1000]
    assert set(data.y) == {-1, 1}
    assert abs(data.y.mean()) < 0.06
    plane = np.linalg.lstsq(data.X[:, 8:], data.X, rcond=None)[0]
    residual = (data.X - data.X[:, 8:] @ plane).std(axis=0)
    assert residual[:3].min() > 0.8
    assert residual[7] < 0.5


def test_xor_columns_are_useless_one_by_one():
    data = noisy_xor(20000, seed=3)
    assert np.abs(data.X.T @ data.y / len(data.y)).max() < 0.1


def test_circle_is_a_blob_in_a_ring():
    data = circle(2000, seed=0)
    radius = np.hypot(*data.X.T)
    assert (data.y == 1).sum() == 1000
    assert abs(radius[data.y == -1].mean() - 3) < 0.05
    assert abs(radius[data.y == -1].std() - 0.5) < 0.05
    assert abs((data.X[data.y == 1] ** 2).mean() - 1) < 0.1
    assert set(data.costs.prices.values()) == {1.0}


@pytest.mark.parametrize("make", [four_quadrants, bent_sum, noisy_xor, circle])
def test_a_seed_gives_its_bits_and_another_seed_other_rows(make):
    one, again, other = make(50, 0), make(50, 0), make(50, 1)
    assert one.X.tobytes() == again.X.tobytes()
    assert one.y.tobytes() == again.y.tobytes()
    assert (one.X != other.X).any(axis=1).all()


@pytest.mark.parametrize(
    ("name", "rows"), [("four_quadrants", 1000), ("noisy_xor", 1000), ("circle", 600), ("yahoo_like", None)]
)
def test_load_knows_every_set_and_its_usual_size(name, rows):
    data = load(name) if rows else load(name, n=7)
    assert data.name == name
    assert data.X.shape[1] == len(data.costs.features)
    assert len(data.X) == rows if rows else data.qid[-1] == 6
    assert len(load(name, n=5, seed=1).y) >= 5


def test_load_lists_the_names_it_knows():
    with pytest.raises(ValueError, match=r"'iris'\. Use one of four_quadrants, noisy_xor, circle, yahoo_like"):
        load("iris")
