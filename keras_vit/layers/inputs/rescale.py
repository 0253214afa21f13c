"""Normalizes pixels with the mean and standard deviation that a model was trained with."""

from collections.abc import Sequence

import keras
import numpy as np

from keras_vit.layers.base import Layer, plain
from keras_vit.utils import checks
from keras_vit.utils.value_range import by_band, of_pairs

FACTORS = (1 / 255, 1 / 127.5)  # first arguments of `keras.layers.Rescaling`


@keras.saving.register_keras_serializable(package="keras_vit")
class Rescale(Layer):
    """Rescales pixels to `(pixel / 255 - mean) / std`, and stores the model's metadata.

    Args:
        mean: Mean of the pixels on a scale of 0 to 1: a number, or one per channel.
        std: Standard deviation on the same scale, above 0: a number, or one per channel.
        metadata: Dictionary of plain values that is saved with the model, such as the source of its weights and how
            `keras_vit.preprocess` resizes images for it.
        value_range: Lowest and highest pixel value, which become 0 and 1 before `mean` and `std` are applied; such as
            `(0, 4095)` for 12-bit scans, `(-1024, 3071)` for Hounsfield units, or `(0, 1)`. Or a pair for each channel:
            then pixels outside are clipped. Functions that check or prepare images for the model read it here.

    Call arguments:
        images: Tensor of pixels in `value_range`, of any dtype.

    Input shape:
        `(batch, height, width, channels)`.

    Output shape:
        Same as the input shape.

    Raises:
        ValueError: If the number of means or standard deviations differs from the channels, or a standard deviation
            is not above 0; if `value_range` is not two increasing numbers, or such a pair for each channel; in the
            call, if the images have another number of channels than the layer was built for.

    Example:

    >>> float(Rescale(0.5, 0.5)(keras.ops.full((1, 1, 1, 3), 255.0))[0, 0, 0, 0])
    1.0
    """

    def __init__(
        self,
        mean: float | Sequence[float] = 0.5,
        std: float | Sequence[float] = 0.5,
        metadata: dict | None = None,
        value_range: Sequence = (0, 255),
        **kwargs,
    ):
        super().__init__(**kwargs)
        try:
            self.mean = np.asarray(mean, "float64").tolist()
            self.std = np.asarray(std, "float64").tolist()
        except (TypeError, ValueError):
            raise ValueError(
                f"`mean` and `std` must be numbers. Received: mean={checks.shown(mean)}, std={checks.shown(std)}"
            ) from None
        means = np.ravel(self.mean)
        if np.isin(means, FACTORS).any() or (np.abs(means) > 1).any():
            raise ValueError(
                "`mean` must be the mean of the pixels on a scale of 0 to 1, not in pixels, and no factor as in "
                f"keras.layers.Rescaling. Received: mean={checks.shown(mean)}"
            )
        if not isinstance(metadata, (dict, type(None))):
            raise ValueError(f"`metadata` must be a dictionary. Received: metadata={checks.shown(metadata)}")
        if not (np.asarray(self.std) > 0).all():
            raise ValueError(f"`std` must be above 0. Received: std={self.std}")
        if not np.isfinite([*np.ravel(self.mean), *np.ravel(self.std)]).all():
            raise ValueError(f"`mean` and `std` must be finite. Received: mean={self.mean}, std={self.std}")
        self.metadata = dict(metadata or {})
        self.limits = of_pairs(value_range)  # `(low, high)`, or `(lows, highs)`
        self.value_range = np.asarray(value_range).tolist()

    def build(self, input_shape):
        self.channels = input_shape[-1]
        for name, values in (("mean", self.mean), ("std", self.std)):
            if np.shape(values) not in ((), (input_shape[-1],)):
                raise ValueError(
                    f"`{name}` must be a number or one for each of {input_shape[-1]} channels. "
                    f"Received: {name}={checks.shown(values)}"
                )

        if by_band(self.limits) and len(self.value_range) != input_shape[-1]:
            raise ValueError(
                f"`value_range` must be a pair of numbers, or one for each of {input_shape[-1]} channels. "
                f"Received: value_range={checks.shown(self.value_range)}"
            )

    def call(self, images):
        if len(images.shape) != 4 or images.shape[-1] != self.channels:
            raise ValueError(
                f"Images must have the shape (batch, height, width, {self.channels}). "
                f"Received: shape={tuple(images.shape)}"
            )
        mean, std = np.asarray(self.mean), np.asarray(self.std)
        low, high = (np.asarray(end, "float64") for end in self.limits)
        scale = 1 / ((high - low) * std)
        offset = -mean / std - low * scale
        x = keras.ops.cast(images, self.compute_dtype)
        if by_band(self.limits):
            x = keras.ops.minimum(keras.ops.maximum(x, keras.ops.cast(low, x.dtype)), keras.ops.cast(high, x.dtype))
        return x * keras.ops.cast(scale, x.dtype) + keras.ops.cast(offset, x.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "metadata": plain(self.metadata)}
