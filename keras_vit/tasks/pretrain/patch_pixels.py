"""Images and clips from patches, and the statistics of patches."""

from keras import ops

EPSILON = 1e-6  # MAE adds it to the variance of a patch, VideoMAE to the standard deviation


def statistics(patches):
    """Returns mean and standard deviation of each patch.

    Args:
        patches: Tensor, `(batch, patches, values)`, two values or more.

    Returns:
        Two tensors, `(batch, patches, 1)` each. The variance is unbiased.
    """
    mean = ops.mean(patches, axis=-1, keepdims=True)
    variance = ops.sum(ops.square(patches - mean), axis=-1, keepdims=True) / (patches.shape[-1] - 1)
    return mean, ops.sqrt(variance + EPSILON)


def joined(patches, patch_size, shape):
    """Returns images from patches: the inverse of `Patches`.

    Args:
        patches: Array, `(batch, patches, patch_height * patch_width * channels)`.
        patch_size: `(height, width)`.
        shape: `(batch, height, width, channels)` of the images.

    Returns:
        Array of this shape.
    """
    height, width = patch_size
    grid = (shape[1] // height, shape[2] // width)
    cells = patches.reshape(shape[0], *grid, height, width, shape[3])
    return cells.transpose(0, 1, 3, 2, 4, 5).reshape(shape)


def statistics_of_channels(patches, channels):
    """Returns mean and standard deviation of each channel of each patch, as in VideoMAE's code.

    Args:
        patches: Tensor, `(batch, patches, values)`; the channel is the last axis of the flattened values.
        channels: Number of channels; each has two values or more.

    Returns:
        Two tensors, `(batch, patches, channels)` each. The variance is unbiased; epsilon is added to its square root.
    """
    x = ops.reshape(patches, (-1, patches.shape[1], patches.shape[2] // channels, channels))
    mean = ops.mean(x, axis=2, keepdims=True)
    variance = ops.sum(ops.square(x - mean), axis=2) / (x.shape[2] - 1)
    return mean[:, :, 0], ops.sqrt(variance) + EPSILON


def joined_tubelets(tubelets, length, patch_size, shape):
    """Returns clips from tubelets: the inverse of `Tubelets`.

    Args:
        tubelets: Array, `(batch, tubelets, length * patch_height * patch_width * channels)`.
        length: Number of frames of a tubelet.
        patch_size: `(height, width)`.
        shape: `(batch, frames, height, width, channels)` of the clips.

    Returns:
        Array of this shape.
    """
    batch, frames, *of_frame = shape
    cells = tubelets.reshape(batch * frames // length, -1, length, tubelets.shape[-1] // length)
    patches = cells.transpose(0, 2, 1, 3).reshape(batch * frames, -1, cells.shape[-1])
    return joined(patches, patch_size, (batch * frames, *of_frame)).reshape(shape)
