import keras
import pytest

from keras_vit import vit
from keras_vit.shapes import shapes_only

pytestmark = pytest.mark.backend


def test_a_model_without_memory():
    model = shapes_only(lambda: vit("G/14"))
    assert model.count_params() == 1_844_440_680 and tuple(model.get_layer("head").kernel.shape) == (1664, 1000)


def test_what_is_built_next_has_memory():
    shapes_only(lambda: vit("mu/4", image_size=8))
    assert vit("mu/4", image_size=8)(keras.ops.zeros((1, 8, 8, 3))).shape == (1, 1000)


def test_errors_come_through():
    with pytest.raises(ValueError, match="'B16'"):
        shapes_only(lambda: vit("B16"))
