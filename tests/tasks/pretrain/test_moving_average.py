import keras
import numpy as np
import pytest

from keras_vit.tasks.pretrain.moving_average import MovingAverage

pytestmark = pytest.mark.backend


class Outer(keras.layers.Layer):
    """A layer in half precision around the average."""

    def __init__(self, pairs):
        super().__init__(dtype="mixed_bfloat16")
        self.follow = MovingAverage(pairs)

    def call(self, x):
        return self.follow(keras.ops.convert_to_tensor(0.999, "float32"))


def test_weights_are_averaged_in_full_precision():
    layers = [keras.layers.Dense(3, dtype="mixed_bfloat16") for _ in range(2)]
    for number, layer in enumerate(layers):
        layer.build((None, 2))
        layer.set_weights([np.full((2, 3), 1.0 + number), np.full(3, 0.25 + number)])
    Outer([layers])(np.zeros(1))
    np.testing.assert_allclose(layers[0].get_weights()[0], np.full((2, 3), 1.001), rtol=1e-6)  # 1.0 in bfloat16
    np.testing.assert_allclose(layers[0].get_weights()[1], np.full(3, 0.251), rtol=1e-6)
    np.testing.assert_array_equal(layers[1].get_weights()[0], np.full((2, 3), 2.0))
    before = layers[0].get_weights()[0]
    MovingAverage([layers])(np.float32(1.0))
    np.testing.assert_array_equal(layers[0].get_weights()[0], before)
