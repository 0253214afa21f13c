import keras
import numpy as np
import pytest

from keras_vit import Rescale, vit
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend

PIXELS = np.random.default_rng(0).integers(0, 256, (2, 3, 4, 3)).astype("uint8")


def test_layer(tmp_path):
    make = lambda dtype: Rescale((0.1, 0.2, 0.3), 0.5, {"resize": "direct"}, dtype=dtype)  # noqa: E731
    run_layer_test(make, PIXELS.shape, PIXELS.shape, tmp_path=tmp_path)


@pytest.mark.parametrize("mean, std", [(0.5, 0.5), ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), (0.1, (1, 2, 3))])
def test_takes_pixels_to_mean_and_deviation(mean, std):
    found = np.asarray(Rescale(mean, std)(PIXELS))
    np.testing.assert_allclose(found, (PIXELS / 255 - np.array(mean)) / np.array(std), atol=1e-6)


@pytest.mark.parametrize("value_range", [(0, 4095), (-1024, 3071), (0, 1), [0.0, 65535.0]])
def test_a_range_becomes_zero_to_one_before_mean_and_deviation(value_range):
    low, high = value_range
    images = np.linspace(low, high, 2 * 3 * 4 * 3).reshape(2, 3, 4, 3)
    layer = Rescale((0.1, 0.2, 0.3), 0.5, value_range=value_range)
    for each in (layer, Rescale.from_config(layer.get_config())):
        wanted = ((images - low) / (high - low) - (0.1, 0.2, 0.3)) / 0.5
        np.testing.assert_allclose(np.asarray(each(images)), wanted, atol=2e-6)
    old = {name: value for name, value in layer.get_config().items() if name != "value_range"}  # as in older files
    np.testing.assert_array_equal(Rescale.from_config(old)(PIXELS), Rescale((0.1, 0.2, 0.3), 0.5)(PIXELS))


def test_images_of_other_channels_are_an_error_before_the_first_block():
    model = vit("mu/4", image_size=8, depth=1)
    for shape in ((2, 8, 8, 1), (2, 8, 8), (2, 8, 8, 4)):
        with pytest.raises(ValueError, match=r"\(batch, height, width, 3\)|incompatible"):
            model(np.zeros(shape))
    with pytest.raises(ValueError, match=r"must have the shape \(batch, height, width, 3\). Received: .*8, 8, 1\)"):
        model.predict(np.zeros((2, 8, 8, 1)), verbose=0)


def test_a_range_of_each_band_clips():
    pairs = [(0, 10), (-5, 5), (100, 4000)]
    layer = Rescale((0.1, 0.2, 0.3), (0.5, 1.0, 2.0), value_range=pairs)
    images = np.random.default_rng(0).uniform(-50, 5000, (2, 3, 4, 3)).astype("float32")
    low, high = np.array(pairs, "float64").T
    expected = ((np.clip(images, low, high) - low) / (high - low) - [0.1, 0.2, 0.3]) / [0.5, 1.0, 2.0]
    np.testing.assert_allclose(keras.ops.convert_to_numpy(layer(images)), expected, atol=1e-5)
    again = Rescale.from_config(layer.get_config())
    assert again.value_range == [[0, 10], [-5, 5], [100, 4000]] and again.limits == ((0, -5, 100), (10, 5, 4000))
    np.testing.assert_array_equal(*map(keras.ops.convert_to_numpy, (again(images), layer(images))))


def test_keeps_what_is_known():
    layer = Rescale(metadata={"source": "a file", "evaluation": {"resize": "crop"}})
    assert type(layer).from_config(layer.get_config()).metadata == layer.metadata
    listed = Rescale(metadata={"labels": np.array(["a", "b"])}).get_config()["metadata"]["labels"]
    assert listed == ["a", "b"] and type(listed) is list
    assert Rescale().metadata == {} and keras.saving.get_registered_name(Rescale) == "keras_vit>Rescale"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(std=0), "std=0"),
        (dict(value_range=(255, 0)), r"value_range=\(255, 0\)"),
        (dict(value_range=255), "value_range=255"),
        (dict(value_range=[(0, 1), (3, 2)]), r"such a pair for each band"),
        (
            dict(value_range=[(0, 1), (0, 2)]),
            r"one for each of 3 channels. Received: value_range=\[\[0",
        ),
        (dict(value_range=(0, float("inf"))), r"value_range=\(0, inf\)"),
        (dict(mean=float("nan")), "mean=nan"),
        (dict(mean=(0.5, 0.5)), r"3 channels.*\[0.5, 0.5\]"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Rescale(**arguments)(PIXELS)


@pytest.mark.parametrize("mean", [1 / 255, 1 / 127.5, 127.5, (123.7, 116.8, 103.9)])
def test_a_factor_and_a_mean_in_pixels_are_refused(mean):
    with pytest.raises(ValueError, match=r"`mean` must be the mean .* on a scale of 0 to 1.*keras.layers.Rescaling"):
        Rescale(mean)
