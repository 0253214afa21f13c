import numpy as np
import pytest
from keras import ops

from keras_vit.explain.relevance import gradients
from keras_vit.layers.attention import blockwise, terms
from keras_vit.layers.attention.attend import MASKED
from tests.marks import first_everywhere, slow

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)
SAMPLES, TOKENS, OTHERS, HEADS, WIDTH = 2, 7, 9, 3, 4
INDEX = RNG.integers(0, 5, (TOKENS, OTHERS)).astype("int32")


def drawn(*shape):
    return RNG.normal(size=shape).astype("float32")


QUERY, UPSTREAM = drawn(SAMPLES, TOKENS, HEADS, WIDTH), drawn(SAMPLES, TOKENS, HEADS, WIDTH)
KEY, VALUE = drawn(SAMPLES, OTHERS, HEADS, WIDTH), drawn(SAMPLES, OTHERS, HEADS, WIDTH)


def whole(query, key, value, more, mask=None):
    logits = ops.einsum("bthd,bshd->bhts", query, key)
    if "table" in more:
        logits = logits + ops.transpose(ops.take(more["table"], INDEX, axis=0), (2, 0, 1))[None]
    logits = logits + more.get("bias", 0.0)
    logits = logits if mask is None else ops.where(mask, logits, MASKED)
    return ops.einsum("bhts,bshd->bthd", ops.softmax(logits), value)


def in_blocks(query, key, value, more, mask=None):
    more = {name: ops.convert_to_tensor(x) for name, x in more.items()}
    parts = [terms.Relative(more["table"], INDEX)] if "table" in more else []
    parts += [terms.Bias(more["bias"])] if "bias" in more else []
    parts += [] if mask is None else [terms.Mask(ops.convert_to_tensor(mask))]
    return blockwise.blockwise_attention(*map(ops.convert_to_tensor, (query, key, value)), parts)


@pytest.mark.parametrize(
    "block", [4, pytest.param(100, marks=slow), pytest.param(2, marks=slow)]
)  # two blocks, one, four
@pytest.mark.parametrize(
    "case",
    first_everywhere(
        (None, {}),
        ((SAMPLES, 1, TOKENS, OTHERS), {"table": (5, HEADS), "bias": (SAMPLES, 1, 1, OTHERS)}),
        ((1, HEADS, TOKENS, OTHERS), {"bias": (1, HEADS, 1, OTHERS)}),
        ((SAMPLES, HEADS, 1, OTHERS), {"table": (5, HEADS)}),
        ((1, 1, TOKENS, OTHERS), {"bias": (1, 1, 1, OTHERS)}),
    ),
)
def test_equals_the_formula_and_its_gradients(monkeypatch, block, case):
    monkeypatch.setattr(blockwise, "BLOCK", block)
    mask, more = case
    mask = mask and RNG.random(mask) > 0.4
    if mask is not None:
        mask[..., 0, :] = False  # a query that may attend to nothing attends to all alike
    more = {name: drawn(*shape) for name, shape in more.items()}

    def result(attention):
        def loss(parts):
            return ops.sum(attention(*parts[:3], dict(zip(more, parts[3:])), mask) * UPSTREAM)

        parts = [QUERY, KEY, VALUE, *more.values()]
        return [np.asarray(attention(QUERY, KEY, VALUE, more, mask)), *gradients(loss, parts)]

    for found, expected in zip(result(in_blocks), result(whole), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)
