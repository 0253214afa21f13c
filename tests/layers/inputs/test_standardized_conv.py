import keras
import numpy as np
import pytest
from keras import ops

from keras_vit import StandardizedConv2D
from keras_vit.explain.relevance import gradients
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
def test_is_a_convolution_by_the_standardized_kernel(rule, divide):
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


def test_layer_of_kernel_one(tmp_path):
    make = lambda dtype: StandardizedConv2D(8, 1, strides=2, dtype=dtype)  # noqa: E731
    run_layer_test(make, IMAGES.shape, (2, 4, 3, 8), tmp_path=tmp_path)


def test_gradients_of_kernel_one_are_those_of_the_convolution():
    layer = StandardizedConv2D(8, 1, strides=2)
    layer.build(IMAGES.shape)
    upstream = np.random.default_rng(2).normal(size=(2, 4, 3, 8)).astype("float32")
    found, expected = (
        gradients(lambda x: ops.sum(layer(x[0], training=training) * upstream), [IMAGES])[0]  # noqa: B023
        for training in (True, False)
    )
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("groups, layout", [(3, "channels_last"), (1, "channels_first")])
def test_what_is_no_plain_product_stays_a_convolution(groups, layout):
    if layout == "channels_first" and keras.backend.backend() == "tensorflow":
        pytest.skip("TensorFlow convolves channels first on GPUs alone")
    layer = StandardizedConv2D(9, 1, groups=groups, data_format=layout)
    images = IMAGES if layout == "channels_last" else np.moveaxis(IMAGES, -1, 1)
    layer.build(images.shape)
    np.testing.assert_allclose(layer(images, training=True), layer(images, training=False), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("strides, padding", [(1, "same"), (2, "same"), ((2, 3), "valid"), (2, "valid")])
def test_a_kernel_of_one_by_one_gives_in_training_what_it_gives_in_inference(strides, padding):
    layer = StandardizedConv2D(8, 1, strides=strides, padding=padding, use_bias=True, activation="tanh")
    layer.build(IMAGES.shape)
    layer.bias.assign(np.arange(8) / 8)
    np.testing.assert_allclose(layer(IMAGES, training=True), layer(IMAGES, training=False), rtol=1e-5, atol=1e-6)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="standardize='bit'"):
        StandardizedConv2D(8, 3, standardize="bit")
