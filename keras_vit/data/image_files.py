"""Image files outside a data set, as evaluation sees them."""

from types import SimpleNamespace

import numpy as np
import tensorflow as tf

from keras_vit.data import crops
from keras_vit.data.decoding import error_reason
from keras_vit.images import encoded, is_deep, orientation, warn_if_shallow

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
    images = []
    for path in paths:
        item = encoded(path)
        try:
            images.append(crops.evaluation_image(tf.constant(item), size, data, orientation(item)).numpy())
        except tf.errors.OpError as error:
            raise ValueError(f"{str(path)!r} cannot be read as an image: {error_reason(error)}") from None
        if is_deep(item):
            warn_if_shallow(images[-1].max())
    return np.stack(images)
