"""Figure of masked images and what a masked autoencoder makes of them."""

from typing import TYPE_CHECKING

import numpy as np

from keras_vit.plots import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = ("image", "masked", "reconstruction")


def plot_reconstruction(images: np.ndarray, masked: np.ndarray, reconstructed: np.ndarray, across: int = 2) -> "Figure":
    """Draws each image next to the masked image and the reconstruction.

    Args:
        images: Array, `(n, height, width, channels)`, 0..255.
        masked: Array like `images`, as `MaskedAutoencoder.reconstruct` returns it.
        reconstructed: Array like `images`, as `MaskedAutoencoder.reconstruct` returns it.
        across: Number of images per row of the figure.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: If the arrays are not pixels of the same shape.
    """
    columns = [canvas.images(values) for values in (images, masked, reconstructed)]
    shapes = [values.shape for values in columns]
    if len(set(shapes)) > 1:
        raise ValueError(f"`images`, `masked` and `reconstructed` must have one shape. Received: {shapes}")
    figure, axes = canvas.tiles(len(images), across, shapes[0][1:], times=len(TITLES))
    figure.set_figheight(figure.get_figheight() + 0.1)
    pictures = [one for row in zip(*columns) for one in row]
    for i, (axis, image) in enumerate(zip(axes, pictures)):
        canvas.show(axis, image)
        if i < len(TITLES) * min(across, len(images)):
            axis.set_title(TITLES[i % len(TITLES)], fontsize=8)
    return figure
