import keras
import numpy as np
import pytest

from keras_vit.layers import FrameMean
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend


def test_harness(tmp_path):
    run_layer_test(lambda dtype: FrameMean(3, dtype=dtype), (6, 5), (2, 5), tmp_path=tmp_path)


def test_the_mean_of_vectors_of_length_1():
    """Long vectors count no more than short ones, and zeros stay zero."""
    vectors = np.array([[3, 4], [0, 0.1], [0, 0], [-2, 0]], "float32")
    found = keras.ops.convert_to_numpy(FrameMean(2)(vectors))
    np.testing.assert_allclose(found, [[0.3, 0.9], [-0.5, 0]], atol=1e-6)
    assert FrameMean(2).compute_output_shape((4, 7)) == (2, 7) and FrameMean(2).gives == "embeddings"


def test_other_shapes_are_refused():
    for frames, shape in ((3, (4, 2)), (2, (4, 2, 2)), (2, (4, None))):
        with pytest.raises(ValueError, match=f"must be vectors of {frames} frames of each clip"):
            FrameMean(frames).compute_output_shape(shape)
