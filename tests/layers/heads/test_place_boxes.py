import keras
import numpy as np
import pytest

from keras_vit.layers import Objectness, PlaceBoxes

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)


def still(layer, x):
    """Returns a built layer all of whose weights are 0."""
    layer(x)
    layer.set_weights([np.zeros_like(weight) for weight in layer.get_weights()])
    return layer


def test_a_box_is_at_the_lower_right_corner_of_its_patch():
    x = np.zeros((1, 6, 8), "float32")
    found = np.asarray(still(PlaceBoxes((2, 3)), x)(x)).reshape(2, 3, 4)
    top, left, bottom, right = np.moveaxis(found, -1, 0)
    np.testing.assert_allclose((top + bottom)[:, 0] / 2, [0.5, 1], atol=2e-4)
    np.testing.assert_allclose((left + right)[0] / 2, [1 / 3, 2 / 3, 1], atol=2e-4)
    np.testing.assert_allclose(bottom - top, 1 / 2, atol=2e-4)
    np.testing.assert_allclose(right - left, 1 / 3, atol=2e-4)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "bfloat16"])
def test_places_are_float32_under_every_policy(policy):
    """In bfloat16 the logit of 0.99 would be off by a third, and that of 1 infinite."""
    x, grid = np.zeros((1, 60 * 60, 8), "float32"), (60, 60)
    found, wanted = (np.asarray(still(PlaceBoxes(grid, dtype=dtype), x)(x)) for dtype in (policy, "float32"))
    assert found.dtype == "float32"
    np.testing.assert_array_equal(found, wanted)
    assert PlaceBoxes(grid, dtype=policy)(keras.Input((3600, 8))).dtype == "float32"


def test_objectness_learns_without_changing_its_features():
    features = keras.layers.Dense(8)
    inputs = keras.Input((6, 4))
    model = keras.Model(inputs, Objectness(name="objects")(features(inputs)))
    x, y = RNG.normal(size=(2, 6, 4)).astype("float32"), np.ones((2, 6), "float32")
    before = [np.asarray(weight) for weight in model.get_weights()]
    model.compile(keras.optimizers.SGD(1.0), "mse")
    model.train_on_batch(x, y)
    moved = [not np.array_equal(*pair) for pair in zip(before, model.get_weights())]
    assert moved[:2] == [False, False] and all(moved[3::2])


@pytest.mark.parametrize("layer", [PlaceBoxes((2, 3)), Objectness()])
def test_the_configuration_and_the_shapes(layer, tmp_path):
    again = keras.layers.deserialize(keras.layers.serialize(layer))
    assert again.get_config() == layer.get_config()
    model = keras.Sequential([keras.Input((6, 8)), layer])
    assert tuple(layer.compute_output_shape((2, 6, 8))) == (2, *model.output_shape[1:])
    model.save(tmp_path / "layer.keras")
    x = RNG.normal(size=(2, 6, 8)).astype("float32")
    loaded = keras.models.load_model(tmp_path / "layer.keras")
    np.testing.assert_array_equal(np.asarray(loaded(x)), np.asarray(model(x)))


def test_bad_input():
    with pytest.raises(ValueError, match="a patch for each place of \\(2, 3\\). Received: 5 patches"):
        PlaceBoxes((2, 3))(np.zeros((1, 5, 8)))
    with pytest.raises(ValueError, match="`grid` must be .*Received"):
        PlaceBoxes((0, 3))
