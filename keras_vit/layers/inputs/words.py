"""Turns the ids of words into tokens: a table of words and one of positions."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.inputs.rescale import plain
from keras_vit.utils import checks


@keras.saving.register_keras_serializable(package="keras_vit")
class Words(Layer):
    """Looks up the token of each word's id, adds positions, and stores the text tower's metadata.

    Radford et al. 2021 (arXiv:2103.00020), section 2.4. Ids are 32-bit integers under every precision policy: float16
    counts to 2,048.

    Args:
        vocabulary: Number of ids: they are from 0 to `vocabulary - 1`.
        width: Number of channels of a token.
        length: Words of the longest text, which is the number of positions.
        metadata: Dictionary of plain values that is saved with the model, such as the source of its weights.

    Call arguments:
        ids: Tensor of ids, integers.

    Input shape:
        `(batch, words)`, at most `length` words.

    Output shape:
        `(batch, words, width)`.

    Raises:
        ValueError: For an argument outside the above, or more words than positions.

    Example:

    >>> Words(vocabulary=100, width=64, length=12)(keras.ops.zeros((2, 12), "int32")).shape
    (2, 12, 64)
    """

    def __init__(self, vocabulary: int, width: int, length: int, *, metadata: dict | None = None, **kwargs):
        super().__init__(autocast=False, **kwargs)  # Keras would cast ids that come as floats to the policy's
        checks.positive(vocabulary=vocabulary, width=width, length=length)
        if not isinstance(metadata, (dict, type(None))):
            raise ValueError(f"`metadata` must be a dictionary. Received: metadata={metadata!r}")
        self.vocabulary = vocabulary
        self.width = width
        self.length = length
        self.metadata = dict(metadata or {})

    def build(self, input_shape):
        def table(name, rows, deviation):
            normal = keras.initializers.RandomNormal(stddev=deviation)
            return self.add_weight(name=name, shape=(rows, self.width), initializer=normal, autocast=False)

        self.word_embedding = table("word_embedding", self.vocabulary, 0.02)
        self.position_embedding = table("position_embedding", self.length, 0.01)

    def call(self, ids):
        _, words, _ = self.compute_output_shape(ids.shape)
        x = ops.take(self.word_embedding, ops.cast(ids, "int32"), axis=0)  # (batch, words, width)
        return ops.cast(x + self.position_embedding[:words], self.compute_dtype)

    def compute_output_shape(self, input_shape):
        if len(input_shape) != 2 or input_shape[1] is None or input_shape[1] > self.length:
            raise ValueError(
                f"Ids must be (batch, words) with at most {self.length} words. Received: shape={tuple(input_shape)}"
            )
        return *input_shape, self.width

    def get_config(self):
        return {**super().get_config(), "metadata": plain(self.metadata)}
