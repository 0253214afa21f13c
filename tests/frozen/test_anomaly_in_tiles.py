"""AnomalyDetector on pictures larger than the model."""

import keras
import numpy as np
import pytest
from scipy.ndimage import label

import keras_vit
from keras_vit import AnomalyDetector
from keras_vit.frozen import anomaly
from keras_vit.utils.warned import LeftOut

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)


def normal(count, *sides):
    return np.clip(RNG.normal(80, 8, (count, *sides, 3)), 0, 255).astype("uint8")


GOOD = normal(4, 64, 96)


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    return keras_vit.vit("mu/4", image_size=32, num_classes=0, depth=1, pooling="gap")


@pytest.fixture(scope="module")
def detector(model):
    return AnomalyDetector(model, tiles=True).fit(GOOD)


@pytest.mark.parametrize("place", [(24, 24), (44, 72), (0, 0), (56, 88), (28, 0), (20, 40)])
def test_a_defect_is_found_once_also_on_a_seam(detector, place):
    """As anomalib#1958 and #358: the map is that of the picture, and a defect of 8 pixels is in it at one place."""
    row, column = place
    bad = GOOD[0].copy()
    bad[row : row + 8, column : column + 8] = (250, 0, 0)
    found = detector.score(bad)
    (heat,) = found.maps
    assert heat.shape == (16, 24) and found.images[0] > detector.threshold
    parts, count = label(heat > heat.max() / 2, np.ones((3, 3)))
    assert count == 1
    rows, columns = np.nonzero(parts)
    assert rows.min() >= row // 4 - 1 and rows.max() <= (row + 8) // 4
    assert columns.min() >= column // 4 - 1 and columns.max() <= (column + 8) // 4


def test_a_small_defect_counts_in_a_large_picture_as_in_one_tile(detector):
    """The largest hundredth of a large picture would be so many patches that four are lost in them."""
    large = normal(1, 320, 640)[0]
    assert detector.score(large).images[0] < 2 * detector.threshold
    large[100:108, 200:208] = (250, 0, 0)
    found = detector.score(large)
    assert found.maps[0].shape == (80, 160) and found.images[0] > 10 * detector.threshold
    assert found.images[0] == pytest.approx(detector.score(large[88:120, 188:220]).images[0], rel=0.1)


def test_a_picture_of_one_tile_is_scored_as_without_tiles(model):
    good, new = normal(6, 32, 32), normal(3, 32, 32)
    plain, tiled = (AnomalyDetector(model, tiles=tiles).fit(good, patches=50) for tiles in (False, True))
    assert tiled.threshold == pytest.approx(plain.threshold, abs=1e-5)
    np.testing.assert_allclose(tiled.score(new).images, plain.score(new).images, atol=1e-5)
    np.testing.assert_allclose(np.stack(tiled.score(new).maps), plain.score(new).maps, atol=1e-5)


def test_a_remembered_picture_has_no_distance(detector):
    found = detector.score(GOOD)
    np.testing.assert_allclose(np.stack(found.maps), 0, atol=1e-5)


def test_pictures_of_unequal_sizes_and_damaged_ones(model, detector, tmp_path):
    (tmp_path / "bad.png").write_bytes(b"no image")
    np.save(tmp_path / "a.npy", normal(1, 50, 41)[0])
    files = [tmp_path / "a.npy", tmp_path / "bad.png", GOOD[0]]
    with pytest.raises(ValueError, match="bad.png' is not a PNG"):
        detector.score(files)
    with pytest.warns(LeftOut, match="Left out 1 of 3 images"):
        found = detector.score(files, bad_images="skip")
    assert [heat.shape for heat in found.maps] == [(13, 11), (1, 1), (16, 24)]
    assert np.isnan(found.images).tolist() == [False, True, False] and np.isnan(found.maps[1]).all()
    with pytest.warns(LeftOut):
        fitted = AnomalyDetector(model, tiles=True).fit([*GOOD, tmp_path / "bad.png"], bad_images="skip")
    np.testing.assert_allclose(fitted.score(GOOD[:1]).images, 0, atol=1e-5)
    with pytest.warns(LeftOut), pytest.raises(ValueError, match="Two normal images or more.*Received: 1 that can be"):
        AnomalyDetector(model, tiles=True).fit(files[1:], bad_images="skip")


def test_it_is_saved_with_its_tiles(model, tmp_path):
    detector = AnomalyDetector(model, tiles={"size": 64, "overlap": 0.5}).fit(GOOD)
    detector.save(tmp_path / "a.keras")
    again = AnomalyDetector.load(tmp_path / "a.keras")
    new = normal(1, 70, 101)[0]
    found = again.score(new)
    assert again.threshold == detector.threshold and found.maps[0].shape == (9, 13)
    np.testing.assert_allclose(found.images, detector.score(new).images, atol=1e-5)
    facts = again.model.layers[-1].export_facts(again.model.output_shape)
    assert facts["tiles"].pop("join").startswith("where tiles overlap, the mean of their distances")
    assert facts["tiles"] == {"size": [64, 64], "overlap": 0.5, "step": [8, 8]} and facts["score"]["largest"] == 1


def test_few_patches_of_many_pictures_are_in_memory(model, monkeypatch):
    """As anomalib#2207, which ran out of memory with tiles."""
    monkeypatch.setattr(anomaly, "SAMPLE", 200)
    detector = AnomalyDetector(model, tiles=True).fit(GOOD)
    assert detector.model.layers[-1].tokens == 200
    bad = GOOD[0].copy()
    bad[24:32, 24:32] = (250, 0, 0)
    assert detector.score(bad).images[0] > detector.threshold
    assert AnomalyDetector(model, tiles=True).fit(GOOD, patches=1000).model.layers[-1].tokens == 1000
    with pytest.raises(ValueError, match="`patches` must be at most the .* of 4 images. Received: patches=100000"):
        AnomalyDetector(model, tiles=True).fit(GOOD, patches=100_000)


def test_bad_options(model):
    with pytest.raises(ValueError, match="tiles.overlap must be a number from 0 to 0.5. Received: 0.9"):
        AnomalyDetector(model, tiles={"overlap": 0.9})
    with pytest.raises(ValueError, match="a multiple of 8 x 8 pixels"):
        AnomalyDetector(model, tiles={"size": 70})
