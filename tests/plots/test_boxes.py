import numpy as np
import pytest

from keras_vit import plots
from keras_vit.plots import lettering
from keras_vit.plots.boxes import boxed
from keras_vit.plots.masks import colors

EDGES = np.array([[40.0, 40, 200, 240], [100, 100, 120, 120]])


@pytest.mark.parametrize("channels", [1, 3])
def test_boxes_are_drawn_in_their_classes_colors(channels):
    image = np.full((256, 300, channels), 100.0)
    drawn = boxed(image, EDGES, np.array([1, 0]), ("cat", "dog"), np.array([0.9, 0.4]))
    assert drawn.shape == (256, 300, 3) and drawn.dtype == np.uint8
    table = colors(2)
    assert (drawn[200, 150] == table[1]).all() and (drawn[120, 110] == table[0]).all()
    assert (drawn[10, 10] == 100).all() and (drawn[180, 60] == 100).all()  # outside, and inside without text
    assert (boxed(image, EDGES[:0], np.zeros(0, int), ("cat",)) == 100).all()


def test_small_images_are_enlarged_and_edges_in_any_order_drawn():
    drawn = boxed(np.zeros((32, 40, 3)), np.array([[20.0, 30, 10, 5]]), np.array([0]), ("a",))
    assert drawn.shape == (256, 320, 3) and drawn.any()


def test_precision_over_recall():
    precision = np.linspace(1, 0, 101)[:, None] * [1.0, 0.5, 0.0] + [0, 0, -1.0]
    figure = plots.plot_precision(precision, ("a", "b", "nowhere"))
    [axis] = figure.axes
    assert [line.get_label() for line in axis.lines] == ["0.250 b", "0.500 a"]
    np.testing.assert_allclose(axis.lines[1].get_xydata()[25], [0.25, 0.75])
    with pytest.raises(ValueError, match="must name each of 3 classes"):
        plots.plot_precision(precision, ("a", "b"))


def test_names_in_other_scripts_are_told_where_no_font_has_them(monkeypatch):
    monkeypatch.setattr(lettering, "families", lambda: ["DejaVu Sans"])
    edges, classes = np.array([[2, 2, 20, 20]]), np.array([0])
    with pytest.warns(UserWarning, match="No installed font has '猫': boxes are drawn"):
        boxed(np.zeros((32, 32, 3)), edges, classes, ["猫"])
    plain, accents = (boxed(np.zeros((64, 64, 3)), edges, classes, [name]) for name in ("Zellkern", "Ölzelle"))
    assert plain.shape == accents.shape and (plain != accents).any()


def test_a_strip_of_pixels_is_not_enlarged_beyond_a_screen():
    edges, classes = np.array([[0, 0, 1, 1]]), np.array([0])
    assert boxed(np.zeros((3000, 1, 3)), edges, classes, ["a"]).shape == (3000, 1, 3)
    assert boxed(np.zeros((100, 10, 3)), edges, classes, ["a"]).shape == (2600, 260, 3)
