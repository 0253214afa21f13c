"""Figures of predictions: which are right, how confident they are, and which classes are confused."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_vit.explain import Calibration
from keras_vit.explain.answers import confused, confusion
from keras_vit.plots import canvas, lettering
from keras_vit.utils import checks
from keras_vit.utils.metrics import SENSITIVITY, partial_auc

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WRITTEN = 20  # up to this number of classes each cell shows its number, zeros too
CELLS, PAIRS = 1000, 40  # classes in a matrix, at most; of more, the confusions in a figure
NAMED = 100  # classes that are all named on the axes of a matrix, at most
CELL = 0.15  # inches of a named row, at least: a line of its name
LARGEST = 15  # inches of a matrix's side
ZERO = "#6b6b6b"  # of a number in a white cell


def plot_confusion(
    labels: Sequence[int] | Sequence[str],
    predictions: Sequence[int] | Sequence[str],
    class_names: Sequence[str] | None = None,
) -> "Figure":
    """Draws a confusion matrix; of more than a thousand classes, the most frequent confusions.

    Args:
        labels: Class indices, or names of classes, `(batch,)`.
        predictions: The same for the predictions.
        class_names: A text for each class, or `None`.

    Returns:
        A `matplotlib.figure.Figure`. Colors are shares of the true class's images, numbers are images. Of more than a
        thousand classes, a bar for each of the 40 most frequent pairs of a true and a predicted class.

    Raises:
        ValueError: If the numbers of labels and predictions, or of classes and names, differ, or labels are no classes.
    """
    texts, labels, predictions = canvas.classes(class_names, labels=labels, predictions=predictions)
    checks.class_indices(labels, len(texts), len(predictions))  # as many
    if len(texts) > CELLS:
        return _draw_pairs(confused(labels, predictions, PAIRS), texts, np.bincount(labels))
    matrix, shares = confusion(labels, predictions, len(texts))
    return draw_shares(shares, matrix, texts)


def _draw_pairs(pairs, texts, images):
    """Draws a bar for each pair of a label and a prediction, by the texts and the images of all classes."""
    named = [f"{texts[a]} ({images[a]}) → {texts[b]}" for (a, b), _ in pairs]
    (figure, axis), places = canvas.bars(named, len(pairs)), range(len(pairs))
    axis.barh(places, [count for _, count in pairs], color=canvas.COLORS[5])
    axis.set_yticks(places, named, fontsize=lettering.TITLE)
    axis.set(xlabel="images predicted so (in brackets: images of the true class)")
    axis.invert_yaxis()
    axis.set_title(f"{len(pairs)} most frequent confusions of {len(texts):,} classes", fontsize=9)
    return figure


def draw_shares(shares, numbers, texts):
    """Draws a confusion matrix whose colors are shares of the true class, with its number in each cell that has room.

    Args:
        shares: Array, `(classes, classes)`, 0 to 1.
        numbers: Integers, `(classes, classes)`, which the cells show.
        texts: A text for each class.
    """
    count = len(texts)
    texts = texts if count == 1 else [lettering.words(lettering.short(text)) for text in texts]
    side, longest = _side(count), max(map(lettering.width, texts))
    figure = canvas.figure(side + 0.8 + longest, side + longest)
    axis = figure.subplots()
    drawn = axis.imshow(shares, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    if points := _number_size(numbers):
        for row, column in np.argwhere(numbers if count > WRITTEN else np.ones_like(numbers)):
            number = numbers[row, column]
            color = canvas.ink(drawn.to_rgba(shares[row, column])[:3]) if number else ZERO
            axis.text(column, row, number, ha="center", va="center", fontsize=points, color=color)
    places = range(count) if count <= NAMED else _named(np.where(shares.any(1), np.diag(shares), 2), side)
    axis.set(xticks=places, yticks=places, xlabel="predicted class", ylabel="true class")
    axis.set_xticklabels([texts[i] for i in places], rotation=90 if max(map(len, texts)) > 2 else 0, fontsize=8)
    axis.set_yticklabels([texts[i] for i in places], fontsize=8)
    if count > NAMED:
        title = f"{count:,} classes. Named, where there is room: those that are most often wrong"
        axis.set_title(title, fontsize=lettering.TITLE, loc="left")
    figure.colorbar(drawn, shrink=0.8, label="share of the true class")
    return figure


def _number_size(numbers):
    """Returns the points in which the cells of a matrix have room for its numbers, `None` if they have none."""
    count = len(numbers)
    if count <= WRITTEN:
        return 7
    room = 0.85 * _side(count) / count
    return next((points for points in (7, 6, 5) if lettering.width(np.max(numbers), points) <= room), None)


def _side(count):
    """Returns the inches of a matrix's side."""
    return max(min(2.8 + 0.4 * count, 9), min(CELL * count, LARGEST))


def _named(right, side):
    """Returns which classes a matrix of `side` inches has room to name, those with the lowest shares right first."""
    apart, places = CELL * len(right) / side, []
    for i in np.argsort(right, kind="stable"):
        if all(abs(i - other) >= apart for other in places):
            places.append(int(i))
    return sorted(places)


