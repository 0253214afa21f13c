"""From patches to images, and the statistics of a patch."""

from keras import ops

EPSILON = 1e-6  # added to a patch's variance, as the authors of masked autoencoders do


def statistics(patches):
    """Returns the mean and the deviation of each patch.

    Args:
        patches: Tensor, `(batch, patches, values)`, two values or more.

    Returns:
        Two tensors, `(batch, patches, 1)`. The variance is unbiased.
    """
    mean = ops.mean(patches, axis=-1, keepdims=True)
    variance = ops.sum(ops.square(patches - mean), axis=-1, keepdims=True) / (patches.shape[-1] - 1)
    return mean, ops.sqrt(variance + EPSILON)


def joined(patches, patch_size, shape):
    """Returns the images of which `Patches` made these patches.

    Args:
        patches: Array, `(batch, patches, patch_height * patch_width * channels)`.
        patch_size: `(height, width)`.
        shape: `(batch, height, width, channels)` of the images.
    """
    height, width = patch_size
    grid = (shape[1] // height, shape[2] // width)
    cells = patches.reshape(shape[0], *grid, height, width, shape[3])
    return cells.transpose(0, 1, 3, 2, 4, 5).reshape(shape)
