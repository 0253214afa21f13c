import numpy as np
import pytest

from keras_vit.utils.value_range import by_band, ends, from_bytes, of_pairs, to_bytes


def test_a_range_and_one_for_each_band():
    assert of_pairs((0, 4095)) == (0, 4095) and not by_band((0, 4095)) and not by_band(None)
    assert of_pairs([[0, 10], [-5.5, 20]]) == ((0, -5.5), (10, 20)) and by_band(((0, -5.5), (10, 20)))
    low, high = ends(((0, -5.5), (10, 20)))
    assert low.tolist() == [0, -5.5] and high.tolist() == [10, 20]


@pytest.mark.parametrize(
    "value",
    [(1, 1), (2, 1), (0,), (0, 1, 2), (), [[0, 1], [3, 2]], [[0, 1], [2]], (0, np.inf), (np.nan, 1), "minmax", 5],
)
def test_others_are_refused(value):
    with pytest.raises(ValueError, match="must be the lowest and the highest pixel, or such a pair for each band"):
        of_pairs(value)


def test_to_bytes_and_back():
    value_range = of_pairs([[0, 10], [-5, 20]])
    images = np.array([[[0, -5], [10, 20], [5, 7.5]]], "float32")
    np.testing.assert_allclose(to_bytes(images, value_range), [[[0, 0], [255, 255], [127.5, 127.5]]], rtol=1e-6)
    np.testing.assert_allclose(from_bytes(to_bytes(images, value_range), value_range), images, atol=1e-5)
