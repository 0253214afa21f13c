"""Learned positions between blocks."""

import keras

from keras_vit.layers.base import Layer


@keras.saving.register_keras_serializable(package="keras_vit")
class Positions(Layer):
    """Adds a learned vector to each token, as YOLOS does before each block after the first.

    Fang et al. 2021 (arXiv:2106.00666), table 3, "Type-II".

    Input shape:
        `(batch, tokens, width)`, of known sizes; each call with the same number of tokens.

    Output shape:
        Same as the input shape.

    Raises:
        ValueError: If the number of tokens differs from the first call.

    Example:

    >>> Positions()(keras.ops.zeros((2, 50, 64))).shape
    (2, 50, 64)
    """

    def build(self, input_shape):
        normal = keras.initializers.RandomNormal(stddev=0.02)
        self.table = self.add_weight(name="table", shape=(1, *input_shape[1:]), initializer=normal)

    def call(self, x):
        if x.shape[1] != self.table.shape[1]:
            raise ValueError(
                f"The positions of {self.name!r} are for {self.table.shape[1]} tokens. Received: {x.shape[1]} tokens"
            )
        return x + keras.ops.cast(self.table, x.dtype)  # (batch, tokens, width)

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)
