import keras
import numpy as np
import pytest

from keras_vit.layers import PointBoxes
from keras_vit.layers.heads.point_boxes import edges

pytestmark = pytest.mark.backend


def logit(share):
    return np.log(share / (1 - share))


def a_map(*peaks, size=(4, 8), classes=2):
    """Returns a map with scores of 0.01, but for peaks `(row, column, class, score)`; edges a cell away everywhere."""
    found = np.zeros((1, *size, 4 + classes), "float32")
    found[..., 4:] = logit(0.01)
    for row, column, label, score in peaks:
        found[0, row, column, 4 + label] = logit(score)
    return found


def test_edges_are_distances_from_a_positions_center():
    found = np.zeros((1, 4, 8, 5), "float32")
    found[0, 1, 2, :4] = np.log([1.5, 0.5, 2, 3])
    got = np.asarray(edges(found))[0, 1, 2]
    np.testing.assert_allclose(got, [(1.5 - 1.5) / 4, (2.5 - 0.5) / 8, (1.5 + 2) / 4, (2.5 + 3) / 8], rtol=1e-6)


def test_peaks_come_first_and_neighbors_are_suppressed_by_class():
    found = a_map((1, 1, 0, 0.7), (1, 2, 0, 0.6), (2, 2, 1, 0.5), (3, 6, 1, 0.9))
    got = np.asarray(PointBoxes(most=5)(found))[0]
    assert got.shape == (5, 6) and got.dtype == np.float32
    np.testing.assert_allclose(got[:3, 4:], [[0, 0.9], [0.7, 0], [0, 0.5]], atol=0.011)
    assert (got[3:, 4:] <= 0.011).all()
    np.testing.assert_allclose(got[0, :4], [2.5 / 4, 5.5 / 8, 1, 7.5 / 8], atol=1e-6)  # cut at the image's border


def test_is_saved_and_refuses_maps_that_are_too_small():
    layer = PointBoxes(most=20)
    again = keras.layers.deserialize(keras.layers.serialize(layer))
    assert again.most == 20
    assert PointBoxes(dtype="mixed_bfloat16")(a_map()[:, :, :, :5].repeat(4, 1)).shape == (1, 100, 5)
    with pytest.raises(ValueError, match=r"with 100 positions or more. Received: \(None, 4, 8, 6\)"):
        PointBoxes()(keras.Input((4, 8, 6)))
    with pytest.raises(ValueError, match="`most` must be a positive integer. Received: most=0"):
        PointBoxes(most=0)
