import numpy as np
import pytest

from keras_vit import generate_text
from keras_vit.generation import batched_writing
from keras_vit.generation.generate_text import planned
from tests.captions import decoder, small
from tests.marks import few

pytestmark = pytest.mark.filterwarnings("ignore:.*texts were cut at length:UserWarning")
TABLE = ["<unknown>", "<pad>", "<start>", "<end>", *"abcdefghijklmnopqrstuvwxyz"]
IMAGES = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 3)).astype("uint8")


@few(1)
@pytest.mark.parametrize("way", [dict(), dict(beams=3), dict(temperature=1.5)])
def test_prompts_of_many_lengths_are_written_together_by_one_writer(way):
    model = decoder("language", length=24, metadata={"start": 2, "end": 3, "pad": 1, "words": TABLE})
    texts = [" ".join("abcdefgh"[:n]) for n in (8, 1, 3, 8, 5, 2, 7)]
    batched_writing._writer.cache_clear()
    found = generate_text(model, prompt=texts, length=20, batch_size=4, **way)
    assert batched_writing._writer.cache_info().currsize == 1
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
    images = [*IMAGES[:3], tmp_path / "bad.png", *IMAGES[3:]]
    found = batched_writing.batches(planned(model, images, length=6, batch_size=2))
    first = next(found)
    assert first.places == [0, 1] and first.ids.shape == (2, 6) and len(first) == 2
    second = next(found)
    assert second.places == [2] and [*second.errors] == [3] and len(second) == 2
    np.testing.assert_array_equal(first.ids, generate_text(model, IMAGES[:2], length=6).ids)
