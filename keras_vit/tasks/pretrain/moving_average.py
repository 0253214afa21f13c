"""A model whose weights follow those of another one."""

import keras
from keras import ops


class MovingAverage(keras.layers.Layer):
    """Moves the weights of some layers towards those of others, whenever it is called.

    It is a layer because Keras casts weights to half precision inside a layer of mixed precision: not inside this one.

    Args:
        pairs: Pairs of layers with the same weights: one that moves, and the one that it follows.

    Call arguments:
        kept: Share of itself that a weight keeps, a float32 scalar.
    """

    def __init__(self, pairs, **kwargs):
        super().__init__(autocast=False, dtype="float32", **kwargs)
        self.pairs = [list(pair) for pair in pairs]
        self.built = True

    def call(self, kept):
        for average, layer in self.pairs:
            for old, new in zip(average.weights, layer.weights, strict=True):
                value = ops.convert_to_tensor(old)
                old.assign(value + (1 - kept) * (ops.stop_gradient(ops.convert_to_tensor(new)) - value))
        return kept
