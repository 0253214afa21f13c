"""Leaves patches out in training, which makes steps shorter."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.inputs.prefix import WithPrefix
from keras_vit.utils.typed import Rate


@keras.saving.register_keras_serializable(package="keras_vit")
class PatchDropout(WithPrefix, Layer):
    """Keeps a random part of the patch tokens of each sample in training, and all of them in inference.

    Liu et al. 2022 (arXiv:2208.07220). The blocks after it then compute fewer tokens. Prefix tokens are kept, and so is
    the order of the patches.

    Args:
        rate: Share of the patches that are left out, from 0 to below 1; at least one is kept.
        num_prefix: Number of tokens before the first patch, such as a class token; `None` to read it off the layers
            before, in a functional model from a `PatchEncoder` on.
        seed: Optional integer.

    Call arguments:
        x: Tensor of tokens, whose positions are added already.
        training: Whether to leave patches out.

    Input shape:
        `(batch, prefix + patches, width)`.

    Output shape:
        The input's; in training `(batch, prefix + kept, width)`, where `kept` is `patches * (1 - rate)` rounded down.

    Raises:
        ValueError: If `rate` is outside [0, 1); in the call, if the number of prefix tokens is not known.

    Example:

    >>> PatchDropout(0.5, num_prefix=1)(keras.ops.ones((2, 17, 64)), training=True).shape
    (2, 9, 64)
    """

    def __init__(self, rate: Rate, *, num_prefix: int | None = None, seed: int | None = None, **kwargs):
        super().__init__(**kwargs)
        self.check_prefix(num_prefix)
        self.rate = rate
        self.num_prefix = num_prefix
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, x, training=None):
        n, patches = self.num_prefix, x.shape[1] - self.num_prefix
        count = max(int(patches * (1 - self.rate) + 1e-6), 1)
        if not training or count == patches:
            return x
        noise = keras.random.uniform((ops.shape(x)[0], patches), seed=self.seed_generator)
        places = ops.sort(ops.argsort(noise, axis=1)[:, :count], axis=1)
        return ops.concatenate([x[:, :n], rows(x[:, n:], places)], axis=1)

    def compute_output_shape(self, input_shape):
        return input_shape  # in inference


def dropout_of(rate, encoder, **others):
    """Returns the layer after a `PatchEncoder`; raises ValueError if other arguments of the model need every patch.

    Args:
        rate: As in `PatchDropout`.
        encoder: The `PatchEncoder`.
        others: `rotary`, `position`, `block_positions` and `pooling` of the model.
    """
    placed = others["rotary"] is not None or others["position"] == "relative" or others["block_positions"]
    if placed or others["pooling"] in ("first", "last", "none"):
        raise ValueError(
            "Patch dropout needs positions that are added to tokens, and a pooling of any patches. "
            f"Received: patch_dropout={rate}, {', '.join(f'{name}={value!r}' for name, value in others.items())}"
        )
    return PatchDropout(rate, num_prefix=encoder.num_prefix, name="patch_dropout", dtype=encoder.dtype_policy)


def rows(x, indices):
    """Returns the tokens `indices`, `(batch, n)`, of each sequence of a batch, `(batch, tokens, width)`.

    One gather of whole rows: `ops.take_along_axis` would gather number by number.
    """
    first = ops.expand_dims(ops.arange(ops.shape(x)[0], dtype="int32") * x.shape[1], 1)
    return ops.take(ops.reshape(x, (-1, x.shape[-1])), ops.cast(indices, "int32") + first, axis=0)
