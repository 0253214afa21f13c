"""Figure of images and the colors of their patches."""

from typing import TYPE_CHECKING

import numpy as np

from keras_vit.plots import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_pca(images: np.ndarray, colors: np.ndarray, across: int = 4) -> "Figure":
    """Draws each image next to what `pca_image` makes of it.

    Args:
        images: Array, `(n, height, width, channels)`, 0..255.
        colors: Array of `pca_image`, `(n, rows, columns, 3)`, 0 to 1.
        across: Number of images per row of the figure.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: If the arrays do not match.
    """
    images, colors = canvas.images(images, colors=colors), np.asarray(colors)
    if colors.ndim != 4 or colors.shape[-1] != 3:
        raise ValueError(f"`colors` must be (n, rows, columns, 3). Received: shape={colors.shape}")
    figure, axes = canvas.tiles(len(images), across, images.shape[1:], times=2)
    extent = (0, images.shape[2], images.shape[1], 0)
    for left, right, image, painted in zip(axes[::2], axes[1::2], images, colors):
        canvas.show(left, image)
        right.imshow(painted, extent=extent, interpolation="nearest")
    return figure
