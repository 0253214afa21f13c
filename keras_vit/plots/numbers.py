"""Figures of predicted numbers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_vit.plots import canvas, lettering

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ACROSS = 4  # numbers in a row
MANY = 2000  # points, beyond which they are drawn as a density


def plot_numbers(truth: np.ndarray, found: np.ndarray, names: Sequence[str]) -> "Figure":
    """Draws predicted numbers against true ones, with the line on which a perfect prediction is.

    Args:
        truth: Array, `(images, numbers)`.
        found: Array of the same shape.
        names: A name for each number.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: If the shapes differ, or there are fewer or more names.
    """
    truth, found = np.asarray(truth, "float64"), np.asarray(found, "float64")
    if truth.ndim != 2 or truth.shape != found.shape or truth.shape[1] != len(names):
        raise ValueError(
            "`truth` and `found` must be (images, numbers), with a name for each number. "
            f"Received: shapes {truth.shape} and {found.shape}, {len(names)} names"
        )
    across = min(len(names), ACROSS)
    rows = -(-len(names) // across)
    figure = canvas.figure(3.4 * across, 3.4 * rows)
    axes = figure.subplots(rows, across, squeeze=False).ravel()
    for axis in axes[len(names) :]:
        axis.set_axis_off()
    for axis, name, true, predicted in zip(axes, names, truth.T, found.T):
        low, high = (f(np.concatenate([true, predicted])) for f in (np.min, np.max))
        if len(true) > MANY:
            axis.hexbin(true, predicted, gridsize=40, bins="log", cmap="Blues", linewidths=0)
        else:
            axis.plot(true, predicted, "o", color=canvas.COLORS[0], markersize=3, alpha=0.5)
        axis.plot([low, high], [low, high], "--", color="#888888", linewidth=1)
        axis.set_xlabel(lettering.fitted(f"true {name}", 2.2, 10))
        axis.set_ylabel(lettering.fitted(f"predicted {name}", 2.2, 10))
    return figure
