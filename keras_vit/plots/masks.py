"""Pictures of masks, and figures of their scores."""

import colorsys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_vit.plots import canvas, lettering
from keras_vit.plots.predictions import draw_shares
from keras_vit.utils import checks
from keras_vit.utils.images import colored
from keras_vit.utils.metrics import iou

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNPAINTED = "background"  # a class of this name leaves the image as it is
BARS = 40  # classes in a figure of panoptic quality, at most
GOLDEN = 0.618034  # turns of the color wheel between two colors: none comes back


def colors(count: int) -> np.ndarray:
    """Returns a color for each class, uint8 `(count, 3)`: Okabe and Ito's palette, then hues far from each other."""
    palette = [tuple(int(text[i : i + 2], 16) for i in (1, 3, 5)) for text in canvas.COLORS]
    more = [colorsys.hsv_to_rgb(i * GOLDEN % 1, 0.55 + 0.4 * (i % 2), 0.95 - 0.25 * (i % 3)) for i in range(count)]
    return np.array((palette + [tuple(round(255 * part) for part in color) for color in more])[:count], "uint8")


def overlay(
    image: np.ndarray, mask: np.ndarray, class_names: Sequence[str] = (), first: int = 0, alpha: float = 0.5
) -> np.ndarray:
    """Paints a mask on an image.

    Args:
        image: Array, `(height, width, channels)`, 0..255.
        mask: Class indices, `(rows, columns)`; a mask of another size is resized by nearest neighbor. Values outside
            the classes stay unpainted, and so does a class called `"background"`.
        class_names: Names of the classes; empty for the mask's numbers.
        first: Value of the first class in the mask.
        alpha: Opacity, 0 to 1.

    Returns:
        uint8 array, `(height, width, 3)`.
    """
    image = colored(image)
    mask = nearest(np.asarray(mask).astype("int64"), image.shape[:2]) - first
    count = len(class_names) or max(int(mask.max()) + 1, 1)
    painted = (mask >= 0) & (mask < count)
    for i, name in enumerate(class_names):
        if name.lower() == UNPAINTED:
            painted &= mask != i
    layer = colors(count)[np.clip(mask, 0, count - 1)]
    mixed = np.where(painted[..., None], (1 - alpha) * image + alpha * layer, image)
    return np.clip(np.rint(mixed), 0, 255).astype("uint8")


def nearest(mask, size):
    """Returns a mask at another size, `(rows, columns)`, by nearest neighbor."""
    if mask.shape == tuple(size):
        return mask
    rows, columns = (((np.arange(new) + 0.5) * old / new).astype(int) for new, old in zip(size, mask.shape))
    return mask[rows[:, None], columns]


def plot_masks(
    images: np.ndarray, masks: Sequence[np.ndarray], class_names: Sequence[str] | None = None, first: int = 0
) -> "Figure":
    """Draws images with their masks, and a legend of the classes.

    Args:
        images: Array, `(batch, height, width, channels)`, 0..255.
        masks: Class indices of each image, `(rows, columns)` or `(rows, columns, 1)`.
        class_names: Names of the classes; `None` for numbers. A class called `"background"` is not painted.
        first: Value of the first class in the masks.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: If images and masks differ in number, or masks are not integers.
    """
    from matplotlib.patches import Patch

    images = canvas.images(images, masks=masks)
    masks = [_indices(mask).astype("int64") for mask in masks]
    highest = max(int(np.max(mask, initial=-1, where=mask != 255)) for mask in masks)
    texts = [str(i) for i in range(first, highest + 1)] if class_names is None else list(class_names)
    figure, axes = canvas.tiles(len(images), 4, images.shape[1:], size=2.4)
    for axis, image, mask in zip(axes, images, masks):
        axis.imshow(overlay(image, mask, texts, first))
    entries = [(color, text) for color, text in zip(colors(len(texts)), texts) if text.lower() != UNPAINTED]
    lettering.legend(figure, [Patch(color=color / 255) for color, _ in entries], [text for _, text in entries])
    return figure


def _indices(mask):
    mask = np.asarray(mask)
    if mask.dtype.kind not in "ui" or mask.ndim not in (2, 3) or mask.shape[2:] not in ((), (1,)):
        raise ValueError(
            f"`masks` must be integers, (rows, columns) each. Received: shape={mask.shape}, dtype={mask.dtype}"
        )
    return mask.reshape(mask.shape[:2])


def plot_iou(matrix: np.ndarray, class_names: Sequence[str] | None = None) -> "Figure":
    """Draws the intersection over union of each class as bars, lowest first, with their mean.

    Args:
        matrix: Pixels, `(true class, predicted class)`.
        class_names: A text for each class, or `None`.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    matrix, texts = _square(matrix, class_names)
    each = iou(matrix)
    mean = np.nanmean(each) if matrix.any() else 0.0
    return _draw_scores(np.nan_to_num(each), mean, texts, "intersection over union")  # 0 of a class that is nowhere


def plot_quality(quality: np.ndarray, class_names: Sequence[str] | None = None) -> "Figure":
    """Draws the panoptic quality of each class as bars, lowest first, with their mean.

    Args:
        quality: 0 to 1, `(classes,)`; NaN for a class that is nowhere, which is left out.
        class_names: A text for each class, or `None`. Of more than 40 classes those with the lowest are drawn.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: If classes and names differ in number, or no class is somewhere.
    """
    quality = np.asarray(quality, "float64")
    if quality.ndim != 1 or np.isnan(quality).all():
        raise ValueError(
            "`quality` must have a number for each class, of one class or more. Received: "
            f"{checks.shown(quality.tolist())}"
        )
    texts = canvas.names(class_names, len(quality))
    places = np.flatnonzero(~np.isnan(quality))
    order = places[np.argsort(quality[places], kind="stable")[:BARS]]
    figure = _draw_scores(quality[order], quality[places].mean(), [texts[i] for i in order], "panoptic quality")
    if len(order) < len(places):
        figure.axes[0].set_title(f"the {len(order)} of {len(places)} classes with the lowest", fontsize=9)
    return figure


def _draw_scores(scores, mean, texts, label):
    """Draws a bar for each score from 0 to 1, and a line for their mean."""
    order = np.argsort(-scores, kind="stable")
    figure, axis = canvas.bars(texts, len(texts))
    axis.barh(range(len(order)), scores[order], color=canvas.COLORS[0])
    axis.set_yticks(range(len(order)), [texts[i] for i in order], fontsize=lettering.TITLE)
    line = axis.axvline(mean, color=canvas.COLORS[1], linestyle="--")
    axis.set(xlim=(0, 1), xlabel=label)
    lettering.legend(figure, [line], [f"mean {mean:.3f}"])
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def plot_pixels(matrix: np.ndarray, class_names: Sequence[str] | None = None) -> "Figure":
    """Draws a confusion matrix of pixels, as shares of the true class.

    Args:
        matrix: Pixels, `(true class, predicted class)`.
        class_names: A text for each class, or `None`.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    matrix, texts = _square(matrix, class_names)
    shares = matrix / np.maximum(matrix.sum(1, keepdims=True), 1)
    return draw_shares(shares, np.rint(100 * shares).astype(int), texts)


def _square(matrix, class_names):
    matrix = np.asarray(matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"`matrix` must have the shape (classes, classes). Received: shape={matrix.shape}")
    checks.positive(classes=len(matrix))
    return matrix, canvas.names(class_names, len(matrix))
