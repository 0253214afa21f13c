"""ROC and precision-recall curves of several classes, each against the others."""

import numpy as np

from keras_vit.plots import canvas, lettering

MOST = 10  # classes in one figure
POINTS = 201  # of a curve, so that the figure of many images is not large


def draw_curves(names, of, thresholds=None):
    """Draws both curves of each class: of ten at most, those with the lowest area under the ROC curve.

    Args:
        names: A text for each class.
        of: Function from the number of a class to whether each image is of it, and how sure it is, both `(images,)`.
            It is called class by class, so that memory holds those of one.
        thresholds: The certainty that a class is predicted from on, drawn as a dot; one a class.

    Returns:
        A `matplotlib.figure.Figure`, or `None` if no class has both images and images of others.
    """
    from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

    areas = {}
    for i in range(len(names)):
        truth, certainty = of(i)
        if 0 < truth.sum() < len(truth):
            areas[i] = roc_auc_score(truth, certainty)
    if not areas:
        return None
    figure, every = canvas.figure(8, 4.4), np.linspace(0, 1, POINTS)
    left, right = figure.subplots(1, 2)
    left.plot([0, 1], [0, 1], "--", color="#888888", lw=1)
    for place, i in enumerate(sorted(areas, key=areas.get)[:MOST]):
        style = {"color": canvas.COLORS[place % len(canvas.COLORS)]}
        style["linestyle"] = "-" if place < len(canvas.COLORS) else ":"
        (truth, certainty), text = of(i), lettering.words(lettering.short(names[i]))
        false, true, _ = roc_curve(truth, certainty)
        left.plot(every, np.interp(every, false, true), label=f"{text} {areas[i]:.3f}", **style)
        precision, recall, _ = precision_recall_curve(truth, certainty)
        mean = average_precision_score(truth, certainty)
        right.plot(every, np.interp(every, recall[::-1], precision[::-1]), label=f"{text} {mean:.3f}", **style)
        predicted = np.zeros_like(truth) if thresholds is None else certainty >= thresholds[i]
        if predicted.any():
            both = (truth & predicted).sum()
            left.plot((predicted & ~truth).sum() / (~truth).sum(), both / truth.sum(), "o", color=style["color"])
            right.plot(both / truth.sum(), both / predicted.sum(), "o", color=style["color"])
    left.set(xlabel="false positive rate", ylabel="true positive rate", title="ROC, with the area")
    right.set(xlabel="recall", ylabel="precision", title="precision by recall, with its average")
    for axis, place in ((left, "lower right"), (right, "lower left")):
        axis.set(xlim=(0, 1), ylim=(0, 1.02))
        axis.grid(alpha=0.3)
        axis.legend(framealpha=0.8, facecolor=canvas.PAPER, edgecolor="none", fontsize=lettering.TITLE, loc=place)
    return figure
