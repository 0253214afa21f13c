"""Similarity logits of images and texts."""

import math

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.utils.typed import Number, Switch

SCALE = math.log(1 / 0.07)  # initial value in CLIP
LARGEST = math.log(100)  # largest logarithm of a scale without a bias
SMALLEST = 1e-12  # least squared length: zero vectors stay zero, with finite gradients


@keras.saving.register_keras_serializable(package="keras_vit")
class Similarity(Layer):
    """Computes the logit of each image with each text, `exp(scale) * cosine + bias`; both numbers are learned.

    CLIP (Radford et al. 2021, arXiv:2103.00020, figure 3) has no bias; a softmax over the texts turns its logits into
    probabilities. SigLIP (Zhai et al. 2023, arXiv:2303.15343, section 3.2) has a bias, and a sigmoid for each logit.

    Without a bias, a constraint keeps the scale at 100 or below, as in CLIP (section 2.5).

    Args:
        scale: Initial value of the logarithm of the scale.
        bias: Initial value of the bias; `None` for no bias.
        pairs: Whether to return pairs of an image and its text, from which `PairLoss` computes all logits: a logit is
            the dot product of an image's row and a text's row.

    Call arguments:
        inputs: Pair of the embeddings of images and of texts, which need not have length 1.

    Input shape:
        `(images, width)` and `(texts, width)`.

    Output shape:
        `(images, texts)`, logits; with `pairs`, `(images, 2, width)`, or with a bias `(images, 2, width + 1)`.

    Raises:
        ValueError: For an argument that is no finite number, or embeddings of two widths.

    Example:

    >>> Similarity()([keras.ops.ones((3, 64)), keras.ops.ones((5, 64))]).shape
    (3, 5)
    """

    def __init__(self, scale: Number = SCALE, bias: Number | None = None, pairs: Switch = False, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.scale = scale
        self.bias = bias
        self.pairs = pairs
        self.gives = "pairs" if pairs else None  # see `models.kinds`

    def build(self, input_shape):
        self.compute_output_shape(input_shape)

        def number(name, value, constraint=None):
            initializer = keras.initializers.Constant(value)
            return self.add_weight(name=name, shape=(), initializer=initializer, constraint=constraint)

        self.logit_scale = number("logit_scale", self.scale, _clipped if self.bias is None else None)
        self.logit_bias = None if self.bias is None else number("logit_bias", self.bias)

    def call(self, inputs):
        images, texts = map(unit, inputs)
        if self.pairs:
            return self._rows(images, texts)
        logits = ops.exp(self.logit_scale) * ops.matmul(images, ops.transpose(texts))  # (images, texts)
        return logits if self.logit_bias is None else logits + self.logit_bias

    def _rows(self, images, texts):
        """Returns rows whose dot products are the logits, `(images, 2, channels)`; the bias has its own channel."""
        rows = [ops.exp(self.logit_scale) * images, texts]
        if self.logit_bias is not None:
            one = ops.ones_like(texts[:, :1])
            rows = [ops.concatenate(pair, axis=1) for pair in zip(rows, (self.logit_bias * one, one))]
        return ops.stack(rows, axis=1)  # (images, 2, channels)

    def compute_output_shape(self, input_shape):
        images, texts = input_shape
        if len(images) != 2 or len(texts) != 2 or images[1] != texts[1]:
            raise ValueError(
                "Embeddings of images and texts must be matrices of one width. "
                f"Received: shapes {tuple(images)} and {tuple(texts)}"
            )
        if self.pairs:
            return images[0], 2, images[1] + (self.bias is not None)
        return images[0], texts[0]


def _clipped(scale):
    return ops.minimum(scale, LARGEST)


def unit(x, axis=-1):
    """Normalizes vectors along an axis to length 1."""
    return x * ops.rsqrt(ops.maximum(ops.sum(x * x, axis=axis, keepdims=True), SMALLEST))
