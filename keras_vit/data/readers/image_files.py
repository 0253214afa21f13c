"""Image files outside a data set, as evaluation sees them."""

from types import SimpleNamespace

import numpy as np
import tensorflow as tf

from keras_vit.data.augment import crops
from keras_vit.utils.images import read_pixels

WHOLE = SimpleNamespace(resize=None, method="bilinear", antialias=True)  # the defaults of `keras_vit.config.Data`


def read_files(paths, size, data=WHOLE):
    """Returns image files as evaluation sees them.

    Args:
        paths: Paths of image files.
        size: `(height, width, channels)`.
        data: A `keras_vit.config.Data`, which determines how images are resized.

    Returns:
        float32 array, `(files, height, width, channels)`, 0..255.

    Raises:
        FileNotFoundError: If a file does not exist.
        ValueError: If a file cannot be read as an image, or `size` has other than 1 or 3 channels.
    """
    if size[2] not in (1, 3):
        raise ValueError(f"A model of image files must have 1 or 3 channels. Received: a model of {size[2]}")
    prepare = lambda pixels: crops.evaluation_image(tf.constant(pixels), size, data).numpy()  # noqa: E731
    return np.stack([read_pixels(path, size[2], prepare) for path in paths])
