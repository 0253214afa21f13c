"""The decoder of CLIPSeg: from patches and what is asked for to a mask."""

from collections.abc import Sequence

import keras
from keras import ops

from keras_vit.layers.base import LAST, Layer
from keras_vit.layers.blocks.decoder_block import DecoderBlock
from keras_vit.layers.dense import Dense
from keras_vit.utils import checks
from keras_vit.utils.typed import AboveZero, Positive, Switch, Whole


@keras.saving.register_keras_serializable(package="keras_vit")
class FiLMDecoder(Layer):
    """Draws a mask for each condition, such as the embedding of a text, from the tokens of several blocks.

    Lüddecke and Ecker 2022 (CLIPSeg, arXiv:2112.10003), section 3. From the deepest block on, tokens are reduced to a
    few channels, added to those before, and pass a block with normalizations after its branches. Before one of these
    blocks, a condition scales and shifts all channels (FiLM, arXiv:1709.07871). A transposed convolution makes pixels
    of the patches.

    Args:
        grid: `(rows, columns)` of the patches, the last tokens.
        patch_size: Sides of a patch in pixels.
        units: Channels of a condition.
        width: Channels of the decoder.
        num_heads: Number of attention heads; must divide `width`.
        mlp_dim: Hidden channels of each MLP.
        condition_at: Number of the decoder's block before which the condition applies, from 0, the first.
        refined: Whether a 3 x 3 convolution and two transposed convolutions, each of a quarter of `patch_size`, make
            the pixels. Patches of 16 pixels have masks of the image's size then, smaller ones smaller masks.
        epsilon: Epsilon of the normalizations.
        conditions: Number of conditions that the layer keeps as a weight, `(units, conditions)`; `None` if they are an
            input. Defaults to `None`.
        pairs: Whether each image has its own condition, as in training. Defaults to `False`: all images have all.

    Call arguments:
        inputs: Tokens of each block, the deepest last, then the conditions, unless the layer keeps them: a list.

    Input shape:
        `(batch, tokens, any width)` for each block; then `(conditions, units)`, with `pairs` `(batch, units)`.

    Output shape:
        `(batch, rows * patch_size, columns * patch_size, conditions)`, float32 logits; with `pairs` one condition.

    Raises:
        ValueError: For an argument outside its range, or inputs of other shapes.

    Example:

    >>> tokens = keras.ops.zeros((2, 1 + 4, 48))
    >>> FiLMDecoder((2, 2), 16, 32)([tokens, tokens, tokens, keras.ops.zeros((5, 32))]).shape
    (2, 32, 32, 5)
    """

    gives = "label_masks"  # see `models.kinds`

    def __init__(
        self,
        grid: Sequence[int],
        patch_size: Positive,
        units: Positive,
        *,
        width: Positive = 64,
        num_heads: int = 4,
        mlp_dim: int = 2048,
        condition_at: Whole = 0,
        refined: Switch = False,
        epsilon: AboveZero = 1e-5,
        conditions: Positive | None = None,
        pairs: Switch = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        checks.heads_and_hidden(num_heads, mlp_dim)
        if pairs and conditions:
            raise ValueError(f"Conditions of pairs are an input. Received: pairs=True, conditions={conditions}")
        if refined and patch_size < 4:
            raise ValueError(f"`patch_size` must be at least 4 with refined=True. Received: patch_size={patch_size}")
        self.grid = checks.pair("grid", grid)
        self.patch_size = patch_size
        self.units = units
        self.width = width
        self.num_heads = num_heads
        self.mlp_dim = mlp_dim
        self.condition_at = condition_at
        self.refined = refined
        self.epsilon = epsilon
        self.conditions = conditions
        self.pairs = pairs

    @property
    def size(self):
        """`(height, width)` of the masks."""
        scale = (self.patch_size // 4) ** 2 if self.refined else self.patch_size
        return tuple(side * scale for side in self.grid)

    def build(self, input_shape):
        self.compute_output_shape(input_shape)
        of_tokens, _ = self._parted(input_shape)
        dtype = self.dtype_policy
        batch, tokens, _ = of_tokens[0]
        inside = (batch, tokens, self.width)
        self.film_mul = Dense(self.width, name="film_mul", dtype=dtype)
        self.film_mul.build((None, self.units))
        self.film_add = Dense(self.width, name="film_add", dtype=dtype)
        self.film_add.build((None, self.units))
        self.reduces = []
        self.blocks = []
        for i, shape in enumerate(reversed(of_tokens)):
            self.reduces.append(Dense(self.width, name=f"reduce{i}", dtype=dtype))
            self.reduces[-1].build(shape)
            block = DecoderBlock(self.num_heads, self.mlp_dim, epsilon=self.epsilon, name=f"block{i}", dtype=dtype)
            block.build(inside)
            self.blocks.append(block)
        self.ups = self._ups(batch)
        if self.conditions:
            self.vectors = self.add_weight((self.units, self.conditions), "glorot_uniform", name="conditions")

    def _ups(self, batch):
        """Returns the built layers that make pixels of patches; the last computes in float32."""
        options, shape = {"data_format": LAST, "dtype": self.dtype_policy}, (batch, *self.grid, self.width)
        logits = {"data_format": LAST, "dtype": "float32"}
        transposed, quarter = keras.layers.Conv2DTranspose, self.patch_size // 4
        if self.refined:
            relu = {"activation": "relu", **options}
            layers = [
                keras.layers.Conv2D(self.width, 3, padding="same", name="conv", **relu),
                transposed(max(self.width // 2, 1), quarter, quarter, name="up0", **relu),
                transposed(1, quarter, quarter, name="up1", **logits),
            ]
        else:
            layers = [transposed(1, self.patch_size, self.patch_size, name="up", **logits)]
        for layer in layers:
            layer.build(shape)
            shape = layer.compute_output_shape(shape)
        return layers

    def call(self, inputs, training=None):
        if self.conditions:
            conditions = ops.cast(ops.transpose(self.vectors), self.compute_dtype)
            tokens, counts = _listed(inputs), (-1, self.conditions)
        else:
            *tokens, conditions = inputs
            counts = (-1, 1) if self.pairs else (ops.shape(tokens[0])[0], -1)
        axes = (1, 2) if self.pairs else 1  # (batch, 1, 1, width), or (conditions, 1, width)
        scale, shift = (ops.expand_dims(film(conditions), axes) for film in (self.film_mul, self.film_add))
        inside, x = (tokens[0].shape[1], self.width), 0
        for i, (reduce, block) in enumerate(zip(self.reduces, self.blocks)):
            reduced = reduce(tokens[-1 - i])  # (batch, tokens, width)
            if i <= self.condition_at:
                x = x + reduced
            else:
                x = ops.reshape(x, (*counts, *inside)) + ops.expand_dims(reduced, 1)
            if i == self.condition_at:
                x = scale * ops.expand_dims(x, 1) + shift  # (batch, conditions, tokens, width)
            x = block(ops.reshape(x, (-1, *inside)), training=training)  # (batch * conditions, tokens, width)
        rows, columns = self.grid
        x = ops.reshape(x[:, inside[0] - rows * columns :], (-1, rows, columns, self.width))
        for up in self.ups:
            x = up(x)
        x = ops.reshape(x, (*counts, *self.size))
        return ops.transpose(x, (0, 2, 3, 1))  # (batch, height, width, conditions)

    def _parted(self, input_shape):
        """Returns the shapes of the tokens, a list, and that of the conditions."""
        if self.conditions:
            return _listed(input_shape), (self.conditions, self.units)
        return list(input_shape[:-1]), tuple(input_shape[-1])

    def compute_output_shape(self, input_shape):
        shapes, of_conditions = self._parted(input_shape)
        least = self.grid[0] * self.grid[1]
        if len(shapes) <= self.condition_at:
            raise ValueError(f"There must be more than {self.condition_at} blocks of tokens. Received: {len(shapes)}")
        for shape in shapes:
            if len(shape) != 3 or None in shape[1:] or shape[1] < least or shape[1] != shapes[0][1]:
                raise ValueError(
                    f"Tokens must be (batch, tokens, width), of one number from {least} on. Received: shapes {shapes}"
                )
        if len(of_conditions) != 2 or of_conditions[1] != self.units:
            raise ValueError(f"Conditions must be (conditions, {self.units}). Received: shape {of_conditions}")
        return shapes[0][0], *self.size, 1 if self.pairs else of_conditions[0]

    def compute_output_spec(self, inputs, training=None):
        shape = inputs.shape if hasattr(inputs, "shape") else [x.shape for x in inputs]
        return keras.KerasTensor(self.compute_output_shape(shape), "float32")


def _listed(inputs):
    """Returns the tokens of blocks, or their shapes, as a list, also those of one block."""
    several = isinstance(inputs, (list, tuple)) and not (inputs and isinstance(inputs[-1], int))
    return list(inputs) if several else [inputs]
