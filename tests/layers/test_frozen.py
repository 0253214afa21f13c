import keras
import pytest

from keras_vit import MLP
from keras_vit.layers.frozen import freeze_parts

pytestmark = pytest.mark.backend


@pytest.mark.parametrize("trainable", [True, False])
def test_parts_are_what_the_layer_is(trainable):
    layer = MLP(8, trainable=trainable)
    layer.build((None, 4))
    assert [part.trainable for part in (layer.fc1, layer.fc2)] == [trainable] * 2
    assert len(layer.trainable_variables) == (4 if trainable else 0)


def test_what_is_frozen_in_a_trained_layer_stays():
    layer = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2, trainable=False), keras.layers.Dense(2)])
    freeze_parts(layer)
    assert [part.trainable for part in layer.layers] == [False, True]
