"""Shifts images down and to the right."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.utils.typed import Positive


@keras.saving.register_keras_serializable(package="keras_vit")
class ShiftImage(Layer):
    """Shifts images down and to the right: pads with zeros, and crops the last rows and columns.

    As the stem of `keras_vit.vit`, it makes patches equal to a strided convolution with this padding, as in ViTPose (Xu
    et al. 2022, arXiv:2204.12484). There it follows the rescaling, so that zeros are mean pixels.

    Args:
        pixels: Number of pixels.

    Call arguments:
        images: Tensor of rescaled pixels.

    Input shape:
        `(batch, height, width, channels)`.

    Output shape:
        Same as the input shape.

    Raises:
        ValueError: If `pixels` is not a positive integer.

    Example:

    >>> ShiftImage(2)(keras.ops.ones((1, 8, 8, 3)))[0, 1:4, 2, 0]
    [0., 1., 1.]
    """

    def __init__(self, pixels: Positive, **kwargs):
        super().__init__(**kwargs)
        self.pixels = pixels

    def build(self, input_shape):
        sides = tuple(input_shape)[1:3]
        if len(input_shape) != 4 or any(side is not None and side <= self.pixels for side in sides):
            raise ValueError(
                f"Images must be (batch, height, width, channels) of more than {self.pixels} pixels a side. "
                f"Received: {tuple(input_shape)}"
            )

    def call(self, images):
        moved = images[:, : -self.pixels, : -self.pixels]
        return ops.pad(moved, ((0, 0), (self.pixels, 0), (self.pixels, 0), (0, 0)))

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)