def plot_per_class(
    measures: dict[str, np.ndarray], class_names: Sequence[str] | None = None, most: int = 40
) -> "Figure":
    """Draws precision and recall of each class, lowest recall first.

    Args:
        measures: What `keras_vit.explain.per_class` returns.
        class_names: A text for each class, or `None`.
        most: Number of classes to draw, those with the lowest recall.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: If the numbers of classes and names differ, or `measures` are something else.
    """
    if not (isinstance(measures, dict) and {"recall", "precision", "support"} <= {*measures}):
        raise ValueError(f"`measures` must be what explain.per_class returns. Received: {checks.shown(measures):.60}")
    checks.positive(most=most)
    recall, precision = measures["recall"], measures["precision"]
    texts = canvas.names(class_names, len(recall))
    order = np.argsort(recall, kind="stable")[:most]  # NaN, a class without images, comes last
    places = np.arange(len(order))
    named = [f"{texts[i]} ({measures['support'][i]})" for i in order]
    figure, axis = canvas.bars(named, len(order))
    axis.hlines(places, recall[order], precision[order], color="#cccccc", zorder=1)
    dots = axis.plot(recall[order], places, "o", color=canvas.COLORS[0])
    dots += axis.plot(precision[order], places, "D", color=canvas.COLORS[1], markersize=5)
    axis.set_yticks(places, named, fontsize=lettering.TITLE)
    axis.set(xlabel="share (in brackets: images of the class)")
    canvas.end_at_one(axis)
    axis.invert_yaxis()
    axis.grid(alpha=0.3)
    if len(order) < len(recall):
        axis.set_title(f"the {len(order)} of {len(recall)} classes with the lowest recall", fontsize=9)
    lettering.legend(figure, dots, ["recall", "precision"])
    return figure


def plot_calibration(calibration: Calibration) -> "Figure":
    """Draws a reliability diagram: accuracy by confidence, and the number of images in each bin.

    Args:
        calibration: What `keras_vit.explain.calibration` returns.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: For anything else.
    """
    if not isinstance(calibration, Calibration):
        received = f"Received: {checks.shown(calibration):.60}"
        raise ValueError(f"`calibration` must be what explain.calibration returns. {received}")
    bins = len(calibration.count)
    middles = (np.arange(bins) + 0.5) / bins
    figure = canvas.figure(4.2, 4.6)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    upper.plot([0, 1], [0, 1], "--", color="#888888", lw=1, label="perfectly calibrated")
    upper.bar(middles, np.nan_to_num(calibration.accuracy), 0.9 / bins, color=canvas.COLORS[5], label="accuracy")
    upper.plot(
        calibration.confidence, calibration.accuracy, "o", color=canvas.COLORS[0], markersize=4, label="mean of a bin"
    )
    upper.set(ylabel="accuracy", xlim=(0, 1), ylim=(0, 1.02))
    upper.set_title(f"Expected calibration error {calibration.error:.2%}", fontsize=10)
    figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=3)
    lower.bar(middles, calibration.count, 0.9 / bins, color="#888888")
    lower.set(xlabel="confidence", ylabel="images", yscale="log", ylim=(0.5, None))
    return figure


def plot_roc(labels: Sequence[int], logits: np.ndarray) -> "Figure":
    """Draws the ROC curve of two classes, with the area under it, and the partial area above a sensitivity of 80 %.

    The partial area is the metric of the ISIC 2024 challenge, `partial_auc` in a recipe's `metrics`, where `auc` is the
    whole area. The second class is the positive one.

    Args:
        labels: 0 or 1 for each image, `(batch,)`; both must occur.
        logits: Array, `(batch, 2)`.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: If there are not two classes.
    """
    from sklearn.metrics import auc, roc_curve

    labels, logits = np.asarray(labels), np.asarray(logits, "float64")
    if logits.shape != (len(labels), 2):
        raise ValueError(
            f"`logits` must have the shape (batch, 2). Received: {len(labels)} labels, logits of shape {logits.shape}"
        )
    area = partial_auc(logits, labels)
    false, true, _ = roc_curve(labels, logits[:, 1] - logits[:, 0])
    figure = canvas.figure(4.2, 4)
    axis = figure.subplots()
    axis.plot([0, 1], [0, 1], "--", color="#888888", lw=1, label="chance")
    axis.plot(false, true, color=canvas.COLORS[0], label="model")
    every = np.linspace(0, 1, 501)
    part = np.maximum(np.interp(every, false, true), SENSITIVITY)
    axis.fill_between(every, SENSITIVITY, part, color=canvas.COLORS[5], alpha=0.5, lw=0)
    axis.set(xlabel="false positive rate", ylabel="true positive rate (sensitivity)", aspect="equal")
    above = f"above {SENSITIVITY:.0%} sensitivity: {area:.3f} of {1 - SENSITIVITY:.1f}"
    axis.set_title(f"Area under the curve: {auc(false, true):.3f}\n{above}", fontsize=10)
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, fontsize=8, loc="lower right")
    return figure
