import numpy as np
import pytest

from keras_vit.tasks.segment.true_segments import true_segments
from keras_vit.utils import instance_maps

MAP = np.array([[-1, 1001, 1001, 2], [-3, -1, 2000, 1]], "int32")


@pytest.mark.parametrize("item", [MAP, MAP[..., None], instance_maps.png(MAP)])
def test_segments_are_numbered_in_the_order_of_their_values(item):
    truth = true_segments(item, 3)
    np.testing.assert_array_equal(truth.index, [[-1, 3, 3, 2], [0, -1, 4, 1]])
    assert truth.classes.tolist() == [1, 0, 0, 1, 2] and truth.crowd.tolist() == [True] + [False] * 4


def test_an_image_may_have_none():
    truth = true_segments(np.full((2, 3), -1), 1)
    assert (truth.index == -1).all() and len(truth.classes) == len(truth.crowd) == 0


def test_the_last_values_of_the_classes_are_right_and_the_next_ones_refused():
    assert true_segments(np.array([[2999, -4]]), 3).classes.tolist() == [2, 2]
    for wrong in (3000, -5):
        with pytest.raises(ValueError, match=f"of 3 classes must have values from -4 to 2999. Received: .*{wrong}"):
            true_segments(np.array([[wrong, 0]]), 3)
