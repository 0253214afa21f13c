"""The head of EoMT: from queries and patches to a class and a mask for each query."""

from collections.abc import Sequence

import keras
from keras import ops

from keras_vit.layers.base import LAST, Layer
from keras_vit.layers.blocks.gelu import BY_NAME
from keras_vit.layers.blocks.mlp import GELUS
from keras_vit.layers.dense import Dense
from keras_vit.utils import checks
from keras_vit.utils.typed import AboveZero, Positive, Whole, among

DENSE = 3  # layers from a query to the vector of its mask


@keras.saving.register_keras_serializable(package="keras_vit")
class QueryMasks(Layer):
    """Classifies queries, and draws a mask for each: the product of its vector with every cell of a feature map.

    Kerssies et al. 2025 (arXiv:2503.19108, "EoMT"), section 3.1. The feature map is made of the patch tokens: each step
    doubles its sides by a transposed convolution, then applies a GELU, a 3 x 3 depthwise convolution and a layer
    normalization.

    Args:
        grid: `(rows, columns)` of the patches, the last tokens.
        units: Number of classes; one more, the last, says that a query is of nothing.
        queries: Number of queries, the first tokens.
        upscales: Number of steps that double the feature map.
        gelu: `"tanh"`, `"exact"` or `"quick"`; see `MLP`.
        epsilon: Epsilon of the normalizations.

    Call arguments:
        tokens: Tensor of normalized tokens of the last block.

    Input shape:
        `(batch, tokens, width)`, of known sizes: queries, any number of other tokens, patches.

    Output shape:
        `(batch, queries, units + 1 + rows * columns * 4 ** upscales)`, float32: logits of classes, then those of the
        mask, row by row.

    Raises:
        ValueError: For an argument outside its range, or another shape.

    Example:

    >>> QueryMasks((40, 40), 133, 200)(keras.ops.zeros((1, 1805, 32))).shape
    (1, 200, 25734)
    """

    gives = "segments"  # see `models.kinds`

    def __init__(
        self,
        grid: Sequence[int],
        units: Positive,
        queries: Positive,
        *,
        upscales: Whole = 2,
        gelu: among(GELUS) = "exact",
        epsilon: AboveZero = 1e-6,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.grid = checks.pair("grid", grid)
        self.units = units
        self.queries = queries
        self.upscales = upscales
        self.gelu = gelu
        self.epsilon = epsilon

    @property
    def mask_size(self):
        """`(rows, columns)` of the masks."""
        return tuple(side << self.upscales for side in self.grid)

    def build(self, input_shape):
        self.compute_output_shape(input_shape)
        batch, _, width = input_shape
        dtype, of_queries = self.dtype_policy, (batch, self.queries, width)
        self.classify = keras.layers.Dense(self.units + 1, name="class", dtype="float32")
        self.classify.build(of_queries)
        self.dense = [Dense(width, name=f"fc{i}", dtype=dtype) for i in range(DENSE)]
        for dense in self.dense:
            dense.build(of_queries)
        self.ups = []
        self.depthwise = []
        self.norms = []
        for i in range(self.upscales):
            small, large = ((batch, *(side << by for side in self.grid), width) for by in (i, i + 1))
            options = {"data_format": LAST, "dtype": dtype}
            self.ups.append(keras.layers.Conv2DTranspose(width, 2, 2, name=f"up{i}", **options))
            self.ups[-1].build(small)
            options |= {"padding": "same", "use_bias": False}
            self.depthwise.append(keras.layers.DepthwiseConv2D(3, name=f"depthwise{i}", **options))
            self.depthwise[-1].build(large)
            self.norms.append(keras.layers.LayerNormalization(epsilon=self.epsilon, name=f"norm{i}", dtype=dtype))
            self.norms[-1].build(large)

    def call(self, tokens):
        rows, columns = self.grid
        width, act = tokens.shape[-1], BY_NAME[self.gelu]
        queries, patches = tokens[:, : self.queries], tokens[:, tokens.shape[1] - rows * columns :]
        classes = self.classify(queries)  # (batch, queries, units + 1)
        for i, dense in enumerate(self.dense):
            queries = dense(act(queries) if i else queries)  # (batch, queries, width)
        x = ops.reshape(patches, (-1, rows, columns, width))
        for up, depthwise, norm in zip(self.ups, self.depthwise, self.norms):
            x = norm(depthwise(act(up(x))))  # (batch, 2 * rows, 2 * columns, width)
        high, wide = self.mask_size
        x = ops.transpose(ops.reshape(x, (-1, high * wide, width)), (0, 2, 1))
        masks = ops.cast(ops.matmul(queries, x), "float32")  # (batch, queries, high * wide)
        return ops.concatenate([classes, masks], axis=-1)

    def compute_output_spec(self, tokens):
        return keras.KerasTensor(self.compute_output_shape(tokens.shape), "float32")  # under any policy

    def compute_output_shape(self, input_shape):
        rows, columns = self.grid
        if len(input_shape) != 3 or None in input_shape[1:] or input_shape[1] < self.queries + rows * columns:
            raise ValueError(
                f"The input must be tokens (batch, tokens, width) of known sizes, with {self.queries} queries and "
                f"{rows} x {columns} patches. Received: {tuple(input_shape)}"
            )
        high, wide = self.mask_size
        return input_shape[0], self.queries, self.units + 1 + high * wide
