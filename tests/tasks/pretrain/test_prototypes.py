import keras
import numpy as np
import pytest

from keras_vit.tasks.pretrain.prototypes import PrototypeHead

pytestmark = pytest.mark.backend
X = np.random.default_rng(0).normal(size=(5, 6)).astype("float32")


def head(**more):
    keras.utils.set_random_seed(1)
    made = PrototypeHead(9, hidden=7, bottleneck=4, **more)
    made.build((None, 6))
    for variable in made.weights:  # biases too
        variable.assign(np.random.default_rng(2).normal(size=variable.shape))
    return made


def expected(made):
    from scipy.special import erf

    x = np.float64(X)
    for i, layer in enumerate(made.dense):
        x = x @ np.asarray(layer.kernel, "float64") + np.asarray(layer.bias)
        x = x * (1 + erf(x / np.sqrt(2))) / 2 if i < 2 else x
    kernel = np.asarray(made.kernel, "float64")
    return x / np.linalg.norm(x, axis=1, keepdims=True) @ (kernel / np.linalg.norm(kernel, axis=0))


def test_outputs_are_cosines():
    made = head()
    found = keras.ops.convert_to_numpy(made(X))
    np.testing.assert_allclose(found, expected(made), atol=1e-5)
    assert found.shape == (5, 9) == made.compute_output_shape((5, 6)) and np.abs(found).max() <= 1
    np.testing.assert_allclose(keras.ops.convert_to_numpy(made(X, trained=0.0)), found, atol=1e-6)
    made.kernel.assign(3 * made.kernel)  # only the direction of a prototype counts
    np.testing.assert_allclose(keras.ops.convert_to_numpy(made(X)), found, atol=1e-5)


def test_cosines_are_whole_in_half_precision():
    exact, half = head(), head(dtype="mixed_bfloat16")
    found = half(X)
    assert keras.backend.standardize_dtype(found.dtype) == "float32"
    np.testing.assert_allclose(keras.ops.convert_to_numpy(found), expected(exact), atol=0.05)
    alike = keras.ops.convert_to_numpy(half(np.tile(X[:1], (2, 1)), trained=1.0))
    np.testing.assert_array_equal(alike[0], alike[1])


def test_zeros_have_no_direction():
    made = head()
    for layer in made.dense:
        layer.bias.assign(np.zeros(layer.bias.shape))
    assert np.isfinite(keras.ops.convert_to_numpy(made(0 * X))).all()


def test_the_configuration_is_that_of_the_arguments():
    again = PrototypeHead.from_config(head().get_config())
    assert (again.prototypes, again.hidden, again.bottleneck) == (9, 7, 4)
