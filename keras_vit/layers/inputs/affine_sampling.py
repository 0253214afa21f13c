"""The sampling of a Spatial Transformer."""

import keras
import numpy as np
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.bilinear import sampled
from keras_vit.utils import checks
from keras_vit.utils.typed import Switch


@keras.saving.register_keras_serializable(package="keras_vit")
class AffineSampling(Layer):
    """Samples images on an affine grid: the grid generator and the sampler of a Spatial Transformer.

    Jaderberg et al. 2015 (arXiv:1506.02025), sections 3.2 and 3.3. A matrix maps each place of the output to a place of
    the image, `x' = a x + b y + c` and `y' = d x + e y + f`, both from -1 to 1 over the image. There the image is
    interpolated bilinearly, with zeros outside. It computes what `affine_grid` and `grid_sample` of PyTorch compute.
    The identity, `(1, 0, 0, 0, 1, 0)`, returns the image exactly.

    Args:
        size: Size of the output, `(height, width)` or an integer; `None` for the images' own.
        align_corners: Whether -1 and 1 are the centers of the outermost pixels; else they are the image's edges.

    Call arguments:
        images: Tensor of images or feature maps.
        matrices: Tensor, `a` to `f` for each image.

    Input shape:
        `(batch, height, width, channels)` of known sizes, and `(batch, 6)` or `(batch, 2, 3)`.

    Output shape:
        `(batch, *size, channels)`.

    Raises:
        ValueError: For a `size` below 1, or inputs of other shapes.

    Example: a network that turns, moves and enlarges what it looks at, and begins with the identity.

    >>> images = keras.Input((32, 32, 3))
    >>> x = keras.layers.Flatten()(keras.layers.MaxPooling2D(4)(images))
    >>> identity = keras.initializers.Constant([1, 0, 0, 0, 1, 0])
    >>> matrices = keras.layers.Dense(6, kernel_initializer="zeros", bias_initializer=identity)(x)
    >>> AffineSampling(size=16)(images, matrices).shape
    (None, 16, 16, 3)
    """

    def __init__(self, size: int | tuple[int, int] | None = None, *, align_corners: Switch = False, **kwargs):
        super().__init__(**kwargs)
        self.autocast = False  # places in half precision would be off by pixels
        self.size = size if size is None else checks.pair("size", size)
        self.align_corners = align_corners

    def build(self, images_shape, matrices_shape):
        if len(images_shape) != 4 or None in tuple(images_shape)[1:] or tuple(matrices_shape)[1:] not in ((6,), (2, 3)):
            raise ValueError(
                "The images must be (batch, height, width, channels), and the matrices (batch, 6) or (batch, 2, 3). "
                f"Received: shapes {tuple(images_shape)} and {tuple(matrices_shape)}"
            )
        source, target = images_shape[1:3], self.size or images_shape[1:3]
        self.steps = [places_of(source, target, side, self.align_corners) for side in (1, 0)]  # of x, of y

    def call(self, images, matrices):
        height, width = self.size or images.shape[1:3]
        matrices = ops.reshape(ops.cast(matrices, "float32"), (-1, 2, 3, 1))
        places = [
            ops.sum(matrices[:, row] * steps, axis=1) + (images.shape[2 - row] - 1) / 2  # (batch, height * width)
            for row, steps in enumerate(self.steps)
        ]
        places = ops.reshape(ops.stack(places, axis=-1), (-1, height * width, 1, 1, 2))
        values = ops.expand_dims(ops.cast(images, self.compute_dtype), 3)
        found = sampled(values, places, ops.ones_like(places[..., 0]))
        return ops.reshape(found, (-1, height, width, images.shape[-1]))

    def compute_output_shape(self, images_shape, matrices_shape):
        return (images_shape[0], *(self.size or images_shape[1:3]), images_shape[-1])


def places_of(source, target, side, align_corners):
    """Returns how far one of each number of a row of the matrix moves each place of the output, in pixels from the
    center of the image: float32 `(3, places)`.

    Args:
        source: `(height, width)` of the image.
        target: `(height, width)` of the output.
        side: 0 for the row of y, 1 for that of x.
    """
    have = source[side] - align_corners
    y, x = np.mgrid[: target[0], : target[1]]
    steps = [
        (place.reshape(-1) - (count - 1) / 2) * have / max(count - align_corners, 1)
        for place, count in ((x, target[1]), (y, target[0]))
    ]
    return np.stack([*steps, np.full(target[0] * target[1], have / 2)]).astype("float32")
