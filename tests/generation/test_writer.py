import numpy as np
import pytest

from keras_vit import generate_text
from keras_vit.generation import writer
from keras_vit.generation.generate_text import planned
from keras_vit.generation.search import Rules
from keras_vit.generation.writer import Writer
from tests.captions import WAYS, decoder, numbers, small
from tests.marks import few, slow

pytestmark = pytest.mark.filterwarnings("ignore:.*texts were cut at length:UserWarning")
TABLE = ["<unknown>", "<pad>", "<start>", "<end>", *"abcdefghijklmnopqrstuvwxyz"]
RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (3, 8, 8, 3)).astype("float32")
PICTURES = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 3)).astype("uint8")
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
    model = Writer(model, 3, 2, Rules(10, end=3, pad=1))
    ids, scores = model.predict_on_batch({"texts": BEGUN} | ({} if images is None else {"images": images}))
    np.testing.assert_array_equal(numbers(ids), expected)
    assert (numbers(scores) < 0).all() and numbers(ids).dtype == "int32"


@slow
@pytest.mark.compiled
@pytest.mark.parametrize("beams", [3, pytest.param(1, marks=slow)])
def test_xla_writes_the_same(beams):
    model, found = small("trocr_small"), []
    for compiled in (False, True):
        compiled_writer = Writer(model, 3, 2, Rules(10, end=3, pad=1), beams)
        compiled_writer.compile(jit_compile=compiled)
        found.append([numbers(each) for each in compiled_writer.predict_on_batch({"texts": BEGUN, "images": IMAGES})])
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-5)


@few(1)
@pytest.mark.parametrize("way", [dict(), dict(beams=3), dict(temperature=1.5)])
def test_prompts_of_many_lengths_are_written_together_by_one_writer(way):
    model = decoder("language", length=24, metadata={"start": 2, "end": 3, "pad": 1, "words": TABLE})
    texts = [" ".join("abcdefgh"[:n]) for n in (8, 1, 3, 8, 5, 2, 7)]
    writer._writer.cache_clear()
    found = generate_text(model, prompt=texts, length=20, batch_size=4, **way)
    assert writer._writer.cache_info().currsize == 1
    assert all(text.startswith(prompt) for text, prompt in zip(found.texts, texts))
    for i in (1, 4):
        more = [*texts[:i], *[texts[i]] * (len(texts) - i)] if "temperature" in way else [texts[i]]  # drawn by place
        alone = generate_text(model, prompt=more, length=20, **way)
        row = i if "temperature" in way else 0
        np.testing.assert_array_equal(alone.ids[row], found.ids[i])
        np.testing.assert_allclose(alone.scores[row], found.scores[i], atol=1e-5)


def test_batches_come_as_they_are_written(tmp_path):
    """Whoever stops has what was written before."""
    (tmp_path / "bad.png").write_text("no image")
    model = small()
    images = [*PICTURES[:3], tmp_path / "bad.png", *PICTURES[3:]]
    found = writer.batches(planned(model, images, length=6, batch_size=2))
    first = next(found)
    assert first.places == [0, 1] and first.ids.shape == (2, 6) and len(first) == 2
    second = next(found)
    assert second.places == [2] and [*second.errors] == [3] and len(second) == 2
    np.testing.assert_array_equal(first.ids, generate_text(model, PICTURES[:2], length=6).ids)
