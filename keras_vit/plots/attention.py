"""Figures of what a model attends to."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import keras
import numpy as np

from keras_vit.explain import attention_relevance, attention_rollout, worst
from keras_vit.explain.relevance import check_relevance
from keras_vit.models.metadata import stated_labels
from keras_vit.models.outputs import count_classes, logits_of, probabilities_of
from keras_vit.plots import canvas, lettering
from keras_vit.preparing import pixel_range
from keras_vit.preparing.pixel_range import range_of
from keras_vit.utils import checks
from keras_vit.utils.feeding import predict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_WORDS = 35  # of an image, in four rows of nine tiles
METHODS = {
    "rollout": (attention_rollout, "Attention rollout: what attention reads most, whatever the prediction"),
    "relevance": (attention_relevance, "Relevance: bright patches support the prediction"),
}


def plot_attention(
    model: keras.Model, images: np.ndarray, titles: Sequence[str] | None = None, method: str = "rollout"
) -> "Figure":
    """Draws each image next to a heat map of what the model attends to.

    Args:
        model: As in `keras_vit.attention_maps`.
        images: Array, `(batch, height, width, channels)`, 0..255.
        titles: A text for each image. If `None`: the predicted classes, if the model carries their names.
        method: `"rollout"` or `"relevance"`, the latter for the predicted class.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: As `keras_vit.attention_maps`; for an unknown method, or another number of titles than images.
    """
    checks.model(model)
    checks.one_of("method", method, METHODS)
    value_range = range_of(model)
    images = canvas.images(images, value_range, titles=titles)
    look, heading = METHODS[method]
    maps = look(model, images)
    if titles is None and len(model.output_shape) == 2 and (names := stated_labels(model, count_classes(model))):
        names = canvas.names(names, len(names))
        titles = [names[i] for i in logits_of(model, predict(model, images)).argmax(-1)]
    figure = plot_maps(canvas.as_bytes(images, value_range), maps, titles)
    lettering.heading(figure, heading)
    return figure


def plot_maps(
    images: np.ndarray,
    maps: np.ndarray,
    titles: Sequence[str] | None = None,
    limits: tuple[float | None, float | None] = (None, None),
) -> "Figure":
    """Draws each image next to the same image under a heat map.

    Args:
        images: Array, `(batch, height, width, channels)`, 0..255.
        maps: Array, `(batch, rows, columns)`, such as `keras_vit.attention_rollout` returns.
        titles: A text for each image, or `None`.
        limits: Values with the first and the last color, for all images; `None` for the range of each map.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: If the numbers of images, maps and titles differ.
    """
    images = canvas.images(images, maps=maps, titles=titles)
    figure, axes = canvas.tiles(len(images), 4 if len(images) <= 16 else 6, images.shape[1:], times=2, titles=titles)
    for i, (image, heat) in enumerate(zip(images, maps)):
        plain, over = axes[2 * i : 2 * i + 2]
        canvas.show(plain, image)
        canvas.show(over, image, heat, limits)
    return figure


def plot_words(
    images: np.ndarray, maps: np.ndarray, words: Sequence[Sequence[str]], titles: Sequence[str] | None = None
) -> "Figure":
    """Draws each image, and after it the image once for each of its words, under the word's heat map.

    Args:
        images: Array, `(batch, height, width, channels)`, 0..255.
        maps: Array, `(batch, words, rows, columns)`, such as `keras_vit.explain.attention_of_words` or
            `attention_of_text` returns.
        words: For each image a list of texts, one for each map; maps that come after the last are left out, and those
            after the first 35.
        titles: A text for each image, or `None`.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: If the numbers of images, maps, words and titles differ.
    """
    images = canvas.images(images, maps=maps, words=words, titles=titles)
    most, maps = max(map(len, words)), np.asarray(maps)
    if maps.ndim != 4 or most > maps.shape[1]:
        raise ValueError(f"`maps` must be (batch, {most} words, rows, columns). Received: shape={maps.shape}")
    most = min(most, MOST_WORDS)
    across = min(1 + most, 9)
    rows = -(-(1 + most) // across)  # of each image
    texts = [[titles[i] if titles is not None else "", *words[i][:most]] for i in range(len(images))]
    texts = [text for row in texts for text in [*row, *[""] * (rows * across - len(row))]]
    figure, axes = canvas.tiles(len(texts), across, images.shape[1:], size=1, titles=texts, points=6)
    for i, image in enumerate(images):
        first, *others = axes[i * rows * across : (i + 1) * rows * across]
        canvas.show(first, image)
        for axis, _, heat in zip(others, words[i], maps[i]):
            canvas.show(axis, image, heat)
    return figure


def plot_worst(
    model: keras.Model,
    images: np.ndarray,
    labels: Sequence[int],
    class_names: Sequence[str] | None = None,
    count: int = 8,
) -> "Figure":
    """Draws the worst mistakes, each next to what supported the wrong class.

    Args:
        model: As in `keras_vit.attention_maps`, with logits or probabilities. One output is of the second of two
            classes.
        images: Array, `(batch, height, width, channels)`, 0..255.
        labels: Class indices, `(batch,)`.
        class_names: A text for each class. If `None`: the names that the model carries, or numbers.
        count: Number of mistakes, at most.

    Returns:
        A `matplotlib.figure.Figure`; if there is no mistake, it says so.

    Raises:
        ValueError: As `keras_vit.attention_relevance`; for labels that do not fit the model or the images.
    """
    check_relevance(model)
    images = pixel_range.checked(model, images, model.input_shape[1:])
    count_of = count_classes(model)
    classes = canvas.names(class_names or stated_labels(model, count_of), count_of)
    checks.positive(count=count)
    labels = checks.class_indices(labels, len(classes), len(images))
    probabilities = probabilities_of(model, predict(model, images))
    chosen = worst(labels, probabilities, count)
    if not len(chosen):
        figure = canvas.figure(4, 1)
        figure.text(0.5, 0.5, f"No mistake in {len(images)} images", ha="center", va="center")
        return figure
    wrong = probabilities[chosen]
    titles = [f"{classes[labels[i]]}, predicted {classes[p.argmax()]} ({p.max():.0%})" for i, p in zip(chosen, wrong)]
    pictures = canvas.as_bytes(images[chosen], range_of(model))
    figure = plot_maps(pictures, attention_relevance(model, images[chosen], wrong.argmax(-1)), titles)
    lettering.heading(figure, "Worst mistakes, and what supported the wrong class")
    return figure


def plot_heads(image: np.ndarray, maps: np.ndarray) -> "Figure":
    """Draws an attention map for each head of each block.

    Args:
        image: Array, `(height, width, channels)`, 0..255.
        maps: Array, `(layers, heads, rows, columns)`: `keras_vit.explain.attention_from(model, images)[:, i]`.
            Colors span zero to the maximum of each map.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: For maps of another rank.
    """
    (image,), maps = canvas.images(np.asarray(image)[None]), np.asarray(maps)
    if maps.ndim != 4:
        raise ValueError(f"`maps` must have the shape (layers, heads, rows, columns). Received: shape={maps.shape}")
    layers, heads = maps.shape[:2]
    tall = canvas.tallness(image.shape)
    size = max(0.9, 0.6 / tall, 2.5 / heads)  # inches of a tile's width, enough for its labels and the heading
    figure = canvas.figure(size * heads + 1.6, max(size * layers, 1.6) * tall + 0.5)
    left_part, table = figure.subfigures(1, 2, width_ratios=[1.5, size * heads + 0.1])
    axis = left_part.subplots()
    axis.set_axis_off()
    axis.set_anchor("N")
    canvas.show(axis, image)
    axes = table.subplots(layers, heads, squeeze=False)
    for (layer, head), axis in np.ndenumerate(axes):
        axis.imshow(maps[layer, head], cmap="inferno", vmin=0, extent=(0, image.shape[1], image.shape[0], 0))
        axis.set(xticks=[], yticks=[])
        if layer == 0:
            axis.set_title(f"head {head}", fontsize=7)
        if head == 0:
            axis.set_ylabel(f"block {layer}", fontsize=7)
    lettering.heading(figure, "Attention to each patch, by block and head")
    return figure


def plot_patches(image: np.ndarray, maps: np.ndarray, patches: Sequence[tuple[int, int]]) -> "Figure":
    """Draws what selected patches attend to.

    Args:
        image: Array, `(height, width, channels)`, 0..255.
        maps: Array, `(patches, rows, columns)`, such as the mean over blocks and heads of
            `keras_vit.explain.attention_from(model, images, patch)` for each patch.
        patches: List of `(row, column)`.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: If the numbers of patches and maps differ.
    """
    from matplotlib.patches import Rectangle

    (image,), maps = canvas.images(np.asarray(image)[None]), np.asarray(maps)
    if maps.ndim != 3 or len(maps) != len(patches):
        raise ValueError(
            "`maps` must have the shape (patches, rows, columns), one map for each patch. "
            f"Received: {len(patches)} patches, maps of shape {maps.shape}"
        )
    height, width = (pixels / count for pixels, count in zip(image.shape, maps.shape[1:]))
    titles = ["", *(f"row {row}, column {column}" for row, column in patches)]
    figure, axes = canvas.tiles(1 + len(patches), 5, image.shape, size=2, titles=titles)
    canvas.show(axes[0], image)
    for i, ((row, column), heat) in enumerate(zip(patches, maps)):
        color = canvas.COLORS[i % len(canvas.COLORS)]
        canvas.show(axes[1 + i], image, heat)
        for axis in (axes[0], axes[1 + i]):
            place = (column * width, row * height)
            axis.add_patch(Rectangle(place, width, height, fill=False, edgecolor=color, linewidth=2))
    return figure


def plot_distance(distances: np.ndarray) -> "Figure":
    """Draws the mean attention distance of each head by depth.

    Args:
        distances: Array, `(layers, heads)`, in pixels, as `keras_vit.explain.attention_distance` returns.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    distances = np.sort(np.asarray(distances), axis=1)
    layers, heads = distances.shape
    figure = canvas.figure(5, 3.2)
    axis = figure.subplots()
    axis.plot(np.arange(layers), distances.mean(1), color=canvas.COLORS[1], label="mean")
    axis.scatter(np.repeat(np.arange(layers), heads), distances, s=18, color=canvas.COLORS[0], label="a head", zorder=3)
    axis.set(xlabel="block", ylabel="mean attention distance, pixels", xticks=np.arange(0, layers, 1 + layers // 16))
    axis.set_ylim(0, 1.05 * distances.max())
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)
    return figure
