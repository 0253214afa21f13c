import numpy as np
import pytest
from keras import ops

from keras_vit.layers.heads import fusion

pytestmark = pytest.mark.backend


def test_corners_are_kept():
    """Values on a plane stay on it, between the same corners; numbers at the ends by hand."""
    rows, columns = np.mgrid[:3, :5]
    plane = (2.0 * rows + columns)[None, ..., None].astype("float32")
    found = np.asarray(fusion.corner_aligned(ops.convert_to_tensor(plane), (7, 4)))[0, ..., 0]
    wanted = 2 * np.linspace(0, 2, 7)[:, None] + np.linspace(0, 4, 4)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert fusion.corner_aligned(plane, (3, 5)) is plane
    np.testing.assert_allclose(np.asarray(fusion.corner_aligned(plane, (1, 1))).ravel(), [0])


def test_sizes_at_which_maps_are_added():
    maps = fusion.Fusion()
    sizes = [(12, 20), (6, 10), (3, 5), (2, 3)]
    assert maps.fused_sizes(sizes) == sizes
    maps.doubles = True
    assert maps.fused_sizes(sizes) == [(16, 24), (8, 12), (4, 6), (2, 3)]
