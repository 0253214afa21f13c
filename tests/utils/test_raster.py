import numpy as np
import pytest

from keras_vit.utils.images import turned
from keras_vit.utils.raster import Raster, upright

VALUES = np.arange(6 * 9 * 2).reshape(6, 9, 2)


def raster():
    def window(top, left, height, width):
        return VALUES[top : top + height, left : left + width]

    return Raster(VALUES.shape, VALUES.dtype, window, (2, 9))


@pytest.mark.parametrize("number", range(1, 9))
def test_upright(number):
    turn, whole = upright(raster(), number), turned(VALUES, number)
    assert turn.shape == whole.shape and turn.block == ((2, 9) if number < 5 else (9, 2))
    np.testing.assert_array_equal(turn.whole(), whole)
    np.testing.assert_array_equal(turn.read(1, 2, 3, 4), whole[1:4, 2:6])


def test_other_numbers_change_nothing():
    for number in (0, 9, 2**40, "a", None):
        np.testing.assert_array_equal(upright(raster(), number).whole(), VALUES)
