"""Figures of several labels an image: average precision by class, and precision against recall."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_vit.plots import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVES, BARS = 10, 40  # classes in each figure, at most


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
    places, texts = np.arange(len(order)), [canvas.short(name) for name in names]
    figure = canvas.figure(6, 1 + 0.25 * len(order))
    axis = figure.subplots()
    axis.barh(places, precisions[order], color=canvas.COLORS[5])
    axis.plot((positives / np.maximum(known, 1))[order], places, "o", color="#888888", markersize=4)
    axis.set_yticks(places, [f"{texts[i]} ({positives[i]})" for i in order], fontsize=8)
    axis.set(xlabel="average precision (in brackets: images with the label)", xlim=(0, 1.02))
    axis.invert_yaxis()
    if len(order) < len(precisions):
        axis.set_title(f"the {len(order)} of {len(precisions)} classes with the lowest", fontsize=9)
    return figure


def plot_curves(classes: dict[str, tuple[np.ndarray, np.ndarray]], thresholds: Sequence[float]) -> "Figure":
    """Draws precision against recall of some classes, with a dot at each threshold.

    Args:
        classes: By name: whether each image has the label, and its probability in each, both `(images,)`.
        thresholds: Probability from which on the label holds, one a class.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    from sklearn.metrics import precision_recall_curve

    figure = canvas.figure(5.2, 4)
    axis = figure.subplots()
    for i, ((name, (true, shares)), threshold) in enumerate(zip(classes.items(), thresholds)):
        precision, recall, _ = precision_recall_curve(true, shares)
        color, style = canvas.COLORS[i % len(canvas.COLORS)], "-" if i < len(canvas.COLORS) else "--"
        axis.step(recall, precision, style, where="post", color=color, label=canvas.short(name))
        found = shares >= threshold
        if found.any():
            axis.plot((true & found).sum() / true.sum(), (true & found).sum() / found.sum(), "o", color=color)
    axis.set(xlabel="recall", ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.02))
    axis.grid(alpha=0.3)
    figure.legend(frameon=False, fontsize=8, loc="outside right upper")
    return figure
