import keras
import numpy as np
import pytest

from keras_vit.layers import SetBoxes, SetHead

pytestmark = pytest.mark.backend


def test_the_head_returns_edges_and_logits():
    head = SetHead(3, class_layers=2)
    tokens = np.random.default_rng(0).normal(size=(2, 4, 5, 8)).astype("float32")
    found = np.asarray(head(tokens))
    assert found.shape == (2, 4, 5, 8)

    def dense(x, layers):
        for i, layer in enumerate(layers):
            x = x @ np.asarray(layer.kernel) + np.asarray(layer.bias)
            x = np.maximum(x, 0) if i < len(layers) - 1 else x
        return x

    assert (len(head.classes), len(head.boxes)) == (2, 3)
    np.testing.assert_allclose(found[..., 4:], dense(tokens, head.classes), atol=1e-5)
    x, y, width, height = np.moveaxis(1 / (1 + np.exp(-dense(tokens, head.boxes))), -1, 0)
    want = np.stack([y - height / 2, x - width / 2, y + height / 2, x + width / 2], -1)
    np.testing.assert_allclose(found[..., :4], want, atol=1e-5)
    again = keras.layers.deserialize(keras.layers.serialize(head))
    assert (again.units, again.class_layers) == (3, 2)
    assert SetHead(3, dtype="mixed_bfloat16")(keras.Input((4, 5, 8))).dtype == "float32"


def test_boxes_are_those_of_the_last_block():
    found = np.zeros((1, 2, 3, 7), "float32")
    found[0, 1, 0] = [-0.1, 0.2, 0.5, 1.2, 2, 1, 0]
    got = np.asarray(SetBoxes()(found))
    assert got.shape == (1, 3, 6)
    share = np.exp([2, 1, 0]) / np.exp([2, 1, 0]).sum()
    np.testing.assert_allclose(got[0, 0], [0, 0.2, 0.5, 1, *share[:2]], rtol=1e-5)
    np.testing.assert_allclose(got[0, 1:, 4:], 1 / 3, rtol=1e-6)
