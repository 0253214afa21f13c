"""A clip as an image: its frames are folded into the channels, so that whatever moves or colors it does so to all."""

import struct

import numpy as np

from keras_vit.utils.images import GRAY

MAGIC, HEADER = b"CLIP", struct.Struct("<4sIIII")  # then frames, height, width, channels


def folded(clip):
    """Returns clips `(..., frames, height, width, channels)` as images `(..., height, width, frames * channels)`."""
    moved = np.moveaxis(clip, -4, -2)  # (..., height, width, frames, channels)
    return np.ascontiguousarray(moved).reshape(*moved.shape[:-2], -1)


def folded_tensor(clips):
    """Does the same with a tensor, `(batch, frames, height, width, channels)`."""
    import tensorflow as tf

    frames, height, width, channels = clips.shape[1:]
    return tf.reshape(tf.transpose(clips, (0, 2, 3, 1, 4)), (-1, height, width, frames * channels))


def unfolded_tensor(images, frames):
    """Returns the tensor `(batch, frames, height, width, channels)` of `(batch, height, width, frames * channels)`."""
    import tensorflow as tf

    height, width, values = images.shape[1:]
    x = tf.reshape(images, (-1, height, width, frames, values // frames))
    return tf.transpose(x, (0, 3, 1, 2, 4))


def unfolded(image, frames):
    """Returns the clip `(frames, height, width, channels)` of an image: the inverse of `folded`."""
    return np.moveaxis(image.reshape(*image.shape[:2], frames, -1), 2, 0)


def packed(clip):
    """Returns a clip, uint8 `(frames, height, width, 3)`, as bytes: those of one batch may differ in size."""
    return HEADER.pack(MAGIC, *clip.shape) + clip.tobytes()


def is_packed(data):
    """Returns whether bytes are those of `packed`."""
    return data[:4] == MAGIC


def unpacked(data, channels):
    """Returns the folded clip of `packed` bytes, uint8 `(height, width, channels)`: gray if a frame has one channel.

    Args:
        data: The bytes.
        channels: Channels of all frames together.
    """
    _, frames, *size = HEADER.unpack_from(data)
    clip = np.frombuffer(data, "uint8", offset=HEADER.size).reshape(frames, *size)
    if channels == frames:
        clip = ((clip * np.float32(1 / 255)) @ GRAY * np.float32(255.5)).astype("uint8")[..., None]
    return folded(clip)
