"""ROC and precision-recall curves of several classes, each against the others."""

import numpy as np

from keras_vit.plots import canvas

MOST = 10  # classes in one figure
POINTS = 201  # of a curve, so that the figure of many images is not large


def draw_curves(classes, thresholds=None):
    """Draws both curves of each class: of ten at most, those with the lowest area under the ROC curve.

    Args:
        classes: By name: whether each image is of the class, and how sure it is of it, both `(images,)`.
        thresholds: By name: the certainty that a class is predicted from on, drawn as a dot.

    Returns:
        A `matplotlib.figure.Figure`, or `None` if no class has both images and images of others.
    """
    from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

    mixed = {name: pair for name, pair in classes.items() if 0 < np.sum(pair[0]) < len(pair[0])}
    areas = {name: roc_auc_score(*pair) for name, pair in mixed.items()}
    if not areas:
        return None
    figure, every = canvas.figure(8, 4.4), np.linspace(0, 1, POINTS)
    left, right = figure.subplots(1, 2)
    left.plot([0, 1], [0, 1], "--", color="#888888", lw=1)
    for i, name in enumerate(sorted(areas, key=areas.get)[:MOST]):
        style = {"color": canvas.COLORS[i % len(canvas.COLORS)], "linestyle": "-" if i < len(canvas.COLORS) else ":"}
        (truth, certainty), text = mixed[name], canvas.short(name)
        false, true, _ = roc_curve(truth, certainty)
        left.plot(every, np.interp(every, false, true), label=f"{text} {areas[name]:.3f}", **style)
        precision, recall, _ = precision_recall_curve(truth, certainty)
        mean = average_precision_score(truth, certainty)
        right.plot(every, np.interp(every, recall[::-1], precision[::-1]), label=f"{text} {mean:.3f}", **style)
        found = certainty >= thresholds[name] if thresholds else np.zeros_like(truth)
        if found.any():
            both = (truth & found).sum()
            left.plot((found & ~truth).sum() / (~truth).sum(), both / truth.sum(), "o", color=style["color"])
            right.plot(both / truth.sum(), both / found.sum(), "o", color=style["color"])
    left.set(xlabel="false positive rate", ylabel="true positive rate", title="ROC, with the area")
    right.set(xlabel="recall", ylabel="precision", title="precision by recall, with its average")
    for axis, place in ((left, "lower right"), (right, "lower left")):
        axis.set(xlim=(0, 1), ylim=(0, 1.02))
        axis.grid(alpha=0.3)
        axis.legend(framealpha=0.7, edgecolor="none", fontsize=8, loc=place)
    return figure
