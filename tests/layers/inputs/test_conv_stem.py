import keras
import numpy as np
import pytest

from keras_vit import ConvStem, count_macs
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend

IMAGES = np.random.default_rng(0).normal(size=(2, 9, 8, 3)).astype("float32")


def test_layer(tmp_path):
    make = lambda dtype: ConvStem((4, 8), (2, 1), dtype=dtype)  # noqa: E731
    run_layer_test(make, IMAGES.shape, (2, 5, 4, 8), ["conv0", "norm1"], tmp_path)


def test_residual_branches(tmp_path):
    make = lambda dtype: ConvStem((4, 8), (1, 2), (2, 0), dtype=dtype)  # noqa: E731
    names = ["conv0", "conv0_branch0", "norm0_branch1", "conv1"]
    run_layer_test(make, IMAGES.shape, (2, 5, 4, 8), names, tmp_path)


def test_pooling_and_a_first_convolution_that_whitens(tmp_path):
    make = lambda dtype: ConvStem((8, 6, 4), ("whiten", "pool", 2), (0, 1, 0), dtype=dtype)  # noqa: E731
    run_layer_test(make, IMAGES.shape, (2, 3, 2, 4), ["conv0", "conv1_branch0", "norm2"], tmp_path)


def test_multiply_adds_are_those_on_the_pooled_map():
    stem = ConvStem((8, 6, 4), ("whiten", "pool", 2), (0, 1, 0))
    model = keras.Sequential([keras.Input((8, 8, 3)), stem])
    assert count_macs(model) == 9 * (64 * (3 * 8 + 8 * 6) + 16 * 6 * 6 + 4 * 6 * 4)


def test_pooling_takes_the_largest_of_four():
    stem, plain = ConvStem((4,), ("pool",), norm=False), ConvStem((4,), (1,), norm=False)
    plain(IMAGES), stem(IMAGES)
    stem.set_weights(plain.get_weights())
    full = np.asarray(plain(IMAGES))
    cells = np.pad(full, ((0, 0), (0, 1), (0, 0), (0, 0))).reshape(2, 5, 2, 4, 2, 4)
    np.testing.assert_allclose(np.asarray(stem(IMAGES)), cells.max((2, 4)), rtol=1e-6)


def test_a_branch_adds_to_its_input():
    stem, plain = ConvStem((4,), (1,), (2,)), ConvStem((4,), (1,))
    stem(IMAGES), plain(IMAGES)
    assert [layer.name for layer in stem.norms] == ["norm0", "norm0_branch0", "norm0_branch1"]
    for one, other in zip(plain.convs + plain.norms, stem.convs[:1] + stem.norms[:1], strict=True):
        one.set_weights(other.get_weights())
    last = stem.norms[-1]
    last.gamma.assign([0.0] * 4)
    last.beta.assign([1.0, 2.0, -3.0, 4.0])
    added = np.asarray(stem(IMAGES)) - np.asarray(plain(IMAGES))
    np.testing.assert_allclose(added, np.broadcast_to([1.0, 2.0, 0.0, 4.0], added.shape), atol=1e-5)


def test_without_norm_convolutions_have_biases_and_branches_end_without_relu(tmp_path):
    make = lambda dtype: ConvStem((4, 8), (1, 2), (2, 0), norm=False, dtype=dtype)  # noqa: E731
    run_layer_test(make, IMAGES.shape, (2, 5, 4, 8), ["conv0", "conv0_branch0", "conv1"], tmp_path)
    stem = ConvStem((4,), (1,), (2,), norm=False)
    stem(IMAGES)
    assert [v.path for v in stem.weights if "norm" in v.path] == [] and len(stem.weights) == 6
    plain = ConvStem((4,), (1,), norm=False)
    plain(IMAGES)
    plain.convs[0].set_weights(stem.convs[0].get_weights())
    stem.convs[2].set_weights([np.zeros((3, 3, 4, 4)), np.array([1.0, 2.0, -3.0, 4.0])])
    added = np.asarray(stem(IMAGES)) - np.asarray(plain(IMAGES))
    np.testing.assert_allclose(added, np.broadcast_to([1.0, 2.0, -3.0, 4.0], added.shape), atol=1e-5)


def test_halves_the_image_with_each_convolution():
    assert ConvStem((4, 8, 16)).compute_output_shape((None, 32, 48, 3)) == (None, 4, 6, 16)


def test_statistics_are_learned_in_training_only():
    stem = ConvStem((4,))
    stem(IMAGES)
    before = np.asarray(stem.norms[0].moving_mean)
    stem(IMAGES, training=False)
    np.testing.assert_array_equal(np.asarray(stem.norms[0].moving_mean), before)
    stem(IMAGES, training=True)
    assert np.abs(np.asarray(stem.norms[0].moving_mean) - before).max() > 0


@pytest.mark.parametrize(
    "arguments, message",
    [
        (((),), r"filters=\(\)"),
        (((4, 8), (2,)), r"strides=\(2,\)"),
        (((4, 0),), r"filters\[1\]=0"),
        (((4, 8), None, (1,)), r"branches=\(1,\)"),
        (((4, 4), (1, "whiten")), r"a positive integer or 'pool'. Received: strides\[1\]='whiten'"),
        (
            ((4,), ("whiten",), (0,), False),
            r"needs batch norm.*: strides=\('whiten',\) and norm=False",
        ),
        (((4,), ("pol",)), r"or 'pool' or 'whiten'. Received: strides\[0\]='pol'"),
        (((4,), (1,), (-1,)), r"branches\[0\]"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        ConvStem(*arguments)
