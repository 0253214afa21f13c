"""The mask transformer of Segmenter."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.blocks.transformer_block import TransformerBlock
from keras_vit.layers.dense import Dense
from keras_vit.utils import checks
from keras_vit.utils.typed import AboveZero, Positive, Rate


@keras.saving.register_keras_serializable(package="keras_vit")
class MaskDecoder(Layer):
    """Classifies patch tokens by learned class embeddings that attend to them.

    One embedding per class joins the patch tokens in a few Transformer blocks. The logit of a patch and a class is the
    cosine of their projected tokens; a layer normalization over the classes, the mask norm, scales the logits.
    Strudel et al. 2021, "Segmenter" (arXiv:2105.05633), section 3.3; the authors' code has an epsilon of 1e-5 and
    the exact GELU. For two classes, the mask norm would keep only their order: use a dense layer instead.

    Args:
        units: Number of classes, at least 3.
        num_heads: Number of attention heads; must divide the width.
        mlp_dim: Hidden channels of each MLP.
        depth: Number of transformer blocks.
        width: Channels of the blocks; `None` for the width of the input.
        gelu: `"tanh"`, `"exact"` or `"quick"`; see `MLP`.
        epsilon: Epsilon of every layer normalization.
        dropout: Dropout rate in the blocks.
        stochastic_depth: Drop rate of the last block; it grows linearly from 0 at the first.

    Call arguments:
        tokens: Tensor of patch tokens, without prefix tokens.
        training: Whether dropout and stochastic depth are on.

    Input shape:
        `(batch, patches, width)`.

    Output shape:
        `(batch, patches, units)`, logits.

    Raises:
        ValueError: For an argument outside its range.

    Example:

    >>> MaskDecoder(11, num_heads=3, mlp_dim=768)(keras.ops.zeros((2, 196, 192))).shape
    (2, 196, 11)
    """

    def __init__(
        self,
        units: Positive,
        num_heads: int,
        mlp_dim: int,
        *,
        depth: Positive = 2,
        width: Positive | None = None,
        gelu: str = "tanh",
        epsilon: AboveZero = 1e-6,
        dropout: Rate = 0.0,
        stochastic_depth: Rate = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        checks.heads_and_hidden(num_heads, mlp_dim)
        if units < 3:
            raise ValueError(f"`units` must be at least 3: the mask norm compares classes. Received: units={units}")
        self.units = units
        self.num_heads = num_heads
        self.mlp_dim = mlp_dim
        self.depth = depth
        self.width = width
        self.gelu = gelu
        self.epsilon = epsilon
        self.dropout = dropout
        self.stochastic_depth = stochastic_depth

    def build(self, input_shape):
        batch, patches, channels = input_shape
        width, dtype = self.width or channels, self.dtype_policy
        joined = (batch, patches and patches + self.units, width)
        norm = {"epsilon": self.epsilon, "dtype": dtype}
        self.classes = self.add_weight(
            name="classes", shape=(1, self.units, width), initializer=keras.initializers.TruncatedNormal(stddev=0.02)
        )
        self.proj = Dense(width, name="proj", dtype=dtype)
        self.proj.build(input_shape)
        self.blocks = []
        for i in range(self.depth):
            block = TransformerBlock(
                self.num_heads,
                self.mlp_dim,
                gelu=self.gelu,
                dropout=self.dropout,
                stochastic_depth=self.stochastic_depth * i / max(self.depth - 1, 1),
                name=f"decoder_{i}",
                **norm,
            )
            block.build(joined)
            self.blocks.append(block)
        self.norm = keras.layers.LayerNormalization(name="norm", **norm)
        self.norm.build(joined)
        self.proj_patches, self.proj_classes = (
            Dense(
                width,
                use_bias=False,
                kernel_initializer=keras.initializers.RandomNormal(stddev=width**-0.5),
                name=name,
                dtype=dtype,
            )
            for name in ("proj_patches", "proj_classes")
        )
        self.proj_patches.build((batch, patches, width))
        self.proj_classes.build((batch, self.units, width))
        self.mask_norm = keras.layers.LayerNormalization(name="mask_norm", **norm)
        self.mask_norm.build((batch, patches, self.units))

    def call(self, tokens, training=None):
        x = self.proj(tokens)
        classes = ops.broadcast_to(ops.cast(self.classes, x.dtype), (ops.shape(x)[0], self.units, x.shape[-1]))
        x = ops.concatenate([x, classes], axis=1)  # (batch, patches + units, width)
        for block in self.blocks:
            x = block(x, training=training)
        x = self.norm(x)
        patches = _unit(self.proj_patches(x[:, : -self.units]))  # (batch, patches, width)
        classes = _unit(self.proj_classes(x[:, -self.units :]))  # (batch, units, width)
        return self.mask_norm(ops.matmul(patches, ops.transpose(classes, (0, 2, 1))))  # (batch, patches, units)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:2], self.units)


def _unit(x):
    """Normalizes vectors, `(..., width)`, to length 1, in float32: squares would overflow float16."""
    return ops.cast(ops.normalize(ops.cast(x, "float32"), axis=-1), x.dtype)
