"""ROC and precision-recall curves of several classes, each against the others."""

import numpy as np

from keras_vit.plots import canvas

MOST = 10  # classes in one figure
POINTS = 201  # of a curve, so that the figure of many images is not large


def draw_curves(labels, certainty, texts):
    """Draws both curves of each class: of ten at most, those with the lowest area under the ROC curve.

    Args:
        labels: Class indices, `(batch,)`.
        certainty: Array, `(batch, classes)`, larger for surer.
        texts: A text for each class.

    Returns:
        A `matplotlib.figure.Figure`, or `None` if no class has both images and images of others.
    """
    from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

    truths = {k: labels == k for k in range(len(texts)) if 0 < np.sum(labels == k) < len(labels)}
    if len(texts) == 2:
        truths.pop(0, None)  # its curves are those of the other class, seen from the other side
    areas = {k: roc_auc_score(truth, certainty[:, k]) for k, truth in truths.items()}
    if not areas:
        return None
    figure, every = canvas.figure(8, 4.4), np.linspace(0, 1, POINTS)
    left, right = figure.subplots(1, 2)
    left.plot([0, 1], [0, 1], "--", color="#888888", lw=1)
    for i, k in enumerate(sorted(areas, key=areas.get)[:MOST]):
        style = {"color": canvas.COLORS[i % len(canvas.COLORS)], "linestyle": "-" if i < len(canvas.COLORS) else ":"}
        false, true, _ = roc_curve(truths[k], certainty[:, k])
        left.plot(every, np.interp(every, false, true), label=f"{texts[k]} {areas[k]:.3f}", **style)
        precision, recall, _ = precision_recall_curve(truths[k], certainty[:, k])
        mean = average_precision_score(truths[k], certainty[:, k])
        right.plot(every, np.interp(every, recall[::-1], precision[::-1]), label=f"{texts[k]} {mean:.3f}", **style)
    left.set(xlabel="false positive rate", ylabel="true positive rate", title="ROC, with the area")
    right.set(xlabel="recall", ylabel="precision", title="precision by recall, with its average")
    for axis, place in ((left, "lower right"), (right, "lower left")):
        axis.set(xlim=(0, 1), ylim=(0, 1.02))
        axis.grid(alpha=0.3)
        axis.legend(framealpha=0.7, edgecolor="none", fontsize=8, loc=place)
    return figure
