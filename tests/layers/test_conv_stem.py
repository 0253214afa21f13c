import numpy as np
import pytest

from keras_vit import ConvStem
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend

IMAGES = np.random.default_rng(0).normal(size=(2, 9, 8, 3)).astype("float32")


def test_layer(tmp_path):
    make = lambda dtype: ConvStem((4, 8), (2, 1), dtype=dtype)  # noqa: E731
    run_layer_test(make, IMAGES.shape, (2, 5, 4, 8), ["conv0", "norm1"], tmp_path)


def test_halves_the_image_with_each_convolution():
    assert ConvStem((4, 8, 16)).compute_output_shape((None, 32, 48, 3)) == (None, 4, 6, 16)


def test_statistics_are_learnt_in_training_only():
    stem = ConvStem((4,))
    stem(IMAGES)
    before = np.asarray(stem.norms[0].moving_mean)
    stem(IMAGES, training=False)
    np.testing.assert_array_equal(np.asarray(stem.norms[0].moving_mean), before)
    stem(IMAGES, training=True)
    assert np.abs(np.asarray(stem.norms[0].moving_mean) - before).max() > 0


@pytest.mark.parametrize(
    "arguments, message",
    [(((),), r"filters=\(\)"), (((4, 8), (2,)), r"strides=\(2,\)"), (((4, 0),), r"filters\[1\]=0")],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        ConvStem(*arguments)
