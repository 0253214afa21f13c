import keras
import numpy as np
import pytest

from keras_vit import QueryMasks
from tests.harness import run_layer_test
from tests.marks import few

pytestmark = pytest.mark.backend


@few(1)
@pytest.mark.parametrize("upscales, numbers", [(1, 4 * 6), (0, 2 * 3)])
def test_layer(upscales, numbers, tmp_path):
    make = lambda dtype: QueryMasks((2, 3), 4, 3, upscales=upscales, dtype=dtype)  # noqa: E731
    inside = ["fc0", "fc2", *(["up0", "depthwise0", "norm0"] if upscales else [])]
    run_layer_test(make, (2, 10, 8), (2, 3, 5 + numbers), inside, tmp_path, last="class")


def test_without_enlargement_a_mask_is_a_product():
    """Three dense layers that keep a positive vector, but for the GELU, which is written out."""
    head = QueryMasks((2, 2), 1, 2, upscales=0)
    tokens = np.random.default_rng(0).normal(size=(1, 7, 4)).astype("float32")
    head.build(tokens.shape)
    for dense in head.dense:
        dense.kernel.assign(np.eye(4))
    gelu = lambda x: keras.ops.convert_to_numpy(keras.activations.gelu(x, approximate=False))  # noqa: E731
    queries = gelu(gelu(tokens[0, :2]))
    found = np.asarray(head(tokens))[0, :, 2:]
    np.testing.assert_allclose(found, queries @ tokens[0, 3:].T, atol=1e-5)
    assert head.mask_size == (2, 2)


def test_refused():
    for options in (dict(units=0), dict(queries=0), dict(upscales=-1), dict(gelu="swish"), dict(grid=(0, 2))):
        with pytest.raises(ValueError, match=next(iter(options))):
            QueryMasks(**{"grid": (2, 2), "units": 3, "queries": 4, **options})
    with pytest.raises(ValueError, match="with 4 queries and 2 x 2 patches. Received: .1, 7, 8."):
        QueryMasks((2, 2), 3, 4).build((1, 7, 8))
