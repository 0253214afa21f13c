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


def test_masks_of_all_stages():
    features, queries = RNG.normal(size=(2, 3, 4, 8)).astype("float32"), RNG.normal(size=(2, 2, 5, 8)).astype("float32")
    first, layer = RNG.normal(size=(2, 5, 8)).astype("float32"), InstanceMasks((6, 8), 2)
    last = np.asarray(layer(features, queries)).reshape(2, 5, 48)
    stages = np.asarray(layer(features, queries, first))
    assert stages.shape == (2, 3, 5, 48)
    np.testing.assert_allclose(stages[:, 2], last, atol=1e-5)
    shorter = InstanceMasks((6, 8), 1)  # the first block alone
    shorter(features, queries[:, :1])
    own = {variable.path.split("/", 1)[1]: variable for variable in layer.weights}
    for variable in shorter.weights:
        variable.assign(own[variable.path.split("/", 1)[1]])
    np.testing.assert_allclose(np.asarray(shorter(features, queries[:, :1])).reshape(2, 5, 48), stages[:, 1], atol=1e-5)
    vectors = first + np.asarray(layer.fc2(layer.fc1(layer.norm(first.reshape(10, 8))))).reshape(2, 5, 8)
    vectors = np.asarray(layer.queries(vectors.reshape(10, 8))).reshape(2, 5, 8)
    large = np.asarray(keras.ops.image.resize(features, (6, 8), data_format="channels_last")).reshape(2, 48, 8)
    np.testing.assert_allclose(stages[:, 0], vectors @ large.swapaxes(1, 2), atol=1e-4)  # neither blocks nor cells
    inputs = [keras.Input(each.shape[1:]) for each in (features, queries, first)]
    assert layer(*inputs).shape == (None, 3, 5, 48)


def test_boxes_and_masks_are_one_output():
    boxes, masks = RNG.normal(size=(2, 5, 7)).astype("float32"), RNG.normal(size=(2, 5, 3, 4)).astype("float32")
    layer = BoxesAndMasks()
    output = np.asarray(layer([boxes, masks]))
    np.testing.assert_array_equal(output[..., :7], boxes)
    np.testing.assert_array_equal(output[..., 7:].reshape(2, 5, 3, 4), masks)
    assert layer.gives == "instances" and layer.mask_size == (3, 4) and layer.units == 3
    with pytest.raises(ValueError, match="depth"):
        InstanceMasks((6, 8), 0)
