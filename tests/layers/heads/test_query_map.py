import keras
import numpy as np
import pytest
from scipy.special import expit, softmax

from keras_vit.layers import QueryMap

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)


def test_it_is_float32_and_keeps_its_arguments():
    layer = QueryMap(2, (3, 4), dtype="mixed_bfloat16")
    output = layer(keras.Input((5, 2 + 1 + 12), dtype="bfloat16"))
    assert output.shape == (None, 3, 4, 2) and output.dtype == "float32"
    again = QueryMap.from_config(layer.get_config())
    assert (again.units, again.size, again.dtype_policy.name) == (2, (3, 4), "mixed_bfloat16")


def test_scores_are_sums_over_queries():
    queries = RNG.normal(size=(1, 5, 2 + 1 + 12)).astype("float32")
    scores = np.zeros((3, 4, 2))
    for query in queries[0]:
        scores += expit(query[3:]).reshape(3, 4, 1) * softmax(query[:3])[:2]
    found = keras.ops.convert_to_numpy(QueryMap(2, (3, 4))(queries))
    np.testing.assert_allclose(np.exp(found[0]), scores, rtol=1e-5)
    queries[..., 2] = 200  # all queries are of nothing
    assert np.isfinite(keras.ops.convert_to_numpy(QueryMap(2, (3, 4))(queries))).all()


def test_refused():
    with pytest.raises(ValueError, match=r"must have 15 numbers. Received: \(None, 5, 14\)"):
        QueryMap(2, (3, 4))(keras.Input((5, 14)))
