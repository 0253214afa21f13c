import numpy as np
import pytest

from keras_vit.layers import EndPool
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend

TOKENS = np.random.default_rng(0).normal(size=(3, 5, 8)).astype("float32")
IDS = np.array([[7, 2, 9, 9, 9], [9, 2, 2, 2, 2], [7, 3, 4, 1, 0]], "int32")


@pytest.mark.parametrize("end", [None, 2])
def test_layer(end, tmp_path):
    run_layer_test(lambda dtype: EndPool(end, dtype=dtype), [(3, 5, 8), (3, 5)], (3, 8), tmp_path=tmp_path)


@pytest.mark.parametrize(
    "end, places",
    [(None, [2, 0, 0]), (2, [1, 1, 0]), (9, [2, 0, 0]), (4, [0, 0, 2])],  # the first of several; 0 without any
)
def test_takes_the_end_of_each_text(end, places):
    np.testing.assert_array_equal(np.asarray(EndPool(end)([TOKENS, IDS])), TOKENS[np.arange(3), places])


def test_the_end_is_an_id():
    with pytest.raises(ValueError, match="`end` must be an integer, 0 or more. Received: end=-1"):
        EndPool(-1)
