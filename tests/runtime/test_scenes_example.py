"""The example `examples/scenes`: descriptors of images whose answer is known, the cache, and running on demand."""

import math
import tarfile

import numpy as np
import pytest

cv2 = pytest.importorskip("cv2", reason="needs the extra `scenes`")
pytest.importorskip("skimage", reason="needs the extra `scenes`")

import miserly as ms  # noqa: E402
from examples.scenes import __main__ as command  # noqa: E402
from examples.scenes import descriptors, extractors  # noqa: E402
from examples.scenes.describing import describe  # noqa: E402
from examples.scenes.images import MADE_UP, generate, read_images  # noqa: E402
from miserly.experiments.papers import scenes  # noqa: E402

GREY = np.full((200, 200), 77, np.uint8)
RISING = np.tile(np.linspace(0, 199, 200).astype(np.uint8), (200, 1))
SIZES = (3, 3, 1)


def waves(length):
    """Horizontal stripes."""
    down = np.arange(200)[:, None] * (2 * np.pi / length)
    return np.broadcast_to(128 + 100 * np.sin(down), (200, 200)).astype(np.uint8)


def test_one_grey_fills_one_place_of_the_histogram():
    found = descriptors.histogram(GREY)
    assert found[77 // 4] == 1.0
    assert found.sum() == 1.0
    half = descriptors.histogram(np.where(np.arange(200) < 100, 0, 255)[None].repeat(200, 0).astype(np.uint8))
    assert half[[0, 63]].tolist() == pytest.approx([math.sqrt(0.5)] * 2)


def test_a_tiny_image_keeps_what_is_where():
    assert not descriptors.tiny(GREY).any()
    split = np.where(np.arange(208) < 104, 0, 200)[None].repeat(208, 0).astype(np.uint8)
    found = descriptors.tiny(split).reshape(16, 16)
    np.testing.assert_allclose(found[:, :8], -1 / 16, atol=1e-6)
    np.testing.assert_allclose(found[:, 8:], 1 / 16, atol=1e-6)


def test_gradients_point_where_it_gets_brighter():
    assert not descriptors.gradients(GREY).any()
    for turned, direction in ((RISING, 0), (RISING.T, 2), (RISING[:, ::-1], 4), (RISING.T[::-1], 6)):
        found = descriptors.gradients(np.ascontiguousarray(turned)).reshape(16, 8)
        np.testing.assert_allclose(found[:, direction], 0.25, atol=1e-3)
        assert np.delete(found, direction, axis=1).max() < 0.01


@pytest.mark.parametrize(("setting", "all_around"), [(descriptors.LBP, 57), (descriptors.LBP_WIDE, 16)])
def test_patterns_of_a_flat_image_are_all_one(setting, all_around):
    """No neighbour is darker, but for the border, where outside is black."""
    found = descriptors.lbp(GREY, *setting).reshape(5, -1)
    assert found.shape[1] == setting[-1]
    assert found[0].argmax() == all_around
    assert found[0, all_around] > 0.95
    np.testing.assert_allclose((found**2).sum(axis=1), [1, 0.25, 0.25, 0.25, 0.25], rtol=1e-5)


@pytest.mark.parametrize(("cell", "n_blocks"), [(descriptors.HOG_COARSE, 3), (descriptors.HOG_FINE, 7)])
def test_oriented_gradients(cell, n_blocks):
    assert not descriptors.hog_of(GREY, cell).any()
    found = descriptors.hog_of(waves(20), cell).reshape(n_blocks**2, 4, 9)
    assert (found.mean(axis=(0, 1)).argmax()) == 4


@pytest.mark.parametrize(("length", "place"), [(40, 0), (20, 1)])
def test_gist_finds_the_wavelength_and_the_direction(length, place):
    transformed = descriptors.spectrum(waves(length))
    strength = descriptors.gist(transformed, descriptors.WAVELENGTHS_LOW).reshape(2, 8, 16).mean(axis=2)
    assert np.unravel_index(strength.argmax(), strength.shape) == (place, 4)
    assert not descriptors.gist(descriptors.spectrum(GREY), descriptors.WAVELENGTHS_HIGH).any()


def test_filters_find_nothing_in_a_flat_image():
    assert np.abs(descriptors.responses(GREY)).max() < 0.1
    assert descriptors.responses(GREY).shape == (100 * 100, 28)
    striped = np.abs(descriptors.responses(waves(12))).std(axis=0)
    assert striped[6] > 10 * striped[0]


@pytest.mark.parametrize("size", [descriptors.SIFT_FINE, descriptors.SIFT_COARSE])
def test_sift_stands_on_a_grid(size):
    rows, columns = descriptors.grid_shape((200, 120))
    found = descriptors.dense_sift(waves(30)[:, :120].copy(), size)
    assert found.shape == (rows * columns, 128)
    np.testing.assert_allclose((found**2).sum(axis=1), 1.0, atol=1e-4)


def test_rows_take_the_nearest_word():
    rng = np.random.default_rng(0)
    rows, words = rng.normal(size=(40, 5)).astype(np.float32), rng.normal(size=(7, 5)).astype(np.float32)
    by_hand = [min(range(7), key=lambda k: np.sum((row - words[k]) ** 2)) for row in rows]
    assert descriptors.nearest(rows, words).tolist() == by_hand


def test_pyramids_count_words_where_they_stand():
    """One word in the left half, another in the right."""
    words = np.array([[0, 0, 1, 1]] * 4)
    assert descriptors.bag(words, 3).tolist() == pytest.approx([math.sqrt(0.5), math.sqrt(0.5), 0])
    found = descriptors.pyramid(words, 3)
    whole, quarters, sixteenths = found[:3], found[3:15].reshape(2, 2, 3), found[15:].reshape(4, 4, 3)
    assert (whole**2).tolist() == pytest.approx([0.125, 0.125, 0])
    assert (quarters[:, 0] ** 2).tolist() == [pytest.approx([1 / 16, 0, 0])] * 2
    assert (sixteenths[:, 3] ** 2).tolist() == [pytest.approx([0, 1 / 32, 0])] * 4
    assert (found**2).sum() == pytest.approx(1.0)


def test_bands_run_from_the_sky_to_the_ground():
    words = np.repeat([0, 0, 1, 2], 2)[:, None].repeat(6, axis=1)
    assert descriptors.bands(words, 3).reshape(4, 3).tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_what_is_no_image_is_refused():
    with pytest.raises(ValueError, match="no image"):
        descriptors.decode(b"nothing")


# ---- images, extractors, cache ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def images():
    return generate(8, seed=5)


@pytest.fixture(scope="module")
def cached(tmp_path_factory, images):
    folder = tmp_path_factory.mktemp("scenes")
    place, found = describe(images, folder, n_learnt=1, n_profiled=4)
    return folder, place, found


def test_a_folder_and_a_tar_file_hold_the_same(tmp_path, images):
    for name, raw in zip(images.names, images.raw):
        path = tmp_path / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
    with tarfile.open(tmp_path / "set.tar", "w") as archive:
        archive.add(tmp_path / "set", ".")
    of_folder, of_tar = read_images(tmp_path / "set"), read_images(tmp_path / "set.tar")
    assert of_folder.raw == of_tar.raw
    assert sorted(set(of_folder.labels)) == sorted(MADE_UP)
    assert sorted(of_folder.raw) == sorted(images.raw)
    with pytest.raises(FileNotFoundError, match="a folder with one for each scene"):
        read_images(tmp_path / "set" / MADE_UP[0] / "empty")


def test_extractors_keep_their_word_twice_alike(cached, images):
    _, _, found = cached
    one, again = (extractors.extract(found, images.raw[3]) for _ in range(2))
    assert one.dtype == np.float32
    assert len(one) == sum(len(e.yields) for e in found)
    np.testing.assert_array_equal(one, again)
    assert np.isfinite(one).all()


def test_descriptors_are_kept_and_read(cached, images):
    folder, place, found = cached
    data = scenes.described(folder)
    assert data.X.shape == (len(images.raw), sum(len(e.yields) for e in found))
    np.testing.assert_array_equal(data.X[5], extractors.extract(found, images.raw[5]))
    written = (place / "descriptors.npz").stat().st_mtime_ns
    describe(images, folder, n_learnt=1, n_profiled=4)
    assert (place / "descriptors.npz").stat().st_mtime_ns == written
    assert sorted(p.name for p in place.iterdir()) == ["codebooks.npz", "costs.toml", "descriptors.npz", "profile.txt"]


def test_the_dense_pass_is_paid_once(cached):
    costs = scenes.described(cached[0]).costs
    assert costs.needs["pyramid_fine_0"] == ("image", "sift_fine", "pyramid_fine")
    owned = costs.marginal(["image", "sift_fine"])
    assert owned["pyramid_fine_0"] < 0.2 * costs.price(["pyramid_fine_0"])
    assert costs.price(["tiny_0"]) < 0.2 * costs.price(["pyramid_coarse_0"])


def test_on_demand_pays_what_the_table_says(cached, images, capsys, monkeypatch):
    monkeypatch.setattr(command, "N_ROUNDS", 10)
    monkeypatch.setattr(command, "TRADEOFFS", 3)
    folder, _, found = cached
    data = scenes.described(folder)
    problem = scenes.svm_problem(data, 0, scenes.kernel_prices(data, 12), SIZES)
    plan = command.choose(command.sweep(problem)).plan_
    test = scenes.deal(data, 0, *SIZES)[-1]
    kit = [*found, *command.svm_extractors(data, SIZES)]
    seen = command.run(plan, problem, kit, [images.raw[i] for i in test], np.arange(len(test)))
    assert seen["priced"] == pytest.approx(seen["table"])
    assert seen["accuracy"] == np.mean(plan.predict(problem.split.test.X) == problem.split.test.y)
    assert "times less" in capsys.readouterr().out
    assert isinstance(plan, ms.Plan)
