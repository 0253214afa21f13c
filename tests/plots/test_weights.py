import numpy as np

from keras_vit import plots
from keras_vit.explain import patch_filters, position_similarity
from tests.explain.models import shared


def test_filters_are_gray_at_zero_and_full_at_their_largest(tmp_path):
    filters = np.zeros((3, 2, 2, 1), "float32")
    filters[1, 0, 0], filters[1, 1, 1], filters[2, 0, 1] = 0.5, -1, 3
    figure = plots.plot_filters(filters)
    first, second, third = (axis.images[0].get_array() for axis in figure.axes)
    np.testing.assert_allclose(first, 0.5)
    np.testing.assert_allclose(second, [[0.75, 0.5], [0.5, 0]])
    assert third.max() == 1
    plots.plot_filters(patch_filters(shared("token"), 9)).savefig(tmp_path / "filters.png")


def test_each_patch_has_its_tile_in_its_place(tmp_path):
    similarity = position_similarity(shared("token"))  # (3, 2, 3, 2)
    figure = plots.plot_positions(similarity)
    tiled = np.ma.filled(figure.axes[0].images[0].get_array(), np.nan)
    assert tiled.shape == (11, 5)
    np.testing.assert_allclose(tiled[4:7, 3:5], similarity[1, 1])
    assert np.isnan(tiled[3]).all() and np.isnan(tiled[:, 2]).all()
    figure.savefig(tmp_path / "positions.png")
