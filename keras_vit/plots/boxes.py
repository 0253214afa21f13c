"""Pictures of boxes, and a figure of their precision."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_vit.plots import canvas, lettering
from keras_vit.plots.masks import colors
from keras_vit.utils.images import colored

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST = 256  # pixels of a picture's shorter side: smaller images are enlarged, so that text can be read
MOST = 4096  # pixels of its longer side, beyond which it is not enlarged
MANY = 12  # boxes from which only their scores are written


def boxed(image, edges, classes, class_names, scores=None):
    """Returns an image with boxes drawn, uint8 `(rows, columns, 3)`, enlarged by a whole number if it is small.

    Args:
        image: Array, `(height, width, channels)`, 0..255.
        edges: Top, left, bottom, right in pixels, `(n, 4)`.
        classes: Index of the class of each.
        class_names: Names of the classes.
        scores: Of each box, 0..1, or `None`.
    """
    from PIL import Image, ImageDraw

    image = np.clip(np.rint(colored(image)), 0, 255)
    image, times = enlarged(image.astype("uint8"))
    pixels = Image.fromarray(image)
    draw, size = ImageDraw.Draw(pixels), max(min(pixels.size) // 32, 10)
    font = lettering.for_pillow("".join(map(lettering.short, class_names)), size)
    line = max(min(pixels.size) // 160, 1)
    for i in np.argsort(scores if scores is not None else classes, kind="stable"):  # the most certain on top
        color = tuple(map(int, colors(len(class_names))[classes[i]]))
        top, left, bottom, right = (float(edge) * times for edge in edges[i])
        draw.rectangle((left, top, max(right, left), max(bottom, top)), outline=color, width=line)
        name = [] if len(classes) > MANY and scores is not None else [lettering.short(class_names[classes[i]])]
        text = " ".join([*name, *([] if scores is None else [f"{scores[i]:.0%}"])])
        place = draw.textbbox((left + line, top + line), text, font=font)
        draw.rectangle((place[0] - line, place[1] - line, place[2] + line, place[3] + line), fill=color)
        draw.text((left + line, top + line), text, fill=canvas.ink(np.divide(color, 255)), font=font)
    return np.asarray(pixels)


def enlarged(image):
    """Returns an image, `(height, width, ...)`, enlarged if it is small, and by which whole number."""
    times = min(-(-LEAST // min(image.shape[:2])), max(MOST // max(image.shape[:2]), 1))
    return np.repeat(np.repeat(image, times, 0), times, 1), times


def plot_precision(precision: np.ndarray, class_names: Sequence[str]) -> "Figure":
    """Draws the precision of each class over its recall.

    Args:
        precision: At recalls of 0 to 1, evenly spaced, `(recalls, classes)`; below 0 for a class without objects.
        class_names: A name for each class. Of more than 12 classes those with the lowest mean are drawn.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    precision, texts = np.asarray(precision), canvas.names(class_names, np.shape(precision)[-1])
    means = precision.mean(0)
    order = [i for i in np.argsort(means, kind="stable") if means[i] >= 0][:MANY]
    figure = canvas.figure(5.6, 3.8)
    axis = figure.subplots()
    lines, every = [], np.linspace(0, 1, len(precision))
    for i in order:
        label = f"{means[i]:.3f} {texts[i]}"
        lines += axis.plot(every, precision[:, i], color=colors(len(texts))[i] / 255, label=label)
    axis.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="recall", ylabel="precision")
    axis.grid(alpha=0.3)
    lettering.legend(figure, lines, [line.get_label() for line in lines])
    return figure
