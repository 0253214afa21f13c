import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from keras_vit.plots.curves import draw_curves

RNG = np.random.default_rng(0)


def test_curves_of_the_ten_hardest_classes(tmp_path):
    labels, certainty = np.arange(600) % 12, RNG.normal(size=(600, 14))  # of two classes there are no images
    certainty[np.arange(600), labels] += labels / 4
    figure = draw_curves([f"c{k}" for k in range(14)], lambda k: (labels == k, certainty[:, k]))
    areas = {k: roc_auc_score(labels == k, certainty[:, k]) for k in range(12)}
    hardest = sorted(areas, key=areas.get)[:10]
    left, right = ([text.get_text() for text in axis.get_legend().get_texts()] for axis in figure.axes)
    assert left == [f"c{k} {areas[k]:.3f}" for k in hardest]
    assert right == [f"c{k} {average_precision_score(labels == k, certainty[:, k]):.3f}" for k in hardest]
    x, y = figure.axes[0].lines[1].get_data()
    assert abs(np.trapezoid(y, x) - areas[hardest[0]]) < 5e-3
    figure.savefig(tmp_path / "curves.png")


def test_a_dot_is_at_each_threshold(tmp_path):
    truth, shares = np.array([True, False, True, False]), np.array([0.9, 0.8, 0.7, 0.1])
    figure = draw_curves(["a", "$x_$"], lambda _: (truth, shares), [0.75, 0.95])
    left, right = figure.axes
    assert len(left.lines) == 4 and len(right.lines) == 3  # chance, and nothing is above the second threshold
    (recall,), (precision,) = right.lines[1].get_data()
    (false,), (true,) = left.lines[2].get_data()
    assert (recall, precision, false, true) == (0.5, 0.5, 0.5, 0.5)
    figure.savefig(tmp_path / "curves.png")  # no name is read as a formula


def test_without_both_kinds_of_images_there_is_none():
    assert draw_curves(["a"], lambda _: (np.zeros(20, bool), RNG.normal(size=20))) is None
