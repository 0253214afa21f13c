"""Turns patches into tokens: projection, prefix tokens, positions."""

import math

import keras
import numpy as np
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.blocks.norms import norm
from keras_vit.layers.dense import Dense
from keras_vit.layers.training_doubts import warn_of_training
from keras_vit.utils import checks, resampling
from keras_vit.utils.typed import AboveZero, Positive, Rate, Switch, Whole, among

TOKENS = {  # options of `vit`'s argument `tokens`, and their defaults
    "class_token": None,
    "distilled": False,
    "registers": 0,
    "class_position": True,
    "block_positions": False,
    "patch_norm": False,
    "pre_norm": False,
    "windows": 1,
    "whole_blocks": (),
}
POSITIONS = ("learned", "sincos1d", "sincos2d", None)


@keras.saving.register_keras_serializable(package="keras_vit")
class PatchEncoder(Layer):
    """Projects flat patches, prepends class, distillation and register tokens, and adds positions.

    The projection of p x p patches equals a p x p convolution of stride p. The order of the output is
    class, distillation, registers, patches. Dosovitskiy et al. 2021 (arXiv:2010.11929), equation 1;
    distillation token: Touvron et al. 2021 (arXiv:2012.12877); registers: Darcet et al. 2024
    (arXiv:2309.16588).

    Args:
        width: Number of channels of a token.
        class_token: Whether to prepend a learned class token.
        distillation_token: Whether to prepend DeiT's distillation token, after the class token.
        registers: Number of register tokens.
        position: `"learned"` (a table), `"sincos1d"` (Vaswani et al. 2017), `"sincos2d"`
            (MoCo v3, big_vision) or `None`.
        class_position: Whether prefix tokens have positions too, as in the ViT paper; `False` as in DeiT-III
            and big_vision. With `"sincos2d"` only patches have positions.
        grid: `(rows, columns)` of the patches, for `"sincos2d"` and to resample positions; `None` for a square grid.
        use_bias: Whether the projection has a bias.
        patch_norm: Whether projected patches are normalized before tokens and positions are added.
        rms_norm: Whether that is an RMS normalization; else a layer normalization.
        epsilon: Epsilon of that normalization.
        dropout: Dropout rate after positions are added.
        windows: Number of windows a side into which blocks cut the grid; the prefix tokens, with their positions, stand
            before the patches once for each window. See `MultiHeadSelfAttention`.

    Call arguments:
        patches: Tensor of flat patches.
        training: Whether to apply dropout.

    Input shape:
        `(batch, patches, values)`, of known sizes. If a later call has another number of patches, learned and
        sine-cosine positions are resampled to a grid of the same proportions, bilinearly as in `jax.image.resize`.

    Output shape:
        `(batch, prefix + patches, width)`.

    Raises:
        ValueError: For an argument outside its range, or a grid that does not match the number of patches.

    Example:

    >>> PatchEncoder(64)(keras.ops.zeros((2, 49, 16))).shape
    (2, 50, 64)
    """

    def __init__(
        self,
        width: Positive,
        *,
        class_token: Switch = True,
        distillation_token: Switch = False,
        registers: Whole = 0,
        position: among(POSITIONS) = "learned",
        class_position: Switch = True,
        grid: tuple[int, int] | None = None,
        use_bias: Switch = True,
        patch_norm: Switch = False,
        rms_norm: Switch = False,
        epsilon: AboveZero = 1e-6,
        dropout: Rate = 0.0,
        windows: Positive = 1,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.width = width
        self.class_token = class_token
        self.distillation_token = distillation_token
        self.registers = registers
        self.position = position
        self.class_position = class_position
        self.grid = None if grid is None else checks.pair("grid", grid)
        self.use_bias = use_bias
        self.dropout = dropout
        self.windows = windows
        self.patch_norm = patch_norm
        self.rms_norm = rms_norm
        self.epsilon = epsilon

    @property
    def num_prefix(self):
        """Number of tokens before the first patch."""
        return self.windows**2 * self.num_own

    @property
    def num_own(self):
        """Number of prefix tokens with weights of their own: the class token, the distillation token, registers."""
        return int(self.class_token) + int(self.distillation_token) + self.registers

    def build(self, input_shape):
        if len(input_shape) != 3 or None in tuple(input_shape)[1:]:
            raise ValueError(
                "The input of `PatchEncoder` must be (batch, patches, values) with known sizes. "
                f"Received: input_shape={tuple(input_shape)}"
            )
        patches = self.patches = input_shape[1]
        if self.grid is not None and math.prod(self.grid) != patches:
            raise ValueError(f"`grid` must hold all {patches} patches. Received: grid={self.grid}")
        policy = self.dtype_policy
        self.projection = Dense(self.width, use_bias=self.use_bias, name="projection", dtype=policy)
        self.projection.build(input_shape)
        if self.patch_norm:
            self.norm = norm("norm", rms_norm=self.rms_norm, epsilon=self.epsilon, dtype=policy)
            self.norm.build((*input_shape[:2], self.width))
        self.drop = keras.layers.Dropout(self.dropout, name="drop", dtype=policy)

        tokens = {  # an unused initializer draws a seed too: the initial weights of later layers depend on it
            "class_token": (self.class_token, "zeros"),
            "distillation_token": (self.distillation_token, _normal()),
            "register_tokens": (self.registers, _normal()),
        }
        self.prefix = [
            self.add_weight(name=name, shape=(1, int(count), self.width), initializer=initializer)
            for name, (count, initializer) in tokens.items()
            if count
        ]

        covered = patches + self.num_own * bool(self.class_position)
        if self.position == "learned":
            self.position_embedding = self.add_weight(
                name="position_embedding", shape=(1, covered, self.width), initializer=_normal()
            )
        elif self.position == "sincos1d":
            self.position_embedding = resampling.sincos_1d(covered, self.width)[None]
        elif self.position == "sincos2d":
            self.position_embedding = resampling.sincos_2d(self.grid or resampling.square(patches), self.width)[None]

    def call(self, patches, training=None):
        if training:
            warn_of_training(self)
        x = self.projection(patches)  # (batch, patches, width)
        x = self.norm(x) if self.patch_norm else x
        over_prefix = self.position in ("learned", "sincos1d") and self.class_position
        positions = self._positions(x.shape[1], over_prefix)
        if self.position and not over_prefix:
            x = x + ops.cast(positions, x.dtype)
        if self.prefix:
            batch = ops.shape(x)[0]
            x = ops.concatenate(
                [ops.broadcast_to(ops.cast(t, x.dtype), (batch, *t.shape[1:])) for t in self.prefix] + [x], axis=1
            )  # (batch, prefix + patches, width)
        if over_prefix:
            x = x + ops.cast(positions, x.dtype)
        if self.windows > 1 and self.prefix:
            x = ops.concatenate([x[:, : self.num_own]] * (self.windows**2 - 1) + [x], axis=1)
        return self.drop(x, training=training)

    def _positions(self, patches, over_prefix):
        """Returns positions, `(1, tokens, width)`, for a number of patches; resampled if `build` had another."""
        if not self.position or patches == self.patches:
            return self.position and self.position_embedding
        grid = self.grid or resampling.square(self.patches)
        target = resampling.scaled(grid, patches)
        rows, columns = (resampling.resize_matrix(s, t, "jax-linear") for s, t in zip(grid, target))
        first = self.num_own * over_prefix
        table = ops.convert_to_tensor(self.position_embedding)  # (1, prefix + patches, width)
        resized = ops.matmul(ops.convert_to_tensor(np.kron(rows, columns), table.dtype), table[:, first:])
        return ops.concatenate([table[:, :first], resized], axis=1)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self.num_prefix + input_shape[1], self.width)


def _normal():
    return keras.initializers.RandomNormal(stddev=0.02)  # a new one per weight: initializers repeat values
