import keras
import numpy as np
import pytest
from scipy.special import expit

from keras_vit.layers import TopBoxes

pytestmark = pytest.mark.backend


def test_the_best_boxes_come_first_and_end_at_the_image():
    boxes = np.array([[[0.1, 0.1, 0.2, 0.2], [-0.5, 0, 0.5, 1.5], [0.3, 0.3, 0.4, 0.4]]], "float32")
    logits = np.array([[[0, -1], [-2, 3], [1, 2]]], "float32")
    found = np.asarray(TopBoxes(2)([boxes, logits]))
    np.testing.assert_allclose(found[0, 0], [0, 0, 0.5, 1, *expit([-2, 3])], rtol=1e-6)
    np.testing.assert_allclose(found[0, 1], [0.3, 0.3, 0.4, 0.4, *expit([1, 2])], rtol=1e-6)


def test_the_output_is_float32_boxes():
    layer = TopBoxes(2, dtype="float32")
    again = keras.layers.deserialize(keras.layers.serialize(layer))
    assert again.most == 2 and layer.gives == "boxes"
    found = layer([keras.Input((5, 4), dtype="bfloat16"), keras.Input((5, 3), dtype="bfloat16")])
    assert found.shape == (None, 2, 7) and found.dtype == "float32"


def test_bad_input():
    with pytest.raises(ValueError, match="must be 6 boxes or more and their logits. Received: shapes"):
        TopBoxes(6)([np.zeros((1, 5, 4)), np.zeros((1, 5, 3))])
    with pytest.raises(ValueError, match="Received: most=0"):
        TopBoxes(0)
