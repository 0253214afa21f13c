"""A figure of several labels an image: average precision by class."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_vit.plots import canvas, lettering

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BARS = 40  # classes in the figure, at most


def plot_precisions(
    precisions: Sequence[float], names: Sequence[str], positives: Sequence[int], known: Sequence[int]
) -> "Figure":
    """Draws the average precision of each class as a bar, lowest first, and of many the lowest.

    Args:
        precisions: 0 to 1, one a class.
        names: A name for each class.
        positives: Images that have each class.
        known: Images of which it is known whether they have it: a dot shows their share with it, what chance gives.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    precisions, positives, known = np.asarray(precisions), np.asarray(positives), np.asarray(known)
    order = np.argsort(precisions, kind="stable")[:BARS]
    places, texts = np.arange(len(order)), [lettering.words(lettering.short(name)) for name in names]
    figure, axis = canvas.bars([f"{texts[i]} (9999)" for i in order], len(order))
    axis.barh(places, precisions[order], color=canvas.COLORS[5])
    axis.plot((positives / np.maximum(known, 1))[order], places, "o", color="#222222", markeredgecolor="white")
    axis.set_yticks(places, [f"{texts[i]} ({positives[i]})" for i in order], fontsize=8)
    axis.set(xlabel="average precision (in brackets: images with the label)", xlim=(0, 1.02))
    canvas.end_at_one(axis)
    axis.invert_yaxis()
    if len(order) < len(precisions):
        axis.set_title(f"the {len(order)} of {len(precisions)} classes with the lowest", fontsize=9)
    return figure
