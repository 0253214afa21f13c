import numpy as np
import pytest
from keras import ops

from keras_vit.inference.overlaps import generalized, overlaps
from keras_vit.tasks.detect import overlap

pytestmark = pytest.mark.backend
BOXES = np.sort(np.random.default_rng(0).uniform(size=(9, 2, 2)), axis=1).reshape(9, 4).astype("float32")
BOXES[3] = BOXES[2]
BOXES[4, 2:] = BOXES[4, :2]  # without area


@pytest.mark.parametrize("ours, theirs", [(overlaps, overlap.iou), (generalized, overlap.generalized_iou)])
def test_the_numbers_are_those_of_the_losses(ours, theirs):
    for box in BOXES[:4]:
        wanted = ops.convert_to_numpy(theirs(BOXES, box[None]))[:, 0]
        np.testing.assert_allclose(ours(BOXES, box), wanted, atol=1e-6)
    assert overlaps(BOXES[:0], BOXES[0]).shape == (0,)
