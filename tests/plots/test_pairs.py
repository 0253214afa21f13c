import numpy as np
import pytest

from keras_vit.plots.pairs import plot_pairs

IMAGES = np.zeros((2, 8, 8, 3), "uint8")


def test_titles_have_both_texts_and_the_place():
    figure = plot_pairs(IMAGES, ["a cat", "x" * 100], ["a dog", "$1"], [0, 4])
    first, second = (" ".join(axis.get_title("left").split()) for axis in figure.axes)
    assert first == "a cat (1), then: a dog"
    assert "…" in second and "(5), first: \\$1" in second
    with pytest.raises(ValueError, match="Received: 2 images, 1 texts, 2 found, 2 ranks"):
        plot_pairs(IMAGES, ["a"], ["b", "c"], [0, 1])
