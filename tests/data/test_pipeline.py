import itertools
import pathlib

import numpy as np
import pytest
from PIL import Image

tf = pytest.importorskip("tensorflow")

from keras_vit.config import Augment, Data, Optim, Recipe  # noqa: E402
from keras_vit.data import pipeline  # noqa: E402
from keras_vit.data.sources import Source  # noqa: E402

COUNT, SIZE = 22, (4, 4, 1)
PIXELS = np.repeat(np.arange(COUNT, dtype="uint8"), 16).reshape(COUNT, *SIZE)  # an image is its own number
SOURCE = Source(PIXELS, (np.arange(COUNT) % 3).astype("int32"), ("a", "b", "c"))
RECIPE = Recipe(name="x", model={}, data=Data(batch_size=5), optim=Optim(epochs=3), seed=7)


def numbers(dataset):
    return [images[:, 0, 0, 0].astype(int).tolist() for images, _ in dataset.as_numpy_iterator()]


def test_an_epoch_sees_each_image_at_most_once_in_full_batches():
    dataset = pipeline.training_batches(SOURCE, RECIPE, SIZE)
    assert dataset.cardinality() == 4 == pipeline.steps_per_epoch(SOURCE, RECIPE)
    first, second = numbers(dataset), numbers(dataset)
    for epoch in (first, second):
        assert [len(batch) for batch in epoch] == [5] * 4
        assert len(set(itertools.chain(*epoch))) == 20
    assert first != second


def test_images_keep_their_labels():
    for images, labels in pipeline.training_batches(SOURCE, RECIPE, SIZE).as_numpy_iterator():
        assert images.dtype == labels.dtype == np.float32
        np.testing.assert_array_equal(labels.argmax(-1), images[:, 0, 0, 0] % 3)
        np.testing.assert_array_equal(labels.sum(-1), 1)


def test_a_run_can_start_at_any_epoch_and_sees_what_it_would_have_seen():
    recipe = Recipe(**{**vars(RECIPE), "augment": Augment(rotation=30.0, translation=0.2)})
    whole, tail, again = (
        list(pipeline.training_batches(SOURCE, recipe, SIZE, first_epoch=first).as_numpy_iterator())
        for first in (0, 2, 0)
    )
    assert len(whole) == 12 and len(tail) == 4
    for (a, _), (b, _) in zip(whole[8:], tail):
        np.testing.assert_array_equal(a, b)
    for (a, _), (b, _) in zip(whole, again):
        np.testing.assert_array_equal(a, b)


def test_another_seed_gives_another_order():
    other = Recipe(**{**vars(RECIPE), "seed": 8})
    first, second = (numbers(pipeline.training_batches(SOURCE, r, SIZE, first_epoch=0)) for r in (RECIPE, other))
    assert first != second


def test_evaluation_sees_every_image_in_order():
    dataset = pipeline.evaluation_batches(SOURCE, RECIPE, SIZE)
    assert list(itertools.chain(*numbers(dataset))) == list(range(COUNT))


def test_pixels_of_another_size_are_resized():
    images, _ = next(pipeline.evaluation_batches(SOURCE, RECIPE, (8, 2, 1)).as_numpy_iterator())
    assert images.shape == (5, 8, 2, 1)
    np.testing.assert_allclose(images[3], 3)


def test_files_and_encoded_bytes_are_decoded(tmp_path):
    paths = []
    for i in range(4):
        paths.append(str(tmp_path / f"{i}.png"))
        Image.new("RGB", (6 + i, 5), (10 * i, 0, 0)).save(paths[-1])
    labels = np.arange(4, dtype="int32")
    files = Source(np.array(paths), labels, tuple("abcd"), files=True)
    encoded = Source(np.array([pathlib.Path(p).read_bytes() for p in paths], dtype=object), labels, tuple("abcd"))
    for source in (files, encoded):
        images, _ = next(pipeline.evaluation_batches(source, RECIPE, (3, 3, 3)).as_numpy_iterator())
        np.testing.assert_allclose(images[:, 1, 1, 0], [0, 10, 20, 30])
    grey, _ = next(pipeline.evaluation_batches(files, RECIPE, (3, 3, 1)).as_numpy_iterator())
    assert grey.shape == (4, 3, 3, 1)


def test_data_that_does_not_fit_is_named():
    with pytest.raises(ValueError, match="batch of 5 is larger than the training split: 3 images"):
        pipeline.training_batches(SOURCE.take(slice(3)), RECIPE, SIZE)


def test_unreadable_files_are_named(tmp_path):
    (tmp_path / "text.png").write_text("no image")
    with pytest.raises(ValueError, match=r"text.png' cannot be read as an image"):
        pipeline.read_files([tmp_path / "text.png"], (3, 3, 3))
    with pytest.raises(FileNotFoundError, match="nothing.png"):
        pipeline.read_files([tmp_path / "nothing.png"], (3, 3, 3))
