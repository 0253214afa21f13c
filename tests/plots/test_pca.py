import numpy as np
import pytest

from keras_vit import plots

IMAGES = np.zeros((3, 16, 8, 3), "uint8")


def test_an_image_and_its_colors_side_by_side():
    figure = plots.plot_pca(IMAGES, np.ones((3, 4, 2, 3), "float32"), across=2)
    drawn = [axis for axis in figure.axes if axis.images]
    assert len(drawn) == 6 and drawn[1].images[0].get_array().shape == (4, 2, 3)


def test_bad_input():
    with pytest.raises(ValueError, match="`colors` must have one entry for each image"):
        plots.plot_pca(IMAGES, np.ones((2, 4, 2, 3)))
    with pytest.raises(ValueError, match="`colors` must be \\(n, rows, columns, 3\\)"):
        plots.plot_pca(IMAGES, np.ones((3, 4, 2)))
