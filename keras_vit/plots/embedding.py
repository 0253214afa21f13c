"""Figures of embeddings: a scatter plot, and nearest neighbors."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_vit.plots import canvas, lettering

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Shapes that differ at four pixels, and whether they are filled; with six colors, 48 distinct classes.
MARKERS = (("o", True), ("x", True), ("o", False), ("_", True), ("^", True), ("|", True), ("+", True), ("s", False))


def plot_embedding(
    points: np.ndarray,
    labels: Sequence[int] | Sequence[str],
    class_names: Sequence[str] | None = None,
    images: np.ndarray | None = None,
) -> "Figure":
    """Draws a scatter plot of embedded images, colored by class.

    Args:
        points: Array, `(n, 2)`, as `keras_vit.explain.project` returns.
        labels: Class indices, or names of classes, `(n,)`.
        class_names: A text for each class, or `None`.
        images: Array, `(n, height, width, channels)`, 0..255, or `None`; some of them are drawn next to their points.

    Returns:
        A `matplotlib.figure.Figure`; the points of class `i` have the gid `"class_i"`.

    Raises:
        ValueError: If the numbers of points, labels and images differ, or labels are no classes.
    """
    points = np.asarray(points, "float32")
    if points.ndim != 2 or points.shape[1] != 2 or len(points) != len(labels):
        raise ValueError(
            "`points` must have the shape (n, 2), one point for each label. "
            f"Received: {len(labels)} labels, points of shape {points.shape}"
        )
    texts, labels = canvas.classes(class_names, labels=labels)
    figure = canvas.figure(7.5, 5.5)
    axis = figure.subplots()
    drawn = {}
    for i in np.unique(labels):
        drawn[i] = _scattered(axis, points[labels == i], i)
        drawn[i].set_gid(f"class_{i}")
    axis.set(xticks=[], yticks=[])
    if images is not None:
        _pictures(axis, points, canvas.images(images, points=points))
    looks = len(canvas.COLORS) * len(MARKERS)
    if len(drawn) <= looks:
        lettering.legend(figure, drawn.values(), [texts[i] for i in drawn], below=False)
    else:
        axis.set_title(f"{len(drawn)} classes: each color and marker is of several", fontsize=lettering.TITLE)
    return figure


def _scattered(axis, points, number):
    """Draws the points of a class in its color and marker."""
    from matplotlib.colors import to_rgba

    marker, filled = MARKERS[number // len(canvas.COLORS) % len(MARKERS)]
    color = [to_rgba(canvas.COLORS[number % len(canvas.COLORS)], 0.8)]
    inside = {} if filled else {"facecolors": [(1, 1, 1, 0)]}  # "none" would write a path for each point
    width = 0 if filled and marker in "o^" else 1
    return axis.scatter(*points.T, s=18, color=color, marker=marker, linewidths=width, **inside)


def plot_neighbors(
    queries: np.ndarray, images: np.ndarray, indices: np.ndarray, titles: Sequence[str] | None = None
) -> "Figure":
    """Draws each query image in a row with its nearest neighbors.

    Args:
        queries: Array, `(queries, height, width, channels)`, 0..255.
        images: Array, `(n, height, width, channels)`, 0..255, the images that were searched.
        indices: Array, `(queries, count)`, as `keras_vit.explain.nearest` returns.
        titles: A text for each of `images`, or `None`.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: If the numbers of queries and rows of indices, or of images and titles, differ.
    """
    queries, images = canvas.images(queries, indices=indices), canvas.images(images, titles=titles)
    indices = np.asarray(indices)
    if indices.ndim != 2 or not set(indices.ravel().tolist()) <= set(range(len(images))):
        raise ValueError(
            f"`indices` must have the shape (queries, count), with values from 0 to {len(images) - 1}. "
            f"Received: shape={indices.shape}, from {indices.min()} to {indices.max()}"
        )
    found = [["query", *("" if titles is None else titles[i] for i in row)] for row in indices]
    texts = [text for row in found for text in row]
    figure, axes = canvas.tiles(len(texts), len(found[0]), images.shape[1:], size=1.1, titles=texts)
    rows = np.reshape(axes, (len(queries), -1))
    for row, query, nearest in zip(rows, queries, indices):
        canvas.show(row[0], query)
        for axis, i in zip(row[1:], nearest):
            canvas.show(axis, images[i])
    lettering.heading(figure, "Query images and their nearest neighbors")
    return figure


def _pictures(axis, points, images, most=30):
    """Draws some images next to their points, at a distance from each other."""
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    span = np.ptp(points, axis=0) + 1e-12
    placed = np.empty((0, 2))
    for i in np.random.default_rng(0).permutation(len(points)):
        if len(placed) == most:
            return
        if len(placed) and (np.abs(points[i] - placed) / span).max(1).min() < 0.1:
            continue
        placed = np.append(placed, [points[i]], 0)
        inset = OffsetImage(canvas.picture(images[i]), zoom=26 / max(images.shape[1:3]), cmap="gray")
        axis.add_artist(
            AnnotationBbox(inset, points[i], xybox=(0, 18), boxcoords="offset points", pad=0.1, arrowprops={"lw": 0.4})
        )
