"""From an encoder's feature maps to one map for a detector: LW-DETR's projector."""

import keras
from keras import ops

from keras_vit.layers.base import LAST, Layer
from keras_vit.layers.blocks.norms import norm
from keras_vit.utils.typed import AboveZero, Positive


@keras.saving.register_keras_serializable(package="keras_vit")
class FeatureProjector(Layer):
    """Joins feature maps of one size by a C2f block of convolutions, and normalizes the result.

    Chen et al. 2024 (LW-DETR, arXiv:2406.03459), section 3.1, on one scale, with layer normalizations as in RF-DETR
    (arXiv:2511.09554): a 1 x 1 convolution, half of whose channels go through pairs of 3 x 3 convolutions in a row; a
    1 x 1 convolution joins all. A normalization over channels and a SiLU follow each convolution.

    Args:
        filters: Channels of the result, an even number.
        steps: Number of pairs of 3 x 3 convolutions.
        epsilon: Epsilon of the normalizations after convolutions; the last one's is 1e-6.

    Input shape:
        `(batch, rows, columns, channels)`: the maps, side by side.

    Output shape:
        `(batch, rows, columns, filters)`.
    """

    def __init__(self, filters: Positive, steps: Positive = 3, epsilon: AboveZero = 1e-6, **kwargs):
        super().__init__(**kwargs)
        if filters % 2:
            raise ValueError(f"`filters` must be an even number. Received: filters={filters}")
        self.filters = filters
        self.steps = steps
        self.epsilon = epsilon

    def build(self, input_shape):
        size, half, dtype = tuple(input_shape[:3]), self.filters // 2, self.dtype_policy
        options = {"epsilon": self.epsilon, "dtype": dtype}
        self.first = _Conv(self.filters, 1, name="first", **options)
        self.first.build(input_shape)
        self.pairs = [_Conv(half, 3, name=f"pair{i // 2}_{i % 2}", **options) for i in range(2 * self.steps)]
        for conv in self.pairs:
            conv.build((*size, half))
        self.last = _Conv(self.filters, 1, name="last", **options)
        self.last.build((*size, (2 + self.steps) * half))
        self.norm = norm("norm", rms_norm=False, epsilon=1e-6, dtype=dtype)
        self.norm.build((*size, self.filters))

    def call(self, maps):
        parts = [*ops.split(self.first(maps), 2, axis=-1)]  # (batch, rows, columns, filters / 2) each
        for first, second in zip(self.pairs[::2], self.pairs[1::2]):
            parts.append(second(first(parts[-1])))
        return self.norm(self.last(ops.concatenate(parts, axis=-1)))

    def compute_output_shape(self, input_shape):
        return *input_shape[:3], self.filters


class _Conv(Layer):
    """A convolution that keeps rows and columns, a normalization over channels, and a SiLU."""

    def __init__(self, filters, kernel_size, *, epsilon, **kwargs):
        super().__init__(**kwargs)
        self.filters = filters
        self.kernel_size = kernel_size
        self.epsilon = epsilon

    def build(self, input_shape):
        dtype = self.dtype_policy
        self.conv = keras.layers.Conv2D(
            self.filters, self.kernel_size, padding="same", use_bias=False, data_format=LAST, name="conv", dtype=dtype
        )
        self.conv.build(input_shape)
        self.norm = norm("norm", rms_norm=False, epsilon=self.epsilon, dtype=dtype)
        self.norm.build((*input_shape[:3], self.filters))

    def call(self, x):
        return ops.silu(self.norm(self.conv(x)))

    def compute_output_shape(self, input_shape):
        return *input_shape[:3], self.filters
