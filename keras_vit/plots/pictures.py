"""A figure of pictures."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_vit.plots import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_pictures(pictures: Sequence[np.ndarray], titles: Sequence[str] | None = None, across: int = 4) -> "Figure":
    """Draws pictures in rows, such as those of `keras_vit.Task.picture`.

    Args:
        pictures: Arrays, `(rows, columns, channels)`, 0..255.
        titles: A text for each picture, or `None`.
        across: Pictures per row.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: If there is no picture, or the number of titles differs.
    """
    if not len(pictures) or (titles is not None and len(titles) != len(pictures)):
        count = "none" if titles is None else len(titles)
        raise ValueError(
            f"`pictures` must be one or more, with one title each. Received: {len(pictures)} pictures, titles: {count}"
        )
    figure, axes = canvas.tiles(len(pictures), across, np.shape(pictures[0]), titles=titles, most=6)
    for axis, picture in zip(axes, pictures):
        canvas.show(axis, picture)
    return figure
