import numpy as np
import pytest

pytest.importorskip("matplotlib")

from keras_vit.plots import plot_word_maps

MAPS = np.random.default_rng(0).random((2, 4, 5))


def test_each_matrix_has_its_words():
    figure = plot_word_maps(MAPS, [["a", "bc"], ["d"]], [["x", "y", "z"], ["v", "w"]], ["one", "two"])
    first, second = figure.axes
    assert [text.get_text() for text in first.get_yticklabels()] == ["a", "bc"]
    assert [text.get_text() for text in first.get_xticklabels()] == ["x", "y", "z"]
    np.testing.assert_array_equal(first.images[0].get_array(), MAPS[0, :2, :3])
    assert second.get_title() == "two" and second.images[0].get_array().shape == (1, 2)


def test_what_does_not_fit():
    with pytest.raises(ValueError, match="as many matrices, rows, columns and titles. Received: 2, 1, 2, 2"):
        plot_word_maps(MAPS, [["a"]], [["x"], ["y"]])
    with pytest.raises(ValueError, match=r"of these words must be at least \(5, 1\). Received: shape=\(4, 5\)"):
        plot_word_maps(MAPS[:1], [["a"] * 5], [["x"]])
    with pytest.raises(ValueError, match="Received: 0, 0, 0, 0"):
        plot_word_maps([], [], [])
