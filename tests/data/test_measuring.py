import numpy as np
import pytest

from keras_vit import Recipe
from keras_vit.config import Data
from keras_vit.data import measuring
from keras_vit.data.memory import Source
from keras_vit.utils.bands import read

RANDOM = np.random.default_rng(0)
IMAGES = (RANDOM.gamma(2.0, 500.0, (9, 12, 14, 3)) + [0, 100, 2000]).astype("float32")


def recipe(value_range, **model):
    return Recipe("a", model, data=Data(value_range=value_range))


@pytest.fixture(params=["arrays", "files"])
def source(request, tmp_path):
    if request.param == "arrays":
        return Source(IMAGES, {}, bands=3)
    for i, image in enumerate(IMAGES):
        np.save(tmp_path / f"{i}.npy", image)
    return Source(np.array([str(tmp_path / f"{i}.npy") for i in range(9)], object), {}, files=True, bands=3)


def test_smallest_and_largest(source):
    found = measuring.settled(recipe("minmax"), source)
    flat = IMAGES.reshape(-1, 3).astype("float64")
    np.testing.assert_array_equal(found["data.value_range"], np.stack([flat.min(0), flat.max(0)], -1))
    assert found["model.value_range"] == [list(pair) for pair in found["data.value_range"]] and len(found) == 2


def test_percentiles_mean_and_deviation(source):
    found = measuring.settled(recipe("percentiles", mean="data", std="data"), source)
    flat = IMAGES.reshape(-1, 3).astype("float64")
    low, high = np.percentile(flat, (0.1, 99.9), axis=0)
    np.testing.assert_allclose(found["data.value_range"], np.stack([low, high], -1), rtol=1e-5)
    shares = (np.clip(flat, low, high) - low) / (high - low)
    np.testing.assert_allclose(found["model.mean"], shares.mean(0), atol=1e-5)
    np.testing.assert_allclose(found["model.std"], shares.std(0), atol=1e-5)


def test_a_stated_range(source, capsys):
    found = measuring.settled(recipe((0, 10_000)), source)
    assert found == {"data.value_range": ((0, 10_000),) * 3, "model.value_range": [[0, 10_000]] * 3}
    with pytest.raises(ValueError, match="must be a pair, or one for each of 3 bands"):
        measuring.settled(recipe(((0, 1), (0, 1))), source)
    measuring.tell(recipe(((0, 1), (0, 2.5)), weights="B/16", channels=2))
    said = capsys.readouterr().out
    assert "bands: 1 from 0 to 1, 2 from 0 to 2.5\n" in said and "repeated for 2 bands" in said
    measuring.tell(recipe(None))
    assert not capsys.readouterr().out


def test_what_cannot_be_measured():
    flat = np.zeros_like(IMAGES)
    with pytest.raises(ValueError, match="must have different numbers. Received: 0 alone in band 1"):
        measuring.settled(recipe("minmax"), Source(flat, {}, bands=3))
    with pytest.raises(ValueError, match="std='data' is for pictures with data.value_range"):
        measuring.settled(recipe(None, std="data"), Source(flat.astype("uint8"), {}))
    assert measuring.settled(recipe(None), Source(flat.astype("uint8"), {})) == {}


def test_pixels_without_data_do_not_count(tmp_path):
    image = IMAGES[0].copy()
    image[3:6, 2:9] = -9999
    np.save(tmp_path / "a.npy", image)
    data = Data(value_range="minmax", no_data=-9999)
    files = Source(np.array([str(tmp_path / "a.npy")], object), {}, files=True, bands=3)
    (low, _), *_ = measuring.settled(Recipe("a", {}, data=data), files)["data.value_range"]
    assert low >= IMAGES[0].min() and read(str(tmp_path / "a.npy"), measuring.bands.reading_of(data)).min() >= 0


@pytest.mark.parametrize("value_range", [(0, 255), (0, 1_000_000)])
def test_a_stated_range_that_does_not_fit_is_told(value_range):
    with pytest.warns(UserWarning, match=r"band 1 has numbers from .* outside of data.value_range, \(0, "):
        measuring.settled(recipe(value_range), Source(IMAGES, {}, bands=3))
