import keras
import numpy as np
import pytest

from keras_vit import StandardizedConv2D
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend

IMAGES = np.random.default_rng(0).normal(size=(2, 7, 5, 3)).astype("float32")


def test_layer(tmp_path):
    make = lambda dtype: StandardizedConv2D(8, 3, strides=2, standardize="timm", dtype=dtype)  # noqa: E731
    run_layer_test(make, IMAGES.shape, (2, 4, 3, 8), tmp_path=tmp_path)


@pytest.mark.parametrize(
    "rule, divide",
    [("google", lambda w: w.std((0, 1, 2)) + 1e-5), ("timm", lambda w: np.sqrt(w.var((0, 1, 2)) + 1e-8))],
)
def test_is_a_convolution_by_the_standardised_kernel(rule, divide):
    layer = StandardizedConv2D(8, 3, strides=2, standardize=rule)
    layer.build(IMAGES.shape)
    small = 1e-4 * np.random.default_rng(1).normal(1, 1, layer.kernel.shape)  # so that what is added shows
    layer.kernel.assign(small)
    kernel = np.asarray(layer.kernel, "float64")
    plain = keras.layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)
    plain.build(IMAGES.shape)
    plain.kernel.assign((kernel - kernel.mean((0, 1, 2))) / divide(kernel))
    np.testing.assert_allclose(np.asarray(layer(IMAGES)), np.asarray(plain(IMAGES)), atol=2e-4)
    assert layer.bias is None


@pytest.mark.parametrize("strides, padding", [(1, "same"), (2, "same"), ((2, 3), "valid"), (2, "valid")])
def test_a_kernel_of_one_by_one_gives_in_training_what_it_gives_in_inference(strides, padding):
    layer = StandardizedConv2D(8, 1, strides=strides, padding=padding, use_bias=True, activation="tanh")
    layer.build(IMAGES.shape)
    layer.bias.assign(np.arange(8) / 8)
    np.testing.assert_allclose(layer(IMAGES, training=True), layer(IMAGES, training=False), rtol=1e-5, atol=1e-6)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="standardize='bit'"):
        StandardizedConv2D(8, 3, standardize="bit")
