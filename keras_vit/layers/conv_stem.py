"""A stem of few convolutions, as an alternative to large patches."""

from collections.abc import Sequence

import keras
from keras import ops

from keras_vit import checks
from keras_vit.layers.own_config import own_config


@keras.saving.register_keras_serializable(package="keras_vit")
class ConvStem(keras.layers.Layer):
    """Applies 3 x 3 convolutions, each with batch normalisation and ReLU, to make a feature map.

    Xiao et al. 2021 (arXiv:2106.14881, "Early convolutions help transformers see better"), section 4. Their stem ends
    with a 1 x 1 convolution to the width: here that is `PatchEncoder`'s projection of patches of size 1.

    Args:
        filters: Output channels of each convolution, such as `(48, 96, 192, 384)`.
        strides: Stride of each convolution; `None` for 2 everywhere.

    Call arguments:
        images: Tensor of rescaled pixels.
        training: Whether to normalise with the statistics of the batch and update the moving averages.

    Input shape:
        `(batch, height, width, channels)`.

    Output shape:
        `(batch, height / s, width / s, filters[-1])`, where `s` is the product of the strides. Sizes are rounded up.

    Raises:
        ValueError: If filters or strides are not positive integers, or differ in number.

    Example:

    >>> ConvStem((24, 48, 96, 192))(keras.ops.zeros((1, 32, 32, 3))).shape
    (1, 2, 2, 192)
    """

    def __init__(self, filters: Sequence[int], strides: Sequence[int] | None = None, **kwargs):
        super().__init__(**kwargs)
        self.filters = checks.sequence("filters", filters)
        self.strides = (2,) * len(self.filters) if strides is None else checks.sequence("strides", strides)
        if not self.filters or len(self.filters) != len(self.strides):
            raise ValueError(
                f"Each convolution must have one stride. Received: filters={filters!r}, strides={strides!r}"
            )
        for name in ("filters", "strides"):
            checks.positive(**{f"{name}[{i}]": value for i, value in enumerate(getattr(self, name))})

    def build(self, input_shape):
        dtype, shape = self.dtype_policy, tuple(input_shape)
        self.convs, self.norms = [], []
        for i, (filters, stride) in enumerate(zip(self.filters, self.strides)):
            conv = keras.layers.Conv2D(
                filters, 3, strides=stride, padding="same", use_bias=False, name=f"conv{i}", dtype=dtype
            )
            norm = keras.layers.BatchNormalization(epsilon=1e-5, momentum=0.9, name=f"norm{i}", dtype=dtype)
            conv.build(shape)
            shape = conv.compute_output_shape(shape)
            norm.build(shape)
            self.convs.append(conv)
            self.norms.append(norm)

    def call(self, images, training=None):
        x = images
        for conv, norm in zip(self.convs, self.norms):
            x = ops.relu(norm(conv(x), training=training))
        return x  # (batch, height / s, width / s, filters[-1])

    def compute_output_shape(self, input_shape):
        batch, *sides, _ = input_shape
        for stride in self.strides:
            sides = [side and -(-side // stride) for side in sides]
        return batch, *sides, self.filters[-1]

    def get_config(self):
        return {**super().get_config(), **own_config(self, ConvStem)}
