"""The last layer of a DiT: from tokens to an image."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.blocks.norms import norm
from keras_vit.layers.dense import Dense
from keras_vit.layers.tokenwise import tokenwise
from keras_vit.utils import checks
from keras_vit.utils.typed import AboveZero, Positive


@keras.saving.register_keras_serializable(package="keras_vit")
class AdaptiveHead(Layer):
    """Turns each token into a patch of an image: the last layer of a DiT.

    Peebles and Xie 2023 (arXiv:2212.09748), section 3.2, "Transformer decoder": a layer normalization, with scale and
    shift computed from the condition, and a linear layer. Both dense layers are initialized with zeros.

    Args:
        channels: Channels of the image.
        patch_size: Pixels of a patch: an integer or `(height, width)`.
        grid: `(rows, columns)` of the patches.
        epsilon: Epsilon of the normalization.

    Call arguments:
        x: Tensor of tokens, row by row.
        condition: Tensor with a vector for each image.

    Input shape:
        `(batch, rows * columns, width)` and `(batch, any width)`.

    Output shape:
        `(batch, rows * patch_height, columns * patch_width, channels)`.

    Raises:
        ValueError: For an argument outside its range, or another number of tokens.

    Example:

    >>> AdaptiveHead(1, 4, (7, 7))(keras.ops.zeros((2, 49, 64)), keras.ops.zeros((2, 64))).shape
    (2, 28, 28, 1)
    """

    def __init__(
        self,
        channels: Positive,
        patch_size: int | tuple[int, int],
        grid: tuple[int, int],
        *,
        epsilon: AboveZero = 1e-6,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.channels = channels
        self.patch_size = checks.pair("patch_size", patch_size)
        self.grid = checks.pair("grid", grid)
        self.epsilon = epsilon

    def build(self, x_shape, condition_shape):
        rows, columns = self.grid
        if x_shape[1] != rows * columns:
            raise ValueError(f"`grid` must hold all {x_shape[1]} tokens. Received: grid={self.grid}")
        height, width = self.patch_size
        zeros = {"kernel_initializer": "zeros", "dtype": self.dtype_policy}
        settings = {"rms_norm": False, "epsilon": self.epsilon, "dtype": self.dtype_policy}
        self.norm = norm("norm", **settings, weights=False)
        self.norm.build(x_shape)
        self.modulation = Dense(2 * x_shape[-1], name="modulation", **zeros)
        self.modulation.build(condition_shape)
        self.pixels = Dense(height * width * self.channels, name="pixels", **zeros)
        self.pixels.build(x_shape)

    def call(self, x, condition):
        (rows, columns), (height, width) = self.grid, self.patch_size
        shift, scale = ops.split(ops.expand_dims(self.modulation(condition), 1), 2, axis=-1)
        x = tokenwise(self.pixels, tokenwise(self.norm, x) * (1 + scale) + shift)
        x = ops.reshape(x, (-1, columns, height, width * self.channels))  # (batch * rows, columns, height, ...)
        x = ops.transpose(x, (0, 2, 1, 3))
        return ops.reshape(x, (-1, rows * height, columns * width, self.channels))

    def compute_output_shape(self, x_shape, condition_shape=None):
        (rows, columns), (height, width) = self.grid, self.patch_size
        return (x_shape[0], rows * height, columns * width, self.channels)
