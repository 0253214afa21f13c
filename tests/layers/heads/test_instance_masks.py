import keras
import numpy as np
import pytest

from keras_vit.layers import BoxesAndMasks, InstanceMasks

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)


def test_masks_are_products_of_queries_and_cells(tmp_path):
    features, queries = RNG.normal(size=(2, 3, 4, 8)).astype("float32"), RNG.normal(size=(2, 2, 5, 8)).astype("float32")
    inputs = [keras.Input(each.shape[1:]) for each in (features, queries)]
    model = keras.Model(inputs, InstanceMasks((6, 8), 2, name="masks")(*inputs))
    assert model.output_shape == (None, 5, 6, 8)
    found = np.asarray(model([features, queries]))
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(np.asarray(again([features, queries])), found)
    queries[:, 0] = 0  # of the first block: the last counts
    np.testing.assert_array_equal(np.asarray(model([features, queries])), found)
    model.get_layer("masks").bias.assign([2.0])
    np.testing.assert_allclose(np.asarray(model([features, queries])), found + 2, atol=1e-5)


def test_boxes_and_masks_are_one_output():
    boxes, masks = RNG.normal(size=(2, 5, 7)).astype("float32"), RNG.normal(size=(2, 5, 3, 4)).astype("float32")
    layer = BoxesAndMasks()
    output = np.asarray(layer([boxes, masks]))
    np.testing.assert_array_equal(output[..., :7], boxes)
    np.testing.assert_array_equal(output[..., 7:].reshape(2, 5, 3, 4), masks)
    assert layer.gives == "instances" and layer.size == (3, 4)
    with pytest.raises(ValueError, match="depth"):
        InstanceMasks((6, 8), 0)
