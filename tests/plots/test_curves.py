import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from keras_vit.plots.curves import draw_curves

RNG = np.random.default_rng(0)


def test_curves_of_the_ten_hardest_classes(tmp_path):
    labels, certainty = np.arange(600) % 12, RNG.normal(size=(600, 14))  # of two classes there are no images
    certainty[np.arange(600), labels] += labels / 4
    figure = draw_curves(labels, certainty, [f"c{k}" for k in range(14)])
    areas = {k: roc_auc_score(labels == k, certainty[:, k]) for k in range(12)}
    hardest = sorted(areas, key=areas.get)[:10]
    left, right = ([text.get_text() for text in axis.get_legend().get_texts()] for axis in figure.axes)
    assert left == [f"c{k} {areas[k]:.3f}" for k in hardest]
    assert right == [f"c{k} {average_precision_score(labels == k, certainty[:, k]):.3f}" for k in hardest]
    x, y = figure.axes[0].lines[1].get_data()
    assert abs(np.trapezoid(y, x) - areas[hardest[0]]) < 5e-3
    figure.savefig(tmp_path / "curves.png")


def test_of_two_classes_the_second_is_drawn_and_of_one_none():
    certainty = RNG.normal(size=(20, 2))
    assert len(draw_curves(np.arange(20) % 2, certainty, list("ab")).axes[1].lines) == 1
    assert draw_curves(np.zeros(20, int), certainty, list("ab")) is None
