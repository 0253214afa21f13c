import numpy as np
import pytest

from keras_vit.generation.search import Rules
from keras_vit.generation.writer import Writer, parts_of
from tests.captions import WAYS, decoder, numbers, small
from tests.checkpoints.helpers import unexpected
from tests.marks import few, slow

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (3, 8, 8, 3)).astype("float32")
BEGUN = np.array([[2, 7], [2, 9], [2, 4]], "int32")


def whole(model, images, begun, length, end):
    """Writes by computing the whole text for each word."""
    ids, done = begun, np.zeros(len(begun), bool)
    while ids.shape[1] < length and not done.all():
        logits = numbers(model({"images": images, "texts": ids} if images is not None else ids))
        word = np.where(done, 1, logits[:, -1].argmax(-1))
        ids, done = np.concatenate([ids, word[:, None]], axis=1).astype("int32"), done | (word == end)
    return np.pad(ids, ((0, 0), (0, length - ids.shape[1])), constant_values=1)


@pytest.mark.backend
@few(2)  # the others by steps, in test_decoding
@pytest.mark.parametrize("way", WAYS)
def test_writes_what_the_model_computes_word_by_word(way):
    unmasked = {"masked_id": None} if way == "blip" else {}  # a word that was written is seen, whatever its id
    model = decoder(way) if way == "language" else small(way, **unmasked)
    images = None if way == "language" else IMAGES
    expected = whole(model, images, BEGUN, 10, end=3)
    writer = Writer(model, 3, 2, Rules(10, end=3, pad=1))
    ids, scores = writer.predict_on_batch({"texts": BEGUN} | ({} if images is None else {"images": images}))
    np.testing.assert_array_equal(numbers(ids), expected)
    assert (numbers(scores) < 0).all() and numbers(ids).dtype == "int32"


@slow
@pytest.mark.compiled
@pytest.mark.parametrize("beams", [3, pytest.param(1, marks=slow)])
def test_xla_writes_the_same(beams):
    model, found = small("trocr_small"), []
    for compiled in (False, True):
        writer = Writer(model, 3, 2, Rules(10, end=3, pad=1), beams)
        writer.compile(jit_compile=compiled)
        found.append([numbers(each) for each in writer.predict_on_batch({"texts": BEGUN, "images": IMAGES})])
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-5)


def test_other_models_are_refused():
    wrong = [
        (
            lambda: parts_of(decoder("gpt2")),
            "must be joined with an image tower by keras_vit.captioner. Received: 'text'",
        ),
        (
            lambda: parts_of(small().get_layer("image")),
            "must be a model from keras_vit.text_decoder. Received: 'image'",
        ),
    ]
    assert not unexpected(wrong)
