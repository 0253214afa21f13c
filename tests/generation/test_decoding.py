import numpy as np
import pytest

from keras_vit.generation.decoding import context_of, empty_cache, step
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


@slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("filler", [1, 7])
def test_fillers_before_a_text_do_not_matter(way, filler):
    """Texts that begin with other numbers of words, computed together; 1 is what has no sinusoidal position."""
    model, lengths = decoder(way), (5, 2, 4)
    fillers = np.array([5 - length for length in lengths], "int32")
    ids = np.stack([np.r_[[filler] * n, row[: 8 - n]] for row, n in zip(IDS, fillers)]).astype("int32")
    seen = context_of(model, CONTEXT) if isinstance(model.input, dict) else None
    cache, found, place = empty_cache(model, 3, 12), [], 0
    for size in (5, 1, 1, 1):
        logits, cache = step(model, ids[:, place : place + size], place, cache, seen, fillers)
        found.append(numbers(logits))
        place += size
    whole = numbers(model({"texts": IDS, "context": CONTEXT} if isinstance(model.input, dict) else IDS))
    for row, length in enumerate(lengths):
        np.testing.assert_allclose(np.stack(found, 1)[row], whole[row, length - 1 : length + 3], atol=1e-5)
