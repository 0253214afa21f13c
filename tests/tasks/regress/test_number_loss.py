import keras
import numpy as np
import pytest

from keras_vit.tasks.regress.number_loss import NumberLoss

pytestmark = pytest.mark.backend

TRUTH, FOUND = np.float32([[1, 10], [2, 30]]), np.float32([[1.5, 20], [5, 30]])


@pytest.mark.parametrize(
    "kind, expected",
    [("l2", [(0.25 + 1) / 2, 9 / 2]), ("l1", [(0.5 + 1) / 2, 3 / 2]), ("huber", [(0.125 + 0.5) / 2, 2.5 / 2])],
)
def test_errors_count_in_standard_deviations(kind, expected):
    loss = NumberLoss(kind, (1, 10), reduction=None)
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    for one in (loss, again):
        np.testing.assert_allclose(keras.ops.convert_to_numpy(one(TRUTH, FOUND)), expected, rtol=1e-6)


def test_huber_is_keras_own():
    theirs = keras.losses.Huber(delta=1.0)
    assert float(NumberLoss("huber")(TRUTH, FOUND)) == pytest.approx(float(theirs(TRUTH, FOUND)), rel=1e-6)
