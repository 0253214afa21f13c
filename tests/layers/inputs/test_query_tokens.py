import numpy as np
import pytest

from keras_vit import QueryTokens
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend


def test_layer(tmp_path):
    run_layer_test(lambda dtype: QueryTokens(3, dtype=dtype), (2, 5, 8), (2, 8, 8), tmp_path=tmp_path)


def test_queries_are_in_front_and_the_same_for_all_images():
    tokens = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    layer = QueryTokens(3)
    found = np.asarray(layer(tokens))
    np.testing.assert_array_equal(found[:, 3:], tokens)
    np.testing.assert_array_equal(found[:, :3], np.repeat(np.asarray(layer.tokens), 2, axis=0))


def test_refused():
    with pytest.raises(ValueError, match="`queries` must be"):
        QueryTokens(0)
