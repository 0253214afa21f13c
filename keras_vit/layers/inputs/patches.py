"""Cuts an image into a sequence of flat patches."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.utils import checks


@keras.saving.register_keras_serializable(package="keras_vit")
class Patches(Layer):
    """Cuts images into non-overlapping patches and flattens each.

    The order of patches is row-major: left to right, then down. So is the order of the pixels in a patch, channels
    last, as in a convolution kernel. The layer uses only reshapes of at most four dimensions and one
    transpose, which every exporter supports. Dosovitskiy et al. 2021 (arXiv:2010.11929), section 3.1.

    Args:
        patch_size: Positive integer, or `(height, width)`, in pixels.

    Call arguments:
        images: Tensor of pixels or of a convolutional feature map.

    Input shape:
        `(batch, height, width, channels)`. Height and width must be known.

    Output shape:
        `(batch, patches, patch_height * patch_width * channels)`.

    Raises:
        ValueError: If the patch size is not a positive integer, or does not divide the image size.

    Example:

    >>> Patches(4)(keras.ops.zeros((2, 28, 28, 1))).shape
    (2, 49, 16)
    """

    def __init__(self, patch_size: int | tuple[int, int], **kwargs):
        super().__init__(**kwargs)
        self.patch_size = checks.pair("patch_size", patch_size)

    def grid(self, input_shape):
        """Returns the grid of patches, `(rows, columns)`, for the shape `(batch, height, width, channels)`."""
        if len(input_shape) != 4 or None in tuple(input_shape)[1:]:
            raise ValueError(
                "The input of `Patches` must be (batch, height, width, channels) with known sizes. "
                f"Received: input_shape={tuple(input_shape)}"
            )
        (height, width), (patch_height, patch_width) = input_shape[1:3], self.patch_size
        fits = height % patch_height == 0 and width % patch_width == 0
        first = height in (1, 3) and input_shape[3] > 4 and keras.config.image_data_format() == "channels_first"
        if first or (not fits and height in (1, 3) and width == input_shape[3]):
            raise ValueError(
                "The input of `Patches` must have its channels last, (batch, height, width, channels), whatever "
                "image_data_format says: keras.ops.transpose(images, (0, 2, 3, 1)). "
                f"Received: input_shape={tuple(input_shape)}"
            )
        if not fits:
            raise ValueError(
                "The patch size must divide the image size. "
                f"Received: an image of {height} x {width} and patches of {patch_height} x {patch_width}"
            )
        return height // patch_height, width // patch_width

    def build(self, input_shape):
        self.grid(input_shape)

    def call(self, images):
        rows, columns = self.grid(images.shape)
        height, width = self.patch_size
        channels = images.shape[-1]
        x = ops.reshape(images, (-1, height, columns, width * channels))  # (batch * rows, height, columns, width * c)
        x = ops.transpose(x, (0, 2, 1, 3))  # (batch * rows, columns, height, width * c)
        return ops.reshape(x, (-1, rows * columns, height * width * channels))  # (batch, patches, height * width * c)

    def compute_output_shape(self, input_shape):
        rows, columns = self.grid(input_shape)
        height, width = self.patch_size
        return (input_shape[0], rows * columns, height * width * input_shape[-1])
