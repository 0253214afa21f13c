import numpy as np
import pytest
from keras import ops

from keras_vit import vit
from keras_vit.explain import attention_of_queries
from keras_vit.explain.queries import where_queries_look
from tests import masks

pytestmark = pytest.mark.backend
IMAGES = np.random.default_rng(0).integers(0, 256, (3, 16, 16, 3)).astype("float32")


def test_each_query_looks_where_the_last_block_does():
    model = masks.small()
    maps = attention_of_queries(model, IMAGES)
    assert maps.shape == (3, 4, 4, 4) and maps.dtype == np.float32
    assert (maps.sum((2, 3)) < 1).all() and np.ptp(maps, axis=1).max() > 1e-3
    block = model.get_layer("block_2")
    seen = {}
    own = block.attention.call

    def spy(x, **more):
        seen["x"] = ops.convert_to_numpy(x)
        return own(x, **more)

    block.attention.call = spy
    try:
        again = attention_of_queries(model, IMAGES[:1])
    finally:
        block.attention.call = own
    x, width, heads = seen["x"][0], 8, 2
    kernel, bias = (np.asarray(v) for v in block.attention.qkv.weights)
    q, k, _ = np.split(x @ kernel + bias, 3, axis=-1)
    scores = np.zeros((len(x), len(x)))
    for head in range(heads):
        part = slice(head * width // heads, (head + 1) * width // heads)
        logits = q[:, part] @ k[:, part].T / np.sqrt(width / heads)
        scores += np.exp(logits) / np.exp(logits).sum(-1, keepdims=True) / heads
    np.testing.assert_allclose(again[0].reshape(4, 16), scores[:4, 6:], atol=1e-5)


def test_queries_of_nothing_hardly_count():
    model = masks.build()
    maps = attention_of_queries(model, IMAGES)
    outputs = ops.convert_to_numpy(model(IMAGES))[..., :4]
    weights = 1 - np.exp(outputs[..., 3]) / np.exp(outputs).sum(-1)
    want = (maps * weights[..., None, None]).sum(1) / weights.sum(1)[:, None, None]
    np.testing.assert_allclose(where_queries_look(model, IMAGES), want, atol=1e-5)


def test_refused():
    with pytest.raises(ValueError, match="must have queries with a mask each, as EoMT. Received: 'plain'"):
        attention_of_queries(vit("mu/4", image_size=8, num_classes=2, name="plain"), IMAGES)
    with pytest.raises(ValueError, match="16, 16"):
        attention_of_queries(masks.small(), IMAGES[:, :8])
