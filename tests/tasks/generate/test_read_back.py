import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.tasks.generate import read_back
from keras_vit.tasks.generate.moments import Moments, frechet
from keras_vit.tasks.generate.read_back import ReadBackTally, reader_of
from keras_vit.tasks.generate.sample_tally import thumbnails

RNG = np.random.default_rng(0)
TEXTS = ("a red circle", "A  Teal triangle", "a blue rectangle", "a red circle")


def test_scores_of_texts_that_are_read_back(monkeypatch):
    read = iter([["a red circle", "a teal triangle"], ["a blue circle", "a red circle"]])
    monkeypatch.setattr(read_back, "reader_of", lambda source: lambda images: next(read))
    real, made = (RNG.uniform(0, 255, (4, 8, 8, 3)).astype("float32") for _ in range(2))
    tally = ReadBackTally(lambda ids: TEXTS[int(ids[0])], "some captioner")
    assert tally.result() == {}
    ids = np.arange(4)[:, None]
    for part, right in ((slice(0, 2), [1, 1]), (slice(2, 4), [0, 1])):
        found = tally.add({"originals": real[part], "texts": ids[part]}, made[part])
        np.testing.assert_array_equal(found, right)
    scores = tally.result()
    assert [*scores] == ["exact_match", "thumbnail_frechet"] and scores["exact_match"] == 0.75
    moments = Moments(), Moments()
    for each, images in zip(moments, (made, real)):
        each.add(thumbnails(images))
    assert scores["thumbnail_frechet"] == pytest.approx(frechet(*moments), rel=1e-6)


def test_without_a_judge():
    tally = ReadBackTally(str)
    images = RNG.uniform(0, 255, (3, 8, 8, 3)).astype("float32")
    assert tally.add({"originals": images, "texts": np.zeros((3, 2))}, images) is None
    assert [*tally.result()] == ["thumbnail_frechet"]


def test_the_shipped_captioner_reads_drawings():
    reader = reader_of("easy_vqa_captions")
    assert reader.shape == (64, 64, 3) and "teal" in reader.words
    rows, columns = np.mgrid[:64, :64]
    drawing = np.full((64, 64, 3), 238.0, "float32")
    drawing[(rows - 30) ** 2 + (columns - 34) ** 2 < 150] = (255, 0, 0)
    square = np.full((64, 64, 3), 238.0, "float32")
    square[20:36, 24:44] = (0, 0, 255)
    assert reader(np.stack([drawing, square])) == ["a red circle", "a blue rectangle"]
    reader.check(("a red circle", "a teal triangle"), (64, 64, 3))


def test_a_captioner_without_words_is_no_judge(tmp_path):
    image = keras_vit.vit("mu/4", image_size=8, pooling="none", num_classes=0, depth=1)
    sizes = dict(vocabulary=9, length=5, width=8, depth=1, num_heads=2, context_width=image.output_shape[-1])
    keras_vit.captioner(image, keras_vit.text_decoder(**sizes), start=0, end=1).save(tmp_path / "a.keras")
    with pytest.raises(ValueError, match="must have a table of words, or name its tokenizer. Received: judge="):
        reader_of(str(tmp_path / "a.keras"))
