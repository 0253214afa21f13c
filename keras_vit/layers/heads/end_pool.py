"""Pools a text into the token at its end."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.utils.typed import Whole


@keras.saving.register_keras_serializable(package="keras_vit")
class EndPool(Layer):
    """Returns the token at the end of each text, as in CLIP; padding after it has no effect.

    Radford et al. 2021 (arXiv:2103.00020), section 2.4.

    Args:
        end: Id of the end. The token at its first occurrence is returned; in a text without it, the first token. `None`
            for the largest id of each text, as in OpenAI's files.

    Call arguments:
        inputs: Pair of tokens and the ids of their words, integers.

    Input shape:
        `(batch, words, width)` and `(batch, words)`.

    Output shape:
        `(batch, width)`.

    Raises:
        ValueError: If `end` is no integer of at least 0.

    Example:

    >>> EndPool(end=1)([keras.ops.zeros((2, 12, 64)), keras.ops.ones((2, 12), "int32")]).shape
    (2, 64)
    """

    def __init__(self, end: Whole | None = None, **kwargs):
        super().__init__(**kwargs)
        self.end = end

    def call(self, inputs):
        tokens, ids = inputs
        ids = ops.cast(ids, "int32")
        ids = ids if self.end is None else ops.cast(ops.equal(ids, self.end), "int32")
        place = ops.argmax(ids, axis=1)[:, None, None]  # (batch, 1, 1)
        return ops.squeeze(ops.take_along_axis(tokens, place, axis=1), 1)  # (batch, width)

    def compute_output_shape(self, input_shape):
        tokens, _ = input_shape
        return tokens[0], tokens[2]
