import numpy as np
import pytest

from keras_vit import positions

pytestmark = pytest.mark.backend


def test_sincos_1d_by_hand():
    table = positions.sincos_1d(5, 4)
    for n in range(5):
        expected = [np.sin(n), np.cos(n), np.sin(n / 100), np.cos(n / 100)]  # 10000^(2/4) = 100
        np.testing.assert_allclose(table[n], expected, atol=1e-6)


def test_sincos_2d_by_hand():
    table = positions.sincos_2d((2, 3), 8)  # frequencies 1 and 1/10000
    for y in range(2):
        for x in range(3):
            expected = [
                *(np.sin(x), np.sin(x / 1e4), np.cos(x), np.cos(x / 1e4)),
                *(np.sin(y), np.sin(y / 1e4), np.cos(y), np.cos(y / 1e4)),
            ]
            np.testing.assert_allclose(table[3 * y + x], expected, atol=1e-6)


@pytest.mark.parametrize(
    "call",
    [lambda: positions.sincos_1d(5, 3), lambda: positions.sincos_2d((2, 2), 6), lambda: positions.sincos_2d((2, 2), 4)],
)
def test_bad_width_is_named(call):
    with pytest.raises(ValueError, match="Received: width="):
        call()
