"""The head of image restoration: from tokens to pixels."""

import keras
from keras import ops

from keras_vit.layers.base import LAST, Layer
from keras_vit.utils.typed import Positive, Whole


@keras.saving.register_keras_serializable(package="keras_vit")
class PixelHead(Layer):
    """Turns the tokens of patches, and the feature map that the patches were cut from, into pixels.

    A linear layer enlarges each token to a patch of the feature map, to which it is added. Residual branches of two
    3 x 3 convolutions follow, without normalization (Lim et al. 2017, arXiv:1707.02921, "EDSR", figure 2c). The last
    linear layer turns each position into `scale` x `scale` pixels (Shi et al. 2016, arXiv:1609.05158, section 3.2).
    Both linear layers are transposed convolutions whose stride equals their kernel. The last one is initialized with
    zeros.

    Args:
        channels: Channels of the pixels.
        scale: Factor from the size of the feature map to the size of the image.
        depth: Number of residual branches.

    Call arguments:
        maps: Pair of the tokens as a feature map, and the feature map.

    Input shape:
        `(batch, rows, columns, width)` and `(batch, height, width, filters)`, of known sizes, where height and width
        are multiples of rows and columns.

    Output shape:
        `(batch, scale * height, scale * width, channels)`.

    Raises:
        ValueError: For an argument outside its range, or maps of other shapes.

    Example:

    >>> maps = [keras.ops.zeros((1, 6, 6, 96)), keras.ops.zeros((1, 24, 24, 48))]
    >>> PixelHead(3, scale=2)(maps).shape
    (1, 48, 48, 3)
    """

    def __init__(self, channels: Positive, *, scale: Positive = 1, depth: Whole = 0, **kwargs):
        super().__init__(**kwargs)
        self.channels = channels
        self.scale = scale
        self.depth = depth

    def build(self, input_shape):
        (_, rows, columns, _), (_, *sides, filters) = self._shapes(input_shape)
        patch, dtype = (sides[0] // rows, sides[1] // columns), self.dtype_policy
        self.tokens = keras.layers.Conv2DTranspose(filters, patch, patch, data_format=LAST, name="tokens", dtype=dtype)
        self.tokens.build(input_shape[0])
        self.convs = [
            keras.layers.Conv2D(filters, 3, padding="same", data_format=LAST, name=f"branch{i}_conv{j}", dtype=dtype)
            for i in range(self.depth)
            for j in range(2)
        ]
        self.pixels = keras.layers.Conv2DTranspose(
            self.channels,
            self.scale,
            self.scale,
            data_format=LAST,
            kernel_initializer="zeros",
            name="pixels",
            dtype=dtype,
        )
        for layer in (*self.convs, self.pixels):
            layer.build(input_shape[1])

    def call(self, maps):
        tokens, x = maps
        x = x + self.tokens(tokens)  # (batch, height, width, filters)
        for first, second in zip(self.convs[::2], self.convs[1::2]):
            x = x + second(ops.relu(first(x)))
        return self.pixels(x)  # (batch, scale * height, scale * width, channels)

    def _shapes(self, input_shape):
        shapes = [tuple(shape) for shape in input_shape]
        fits = len(shapes) == 2 and all(len(shape) == 4 and None not in shape[1:] for shape in shapes)
        if not fits or any(side % part for part, side in zip(shapes[0][1:3], shapes[1][1:3])):
            raise ValueError(
                "The input must be a map of tokens and a feature map (batch, height, width, channels), of known sizes, "
                f"the second a multiple of the first. Received: {shapes}"
            )
        return shapes

    def compute_output_shape(self, input_shape):
        batch, height, width, _ = self._shapes(input_shape)[1]
        return batch, self.scale * height, self.scale * width, self.channels
