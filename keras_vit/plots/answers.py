"""Pictures of where a model is right, how sure it is, and what it gets wrong."""

import numpy as np

from keras_vit import checks
from keras_vit.explain.answers import confusion
from keras_vit.metrics import SENSITIVITY, partial_auc
from keras_vit.plots import canvas

WRITTEN = 20  # classes up to which each cell has its number
TICKS = 50  # names on an axis, at most


def plot_confusion(labels, predictions, class_names=None):
    """Draws how often each class is answered for each.

    Args:
        labels: Class indices, `(batch,)`.
        predictions: Class indices, `(batch,)`.
        class_names: A text for each class, or `None`.

    Returns:
        A `matplotlib.figure.Figure`; colours are shares of the true class's images, numbers are images.

    Raises:
        ValueError: If there is not one prediction for each label, or a class without a name.
    """
    count = int(np.max([*labels, *predictions], initial=0)) + 1 if class_names is None else len(class_names)
    texts = canvas.names(class_names, count)
    labels = checks.class_indices(labels, count, len(predictions))
    predictions = checks.class_indices(predictions, count, name="predictions")
    matrix, shares = confusion(labels, predictions, count)
    side, longest = min(2.4 + 0.4 * count, 9), 0.07 * max(map(len, texts))  # inches
    figure = canvas.figure(side + 0.8 + longest, side + longest)
    axis = figure.subplots()
    drawn = axis.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    if count <= WRITTEN:
        for (row, column), images in np.ndenumerate(matrix):
            colour = "white" if shares[row, column] > 0.5 else "black" if images else "#aaaaaa"
            axis.text(column, row, images, ha="center", va="center", fontsize=7, color=colour)
    shown = np.arange(0, count, -(-count // TICKS))
    axis.set(xticks=shown, yticks=shown, xlabel="answer", ylabel="truth")
    axis.set_xticklabels([texts[i] for i in shown], rotation=90 if max(map(len, texts)) > 2 else 0, fontsize=8)
    axis.set_yticklabels([texts[i] for i in shown], fontsize=8)
    figure.colorbar(drawn, shrink=0.8, label="share of the true class")
    return figure


def plot_per_class(measures, class_names=None, most=40):
    """Draws precision and recall of each class, the least recall first.

    Args:
        measures: What `keras_vit.explain.per_class` returns.
        class_names: A text for each class, or `None`.
        most: How many classes, of least recall, are drawn.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: For another number of names.
    """
    recall, precision = measures["recall"], measures["precision"]
    texts = canvas.names(class_names, len(recall))
    order = np.argsort(recall, kind="stable")[:most]  # NaN, a class without images, comes last
    places = np.arange(len(order))
    figure = canvas.figure(6, 1 + 0.25 * len(order))
    axis = figure.subplots()
    axis.hlines(places, recall[order], precision[order], color="#cccccc", zorder=1)
    axis.plot(recall[order], places, "o", color=canvas.COLOURS[0], label="recall")
    axis.plot(precision[order], places, "D", color=canvas.COLOURS[1], label="precision", markersize=5)
    axis.set_yticks(places, [f"{texts[i]} ({measures['support'][i]})" for i in order], fontsize=8)
    axis.set(xlabel="share (in brackets: images of the class)")
    axis.set_xlim(right=1.02)
    axis.invert_yaxis()
    axis.grid(alpha=0.3)
    if len(order) < len(recall):
        axis.set_title(f"the {len(order)} of {len(recall)} classes with the least recall", fontsize=9)
    axis.legend(frameon=False, fontsize=8)
    return figure


def plot_calibration(calibration):
    """Draws how often a model is right when it is so sure, and how often it is so sure.

    Args:
        calibration: What `keras_vit.explain.calibration` returns.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    bins = len(calibration.count)
    middles = (np.arange(bins) + 0.5) / bins
    figure = canvas.figure(4.2, 4.6)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    upper.plot([0, 1], [0, 1], "--", color="#888888", lw=1, label="as sure as right")
    upper.bar(middles, np.nan_to_num(calibration.accuracy), 0.9 / bins, color=canvas.COLOURS[5], label="right")
    upper.plot(calibration.confidence, calibration.accuracy, "o", color=canvas.COLOURS[0], markersize=4, label="a bin")
    upper.set(ylabel="accuracy", xlim=(0, 1), ylim=(0, 1.02))
    upper.set_title(f"Expected calibration error {calibration.error:.2%}", fontsize=10)
    upper.legend(frameon=False, fontsize=8, loc="upper left")
    lower.bar(middles, calibration.count, 0.9 / bins, color="#888888")
    lower.set(xlabel="probability of the answer", ylabel="images", yscale="log", ylim=(0.5, None))
    return figure


def plot_roc(labels, logits):
    """Draws sensitivity against false alarms for two classes, and the area where sensitivity is above 80 %.

    The metric of the ISIC 2024 challenge, `partial_auc` in a recipe's `metrics`; the second class is the one to be
    found.

    Args:
        labels: 0 or 1 for each image, `(batch,)`, of both kinds.
        logits: Array, `(batch, 2)`.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: For another number of classes.
    """
    from sklearn.metrics import roc_curve

    labels, logits = np.asarray(labels), np.asarray(logits, "float64")
    if logits.shape != (len(labels), 2):
        raise ValueError(f"Each label has two logits. Received: {len(labels)} labels, logits of shape {logits.shape}")
    area = partial_auc(logits, labels)
    false, true, _ = roc_curve(labels, logits[:, 1] - logits[:, 0])
    figure = canvas.figure(4.2, 4)
    axis = figure.subplots()
    axis.plot([0, 1], [0, 1], "--", color="#888888", lw=1, label="by chance")
    axis.plot(false, true, color=canvas.COLOURS[0], label="model")
    every = np.linspace(0, 1, 501)
    part = np.maximum(np.interp(every, false, true), SENSITIVITY)
    axis.fill_between(every, SENSITIVITY, part, color=canvas.COLOURS[5], alpha=0.5, lw=0)
    axis.set(xlabel="false positives, share of the others", ylabel="true positives (sensitivity)", aspect="equal")
    axis.set_title(f"Area above {SENSITIVITY:.0%} sensitivity: {area:.3f} of {1 - SENSITIVITY:.1f}", fontsize=10)
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, fontsize=8, loc="lower right")
    return figure
