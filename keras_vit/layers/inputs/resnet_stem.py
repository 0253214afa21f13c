"""The ResNet stem of the R+ViT hybrids."""

from collections.abc import Sequence

import keras
from keras import ops

from keras_vit.layers.base import LAST, Layer
from keras_vit.layers.inputs.standardized_conv import STANDARDIZE, StandardizedConv2D
from keras_vit.utils import checks
from keras_vit.utils.typed import AboveZero, Positive, among


@keras.saving.register_keras_serializable(package="keras_vit")
class ResNetStem(Layer):
    """Computes a feature map by a ResNet with weight-standardized convolutions and group normalization.

    The root is a 7 x 7 convolution of stride 2, then 3 x 3 max-pooling of stride 2. Stages of bottlenecks follow; each
    stage but the first halves the feature map. A bottleneck has its stride on the 3 x 3 convolution and its last ReLU
    after the sum.
    Dosovitskiy et al. 2021 (arXiv:2010.11929), section 3.1; Kolesnikov et al. 2020 (arXiv:1912.11370), section 3.

    Args:
        stages: Number of bottlenecks in each stage, such as `(3, 4, 6, 3)`; empty for the root only.
        width: Channels of the root, a multiple of 32; stage `i` has `4 * width * 2 ** i` channels.
        epsilon: Epsilon of the group normalizations: 1e-6 (Google) or 1e-5 (timm).
        standardize: `"google"` or `"timm"`; see `StandardizedConv2D`.

    Input shape:
        `(batch, height, width, channels)`.

    Output shape:
        `(batch, rows, columns, channels)`. Rows and columns are a quarter of height and width after the root, and half
        of that after each stage but the first. Sizes are rounded up.

    Raises:
        ValueError: If stages are not positive integers, or the width is not a multiple of 32.

    Example:

    >>> ResNetStem((3, 4, 9))(keras.ops.zeros((1, 64, 64, 3))).shape
    (1, 4, 4, 1024)
    """

    def __init__(
        self,
        stages: Sequence[int] = (3, 4, 6, 3),
        *,
        width: Positive = 64,
        epsilon: AboveZero = 1e-6,
        standardize: among(STANDARDIZE) = "google",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.stages = checks.sequence("stages", stages)
        checks.positive(**{f"stages[{i}]": count for i, count in enumerate(self.stages)})
        if width % 32:
            raise ValueError(f"`width` must be a multiple of 32. Received: width={width}")
        self.width = width
        self.epsilon = epsilon
        self.standardize = standardize

    def build(self, input_shape):
        self.root = self._conv(self.width, 7, strides=2, name="root")
        self.root_norm = self._norm("root_norm")
        pool = {"strides": 2, "padding": "same", "data_format": LAST}
        self.pool = keras.layers.MaxPooling2D(3, **pool, name="pool", dtype=self.dtype_policy)
        self.units = [
            _Bottleneck(
                self.width * 2**i,
                stride=2 if i and not j else 1,
                conv=self._conv,
                norm=self._norm,
                name=f"stage{i}_unit{j}",
                dtype=self.dtype_policy,
            )
            for i, count in enumerate(self.stages)
            for j in range(count)
        ]
        shape = tuple(input_shape)
        for layer in (self.root, self.root_norm, self.pool, *self.units):
            layer.build(shape)
            shape = layer.compute_output_shape(shape)

    def call(self, images):
        x = self.pool(ops.relu(self.root_norm(self.root(images))))  # (batch, height / 4, width / 4, width)
        for unit in self.units:
            x = unit(x)
        return x

    def _conv(self, filters, kernel_size, name, strides=1):
        return StandardizedConv2D(
            filters, kernel_size, strides=strides, standardize=self.standardize, name=name, dtype=self.dtype_policy
        )

    def _norm(self, name, gamma="ones"):
        return keras.layers.GroupNormalization(
            32, epsilon=self.epsilon, gamma_initializer=gamma, name=name, dtype=self.dtype_policy
        )

    def compute_output_shape(self, input_shape):
        batch, height, width, _ = input_shape
        for _ in range(2 + max(len(self.stages) - 1, 0)):
            height, width = (side and -(-side // 2) for side in (height, width))
        return batch, height, width, 4 * self.width * 2 ** (len(self.stages) - 1) if self.stages else self.width


class _Bottleneck(Layer):
    """1 x 1, 3 x 3 and 1 x 1 convolutions, a shortcut around them, and a ReLU after the sum."""

    def __init__(self, filters, stride, conv, norm, **kwargs):
        super().__init__(**kwargs)
        self.filters = filters
        self.stride = stride
        self._conv = conv
        self._norm = norm

    def build(self, input_shape):
        self.conv1 = self._conv(self.filters, 1, name="conv1")
        self.norm1 = self._norm("norm1")
        self.conv2 = self._conv(self.filters, 3, strides=self.stride, name="conv2")
        self.norm2 = self._norm("norm2")
        self.conv3 = self._conv(4 * self.filters, 1, name="conv3")
        self.norm3 = self._norm("norm3", gamma="zeros")
        shape = tuple(input_shape)
        for layer in (self.conv1, self.norm1, self.conv2, self.norm2, self.conv3, self.norm3):
            layer.build(shape)
            shape = layer.compute_output_shape(shape)
        self.shortcut = None
        if self.stride != 1 or input_shape[-1] != 4 * self.filters:
            self.shortcut = self._conv(4 * self.filters, 1, strides=self.stride, name="shortcut")
            self.shortcut_norm = self._norm("shortcut_norm")
            self.shortcut.build(input_shape)
            self.shortcut_norm.build(self.shortcut.compute_output_shape(input_shape))

    def call(self, x):
        y = ops.relu(self.norm1(self.conv1(x)))
        y = ops.relu(self.norm2(self.conv2(y)))
        y = self.norm3(self.conv3(y))
        return ops.relu(y + (x if self.shortcut is None else self.shortcut_norm(self.shortcut(x))))

    def compute_output_shape(self, input_shape):
        batch, height, width, _ = input_shape
        height, width = (side and -(-side // self.stride) for side in (height, width))
        return batch, height, width, 4 * self.filters
