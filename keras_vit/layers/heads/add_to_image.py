"""Adds a model's output to its input image."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.utils.resampling import resize_matrix
from keras_vit.utils.typed import Positive, Switch

HALF = 127.5  # pixels per unit of a model whose pixels are rescaled to -1..1


@keras.saving.register_keras_serializable(package="keras_vit")
class AddToImage(Layer):
    """Adds a model's output, times 127.5, to the image, enlarged by Keys' cubic convolution if `scale` is above 1.

    A change of one channel is added to all channels of the image: it changes only the brightness. A gray image is
    repeated to the channels of the change.

    Args:
        scale: Factor on both sides of the image.
        keep_brightness: Whether to keep the brightness of the image: its change (BT.601) is subtracted from a change of
            red, green and blue.

    Call arguments:
        inputs: Pair of images, pixels from 0 to 255, and changes.

    Input shape:
        `(batch, height, width, channels)`, of known sizes, and `(batch, scale * height, scale * width, 1 or channels)`;
        the images may be gray, with one channel.

    Output shape:
        `(batch, scale * height, scale * width, channels)`, pixels, which may leave the range of 0 to 255.

    Raises:
        ValueError: For a scale below 1, or changes that do not fit the images.

    Example:

    >>> images, changes = keras.ops.ones((1, 8, 8, 3)), keras.ops.zeros((1, 16, 16, 3))
    >>> AddToImage(scale=2)([images, changes]).shape
    (1, 16, 16, 3)
    """

    gives = "image"  # see `models.kinds`

    def __init__(self, *, scale: Positive = 1, keep_brightness: Switch = False, **kwargs):
        super().__init__(**kwargs)
        self.scale = scale
        self.keep_brightness = keep_brightness

    def build(self, input_shape):
        images, changes = (tuple(shape) for shape in input_shape)
        sides = images[1:3]
        target = tuple(None if side is None else self.scale * side for side in sides)
        if None in sides or changes[1:3] != target or not (images[3] == 1 or changes[3] in (1, images[3])):
            raise ValueError(
                f"The changes must be (batch, {target[0]}, {target[1]}, 1 or {images[3]}), {self.scale} times as large "
                f"as the images. Received: images {images}, changes {changes}"
            )
        self.matrices = matrices(sides, self.scale)

    def call(self, inputs):
        images, changes = inputs
        x = ops.cast(images, self.compute_dtype)
        if self.scale > 1:
            x = enlarged(x, self.matrices)
        changes = ops.cast(changes, self.compute_dtype)
        if self.keep_brightness:
            changes = changes - ops.sum(changes * ops.convert_to_tensor(LUMA, self.compute_dtype), -1, keepdims=True)
        return x + HALF * changes  # (batch, scale * height, scale * width, channels)

    def compute_output_shape(self, input_shape):
        (batch, height, width, channels), changes = input_shape
        return batch, self.scale * height, self.scale * width, max(channels, changes[-1])


def matrices(sides, scale):
    """Returns the matrices that enlarge both sides of images by a factor; see `enlarged`."""
    return [resize_matrix(side, side * scale, "bicubic-antialias").T.astype("float32") for side in sides]


def enlarged(images, by):
    """Returns images, enlarged by cubic convolution: products with constant matrices, which every export format has.

    Args:
        images: Tensor, `(batch, height, width, channels)`.
        by: From `matrices`.
    """
    rows, columns = (ops.convert_to_tensor(matrix, images.dtype) for matrix in by)
    x = ops.matmul(ops.transpose(images, (0, 3, 2, 1)), rows)  # (batch, channels, width, scale * height)
    x = ops.matmul(ops.transpose(x, (0, 1, 3, 2)), columns)  # (batch, channels, scale * height, scale * width)
    return ops.transpose(x, (0, 2, 3, 1))


LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601
