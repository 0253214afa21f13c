"""Word embeddings with positions, and the logits of words from tokens."""

import keras
import numpy as np
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.inputs.rescale import plain
from keras_vit.utils import checks
from keras_vit.utils.typed import Positive, Switch, Whole, among

POSITIONS = ("learned", "sinusoidal")


@keras.saving.register_keras_serializable(package="keras_vit")
class Words(Layer):
    """Embeds ids of words, adds positions, and stores metadata of texts.

    Radford et al. 2021 (arXiv:2103.00020), section 2.4. Ids are 32-bit integers under any precision policy: float16
    counts to 2,048. With `to_logits` the layer computes logits: the dot product of a token and the embedding of each
    word (Press and Wolf 2017, arXiv:1608.05859), float32.

    Args:
        vocabulary: Number of ids: they are from 0 to `vocabulary - 1`.
        width: Number of channels of a token.
        length: Number of words of the longest text, and of positions.
        positions: `"learned"`, a table; or `"sinusoidal"` (Vaswani et al. 2017, arXiv:1706.03762, section 3.5, all
            sines before all cosines, as in fairseq). Sinusoidal positions are counted from `pad + 1`.
        pad: For sinusoidal positions, the id of padding, which has no position and is not counted; or `None`.
        scaled: Whether embeddings are multiplied by the square root of the width.
        logit_bias: Whether the logits have a bias.
        metadata: Dictionary of plain values that is saved with the model, such as the source of its weights.

    Call arguments:
        inputs: Tensor of ids, integers; with `to_logits`, of tokens.
        start: Position of the first word, an integer or a scalar tensor; or a tensor, `(batch,)`, with a position for
            each text, where words before position 0 are padding.
        to_logits: Whether to return the logits of words for tokens.

    Input shape:
        `(batch, words)`, at most `length` words; with `to_logits`, `(batch, words, width)`.

    Output shape:
        `(batch, words, width)`; with `to_logits`, `(batch, words, vocabulary)`, float32.

    Raises:
        ValueError: For an argument outside its range, or more words than positions.

    Example:

    >>> Words(vocabulary=100, width=64, length=12)(keras.ops.zeros((2, 12), "int32")).shape
    (2, 12, 64)
    """

    def __init__(
        self,
        vocabulary: Positive,
        width: Positive,
        length: Positive,
        *,
        positions: among(POSITIONS) = "learned",
        pad: Whole | None = None,
        scaled: Switch = False,
        logit_bias: Switch = False,
        metadata: dict | None = None,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)  # Keras would cast ids that come as floats to the policy's
        if pad is not None and positions == "learned":
            raise ValueError(f"`pad` is for positions='sinusoidal'. Received: pad={pad}, positions='learned'")
        if positions == "sinusoidal" and (width % 2 or width < 4):
            raise ValueError(f"Sinusoidal positions need an even width of at least 4. Received: width={width}")
        if not isinstance(metadata, (dict, type(None))):
            raise ValueError(f"`metadata` must be a dictionary. Received: metadata={checks.shown(metadata)}")
        self.vocabulary = vocabulary
        self.width = width
        self.length = length
        self.positions = positions
        self.pad = pad
        self.scaled = scaled
        self.logit_bias = logit_bias
        self.metadata = dict(metadata or {})

    def build(self, input_shape):
        def table(name, rows, deviation):
            normal = keras.initializers.RandomNormal(stddev=deviation)
            return self.add_weight(name=name, shape=(rows, self.width), initializer=normal, autocast=False)

        self.word_embedding = table("word_embedding", self.vocabulary, 0.02)
        if self.positions == "learned":
            self.position_embedding = table("position_embedding", self.length, 0.01)
        if self.logit_bias:
            self.bias = self.add_weight(name="bias", shape=(self.vocabulary,), initializer="zeros", autocast=False)

    def call(self, inputs, start=0, to_logits=False):
        if to_logits:
            tokens = ops.reshape(ops.cast(inputs, "float32"), (-1, self.width))
            logits = ops.matmul(self.word_embedding, ops.transpose(tokens))  # transposes tokens, not the large table
            logits = ops.reshape(ops.transpose(logits), (-1, ops.shape(inputs)[1], self.vocabulary))
            return logits + self.bias if self.logit_bias else logits
        self.compute_output_shape(inputs.shape)
        ids = ops.cast(inputs, "int32")
        x = ops.take(self.word_embedding, ids, axis=0)  # (batch, words, width)
        x = x * self.width**0.5 if self.scaled else x
        return ops.cast(x + self._positions_of(ids, start), self.compute_dtype)

    def _positions_of(self, ids, start):
        words = ops.shape(ids)[1]
        if len(getattr(start, "shape", ())) == 1:  # padding may have any position
            places = ops.expand_dims(start, 1) + ops.arange(words)  # (batch, words)
            inside = places >= 0
            places, start = ops.clip(places, 0, self.length - 1), ops.expand_dims(ops.maximum(start, 0), 1)
        else:
            places, inside = start + ops.arange(words), True
        if self.positions == "learned":
            table = self.position_embedding
            whole = isinstance(start, int) and start == 0
            return table[:words] if whole else ops.take(table, places, axis=0)
        table = ops.convert_to_tensor(sinusoids(self.length, self.width, self.pad))
        if self.pad is None:
            return ops.take(table, places, axis=0)
        real = ops.cast(ops.logical_and(ids != self.pad, inside), "int32")
        return ops.take(table, ops.minimum(ops.cumsum(real, axis=1) + start, self.length) * real, axis=0)

    def compute_output_shape(self, input_shape, to_logits=False):
        if to_logits:
            return *input_shape[:-1], self.vocabulary
        if len(input_shape) != 2 or (input_shape[1] or 0) > self.length:
            raise ValueError(
                f"Ids must be (batch, words) with at most {self.length} words. Received: shape={tuple(input_shape)}"
            )
        return *input_shape, self.width

    def compute_output_spec(self, inputs, start=0, to_logits=False):
        shape = self.compute_output_shape(inputs.shape, to_logits)
        return keras.KerasTensor(shape, dtype="float32" if to_logits else self.compute_dtype)

    def get_config(self):
        return {**super().get_config(), "metadata": plain(self.metadata)}


def sinusoids(length, width, pad=None):
    """Returns the table of sinusoidal positions, float32 `(length, width)`.

    With `pad`, there is one more row, the first one, with zeros for padding. The frequencies go from 1 to 1/10000, both
    included, as in fairseq.
    """
    first = 0 if pad is None else pad + 1
    half = width // 2
    angles = np.arange(first, first + length)[:, None] * np.exp(np.arange(half) * (-np.log(10000) / (half - 1)))
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype("float32")
    return table if pad is None else np.concatenate([np.zeros((1, width), "float32"), table])
