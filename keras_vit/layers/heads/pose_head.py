"""The head of ViTPose: from tokens to heat maps of keypoints."""

from collections.abc import Sequence

import keras
from keras import ops

from keras_vit.layers.base import LAST, Layer
from keras_vit.layers.heads.fusion import norm, resized
from keras_vit.utils import checks
from keras_vit.utils.typed import Positive, Switch


@keras.saving.register_keras_serializable(package="keras_vit")
class PoseHead(Layer):
    """Enlarges the tokens of patches to one heat map for each keypoint.

    Xu et al. 2022 (arXiv:2204.12484, "ViTPose"), section 3.1. The simple decoder is a ReLU, bilinear enlargement with
    half-pixel centers and a 3 x 3 convolution; the classic one is two transposed convolutions that double the map, each
    with batch normalization and a ReLU, and a 1 x 1 convolution.

    Args:
        grid: `(rows, columns)` of the patches.
        keypoints: Number of keypoints.
        classic: Whether to use the classic decoder.
        scale: Factor by which the simple decoder enlarges. The classic one enlarges by four.
        filters: Channels of the classic decoder.

    Call arguments:
        tokens: Tensor of tokens of the last block.
        training: Whether batch normalization uses the statistics of the batch.

    Input shape:
        `(batch, tokens, width)`, of known sizes: any number of tokens, then `rows * columns` of patches.

    Output shape:
        `(batch, scale * rows, scale * columns, keypoints)`, float32.

    Raises:
        ValueError: For an argument outside its range, or another shape.

    Example:

    >>> PoseHead((16, 12), 17)(keras.ops.zeros((2, 192, 96))).shape
    (2, 64, 48, 17)
    """

    gives = "heatmaps"  # see `models.kinds`

    def __init__(
        self,
        grid: Sequence[int],
        keypoints: Positive,
        *,
        classic: Switch = False,
        scale: Positive = 4,
        filters: Positive = 256,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.grid = checks.pair("grid", grid)
        self.keypoints = keypoints
        self.classic = classic
        self.scale = 4 if classic else scale
        self.filters = filters

    def build(self, input_shape):
        batch, *size, _ = self.compute_output_shape(input_shape)
        width, dtype = input_shape[-1], self.dtype_policy
        self.deconvs = []
        self.norms = []
        for i in range(2 if self.classic else 0):
            shape = (batch, *(side << i for side in self.grid), width)
            options = {"padding": "same", "use_bias": False, "data_format": LAST, "dtype": dtype}
            self.deconvs.append(keras.layers.Conv2DTranspose(self.filters, 4, 2, name=f"deconv{i}", **options))
            self.deconvs[-1].build(shape)
            width = self.filters
            self.norms.append(norm(f"norm{i}", dtype))
            self.norms[-1].build((batch, *(2 * side for side in shape[1:3]), width))
        kernel = 1 if self.classic else 3
        self.conv = keras.layers.Conv2D(
            self.keypoints, kernel, padding="same", data_format=LAST, name="conv", dtype="float32"
        )
        self.conv.build((batch, *size, width))

    def call(self, tokens, training=None):
        rows, columns = self.grid
        patches = tokens[:, tokens.shape[1] - rows * columns :]
        x = ops.reshape(patches, (-1, rows, columns, tokens.shape[-1]))  # (batch, rows, columns, width)
        if not self.classic:
            x = resized(ops.relu(x), (self.scale * rows, self.scale * columns))
        for deconv, normalize in zip(self.deconvs, self.norms):
            x = ops.relu(normalize(deconv(x), training=training))
        return self.conv(x)  # (batch, scale * rows, scale * columns, keypoints)

    def compute_output_spec(self, tokens, training=None):
        return keras.KerasTensor(self.compute_output_shape(tokens.shape), "float32")  # under any policy

    def compute_output_shape(self, input_shape):
        rows, columns = self.grid
        if len(input_shape) != 3 or None in input_shape[1:] or input_shape[1] < rows * columns:
            raise ValueError(
                f"The input must be tokens (batch, tokens, width) of known sizes, with {rows} x {columns} patches. "
                f"Received: {tuple(input_shape)}"
            )
        return input_shape[0], self.scale * rows, self.scale * columns, self.keypoints
