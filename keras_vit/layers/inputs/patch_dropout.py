"""Drops patches in training, which makes steps faster."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.inputs.prefix import WithPrefix
from keras_vit.utils.typed import Rate


@keras.saving.register_keras_serializable(package="keras_vit")
class PatchDropout(WithPrefix, Layer):
    """Drops random patch tokens of each image in training; keeps all of them in inference.

    Liu et al. 2022 (arXiv:2208.07220). Later blocks then compute fewer tokens. Prefix tokens are not dropped, and
    patches keep their order.

    Args:
        rate: Share of the patches to drop, in [0, 1); at least one patch is kept.
        num_prefix: Number of tokens before the first patch, such as a class token; `None` to infer it from the
            layers before, in a functional model with a `PatchEncoder`.
        seed: Integer seed; `None` for a random one.

    Call arguments:
        x: Tensor of tokens, to which positions have been added.
        training: Whether to drop patches.

    Input shape:
        `(batch, prefix + patches, width)`.

    Output shape:
        Same as the input shape; in training `(batch, prefix + kept, width)`, where `kept` is `patches * (1 - rate)`
        rounded down.

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
    """Returns the `PatchDropout` of a model; raises ValueError if other arguments of the model need all patches.

    Args:
        rate: As in `PatchDropout`.
        encoder: The `PatchEncoder` before it.
        **others: `rotary`, `position`, `block_positions` and `pooling` of the model.
    """
    placed = others["rotary"] is not None or others["position"] == "relative" or others["block_positions"]
    if encoder.windows > 1:
        raise ValueError(f"Windows need all patches. Received: patch_dropout={rate}, windows={encoder.windows}")
    if placed or others["pooling"] in ("first", "last", "none"):
        raise ValueError(
            "Patch dropout needs positions that are added to tokens, and a pooling of any patches. "
            f"Received: patch_dropout={rate}, {', '.join(f'{name}={value!r}' for name, value in others.items())}"
        )
    return PatchDropout(rate, num_prefix=encoder.num_prefix, name="patch_dropout", dtype=encoder.dtype_policy)


def rows(x, indices):
    """Gathers tokens by their indices, as rows: `ops.take_along_axis` would gather single numbers.

    Args:
        x: Tensor of tokens, `(batch, tokens, width)`.
        indices: Integer tensor, `(batch, n)`.

    Returns:
        Tensor, `(batch, n, width)`.
    """
    first = ops.expand_dims(ops.arange(ops.shape(x)[0], dtype="int32") * x.shape[1], 1)
    return ops.take(ops.reshape(x, (-1, x.shape[-1])), ops.cast(indices, "int32") + first, axis=0)
