import numpy as np
import pytest

from keras_vit.models.decoding import context_of, empty_cache, step
from tests.captions import WAYS, decoder, numbers
from tests.marks import slow

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
IDS, CONTEXT = RNG.integers(4, 30, (3, 8)).astype("int32"), RNG.normal(size=(3, 5, 32)).astype("float32")


def by_steps(model, sizes, ids=IDS, context=CONTEXT, length=10):
    """Returns the logits after each part of a text, computed part by part."""
    seen = context_of(model, context) if isinstance(model.input, dict) else None
    cache, found, place = empty_cache(model, len(ids), length), [], 0
    for size in sizes:
        logits, cache = step(model, ids[:, place : place + size], place, cache, seen)
        found.append(numbers(logits))
        place += size
    return np.stack(found, axis=1), cache


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("sizes", [[3, 1, 1, 2, 1], pytest.param([1] * 8, marks=slow)])
def test_steps_equal_the_whole(way, sizes):
    """As issue 959 of torchtune asks: texts must be the same with and without a cache."""
    model = decoder(way)
    inputs = {"texts": IDS, "context": CONTEXT} if isinstance(model.input, dict) else IDS
    whole = numbers(model(inputs))[:, np.cumsum(sizes) - 1]
    np.testing.assert_allclose(by_steps(model, sizes)[0], whole, atol=1e-5)


def test_the_cache_keeps_its_size_and_what_is_later_does_not_matter():
    model = decoder()
    short, long = (by_steps(model, [1] * 8, length=length) for length in (8, 12))
    np.testing.assert_allclose(short[0], long[0], atol=1e-6)
    assert [tuple(part.shape) for part in long[1][0]] == [(3, 12, 4, 4)] * 2
    assert not numbers(long[1][0][0])[:, 8:].any()


def test_several_sequences_share_a_context():
    model = decoder()
    ids = np.repeat(IDS, 2, axis=0)
    ids[1::2] = ids[::-2]
    apart = by_steps(model, [2, 1, 1], ids, np.repeat(CONTEXT, 2, axis=0))[0]
    np.testing.assert_allclose(by_steps(model, [2, 1, 1], ids, CONTEXT)[0], apart, atol=1e-5)


def test_mixed_precision_keeps_half_the_bytes():
    model = decoder(dtype="mixed_bfloat16")
    logits, cache = by_steps(model, [1] * 4)
    assert logits.dtype == "float32" and "bfloat16" in str(cache[0][0].dtype)
    whole = numbers(model({"texts": IDS, "context": CONTEXT}))[:, :4]
    np.testing.assert_allclose(logits, whole, atol=0.1)
