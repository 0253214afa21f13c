import keras
import numpy as np
import pytest

from keras_vit import Rescale
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
        (dict(mean=float("nan")), "mean=nan"),
        (dict(mean=(0.5, 0.5)), r"3 channels.*\[0.5, 0.5\]"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Rescale(**arguments)(PIXELS)
