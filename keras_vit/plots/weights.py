"""Figures of patch filters and position embeddings."""

from typing import TYPE_CHECKING

import numpy as np

from keras_vit.plots import canvas, lettering

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_filters(filters: np.ndarray) -> "Figure":
    """Draws the filters of the patch embedding.

    Args:
        filters: Array, `(filters, height, width, channels)`, as `keras_vit.explain.patch_filters` returns. Each is
            scaled by its largest magnitude; zero is middle gray.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    filters = np.asarray(filters, "float32")
    figure, axes = canvas.tiles(len(filters), 7, filters.shape[1:], size=1)
    for axis, values in zip(axes, filters):
        canvas.show(axis, 127.5 * (1 + values / max(np.abs(values).max(), 1e-12)))
    lettering.heading(figure, "Principal components of the filters")
    return figure


def plot_positions(similarity: np.ndarray) -> "Figure":
    """Draws the cosine similarity of position embeddings: a tile for each patch, at its place in the grid.

    Args:
        similarity: Array, `(rows, columns, rows, columns)`, as `keras_vit.explain.position_similarity` returns.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    similarity = np.asarray(similarity)
    rows, columns = similarity.shape[:2]
    # One image with an empty line after each tile: a grid of 24 x 24 would be 576 axes.
    tiled = np.pad(similarity, ((0, 0), (0, 0), (0, 1), (0, 1)), constant_values=np.nan)
    tiled = tiled.transpose(0, 2, 1, 3).reshape(rows * (rows + 1), columns * (columns + 1))
    width, height = (4.4 * min(1, sides) for sides in (columns / rows, rows / columns))  # inches
    figure = canvas.figure(max(width, 1.4) + 1.2, max(height, 1.4) + 0.6)
    axis = figure.subplots()
    drawn = axis.imshow(tiled[:-1, :-1], cmap="viridis", vmax=1)
    for which, count in (("x", columns), ("y", rows)):
        places = np.arange(0, count, 1 + count // 16)
        axis.set(**{f"{which}ticks": places * (count + 1) + (count - 1) / 2, f"{which}ticklabels": places})
    axis.set(xlabel="patch column", ylabel="patch row")
    axis.tick_params(length=0, labelsize=8)
    axis.spines[:].set_visible(False)
    figure.colorbar(drawn, shrink=0.8, label="cosine similarity")
    return figure
