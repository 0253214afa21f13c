import dataclasses
import hashlib
import itertools
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
from PIL import Image

tf = pytest.importorskip("tensorflow")

from keras_vit.config import Augment, Data, Optim, Recipe, override  # noqa: E402
from keras_vit.data import pipeline  # noqa: E402
from keras_vit.data.sources import Source  # noqa: E402
from keras_vit.tasks import Classify  # noqa: E402
from keras_vit.tasks.base import Task  # noqa: E402
from tests import picturefiles  # noqa: E402
from tests.marks import few, slow  # noqa: E402

COUNT, SIZE = 22, (4, 4, 1)
PIXELS = np.repeat(np.arange(COUNT, dtype="uint8"), 16).reshape(COUNT, *SIZE)  # an image is its own number
SOURCE = Source(PIXELS, {"labels": (np.arange(COUNT) % 3).astype("int32")}, ("a", "b", "c"))
LETTERS = Classify(classes=("a", "b", "c"))
RECIPE = Recipe(name="x", model={}, task=LETTERS, data=Data(batch_size=5), optim=Optim(epochs=3), seed=7)
ALONE = Augment(crop="padded", crop_padding=1, rotation=30.0, scale=0.1, translation=0.2, flip=True, jitter=0.2,
                randaugment=1, magnitude=9.0, erase=0.3)  # fmt: skip
EVERYTHING = dataclasses.replace(ALONE, mixup=0.4, cutmix=1.0)
ROOT = pathlib.Path(__file__).parents[2]


def change(**parts):
    return dataclasses.replace(RECIPE, **parts)


MIXED = change(augment=EVERYTHING)


@pytest.fixture(scope="module")
def mixed():
    """All batches of a run of three epochs, with every augmentation."""
    return batches(MIXED)


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


def batches(recipe=RECIPE, size=SIZE, source=SOURCE, **settings):
    dataset = pipeline.training_batches(source, recipe, size, first_epoch=settings.pop("first_epoch", 0), **settings)
    return list(dataset.as_numpy_iterator())


def same(first, second):
    for one, two in zip(first, second, strict=True):
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a, b)


@few(1)
@pytest.mark.parametrize("epoch, step", [(0, 1), (1, 0), (2, 2)])
def test_a_run_can_start_anywhere_and_sees_what_it_would_have_seen(epoch, step, mixed):
    dataset = pipeline.training_batches(SOURCE, MIXED, SIZE, first_epoch=epoch, first_step=step)
    tail = list(dataset.as_numpy_iterator())
    assert len(mixed) == 12 and dataset.cardinality() == len(tail) == 12 - 4 * epoch - step
    same(mixed[4 * epoch + step :], tail)


@slow
def test_processes_share_a_batch():
    recipe = change(data=Data(batch_size=6), augment=ALONE)
    parts = [batches(recipe, first_step=1, share=(index, 3)) for index in range(3)]
    joined = [[np.concatenate(pieces) for pieces in zip(*batch)] for batch in zip(*parts)]
    same(batches(recipe, first_step=1), joined)
    with pytest.raises(ValueError, match="into equal parts. Received: 5 images among 2 processes"):
        batches(share=(0, 2))


@slow
def test_pieces_make_the_same_batches(monkeypatch):
    recipe = change(data=Data(batch_size=6), augment=EVERYTHING)
    whole, seen = batches(recipe), list(pipeline.evaluation_batches(SOURCE, recipe, (3, 5, 1)).as_numpy_iterator())
    for chunk in (1, 2 * 16):
        monkeypatch.setattr(pipeline, "CHUNK", chunk)
        same(whole, batches(recipe))
        same(seen, list(pipeline.evaluation_batches(SOURCE, recipe, (3, 5, 1)).as_numpy_iterator()))


@pytest.mark.parametrize(
    "count, size, batch, expected",
    [(16, SIZE, 5, 1), (32, SIZE, 6, 2), (79, SIZE, 6, 3), (1, SIZE, 6, 1), (10**9, SIZE, 6, 6)],
)
def test_a_piece_divides_the_batch(count, size, batch, expected, monkeypatch):
    monkeypatch.setattr(pipeline, "CHUNK", count)
    assert pipeline._chunk(batch, size) == expected


def test_mixed_labels_sum_to_one(mixed):
    for images, labels in mixed:
        np.testing.assert_allclose(labels.sum(-1), 1, rtol=1e-6)
        assert labels.min() >= 0 and images.min() >= 0 and images.max() <= 255
    assert any(((labels > 0).sum(-1) > 1).any() for _, labels in mixed)


def fingerprint(whole):
    """Returns a hash of the batches of `MIXED`, and of an epoch whose number is drawn."""
    keras.utils.set_random_seed(0)  # which `Dataset.random` reads besides its own
    drawn = list(pipeline.training_batches(SOURCE, RECIPE, SIZE).as_numpy_iterator())
    return hashlib.sha256(b"".join(array.tobytes() for batch in whole + drawn for array in batch)).hexdigest()


@slow
def test_another_process_makes_the_same_batches(mixed):
    script = "from tests.data import test_pipeline as t; print(t.fingerprint(t.batches(t.MIXED)))"
    other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert other.stdout.split()[-1] == fingerprint(mixed)


def test_another_seed_gives_another_order():
    first, second = (
        numbers(pipeline.training_batches(SOURCE, r, SIZE, first_epoch=0)) for r in (RECIPE, change(seed=8))
    )
    assert first != second


def test_evaluation_sees_every_image_in_order():
    dataset = pipeline.evaluation_batches(SOURCE, RECIPE, SIZE)
    assert list(itertools.chain(*numbers(dataset))) == list(range(COUNT))


def test_pixels_of_another_size_are_resized():
    images, _ = next(pipeline.evaluation_batches(SOURCE, RECIPE, (8, 2, 1)).as_numpy_iterator())
    assert images.shape == (5, 8, 2, 1)
    np.testing.assert_allclose(images[3], 3)


def test_pixels_of_the_models_size_are_cut_as_files_are():
    """A shorter side of 8 pixels, and the center of it."""
    pixels = np.arange(5 * 16, dtype="uint8").reshape(5, 4, 4, 1)
    source, recipe = Source(pixels, {"labels": np.zeros(5, "int32")}, ("a",)), change(data=Data(batch_size=5, resize=8))
    images, _ = next(pipeline.evaluation_batches(source, recipe, SIZE).as_numpy_iterator())
    expected = tf.image.resize(pixels, (8, 8), antialias=True)[:, 2:6, 2:6]
    np.testing.assert_allclose(images, expected, atol=1e-4)


def test_files_and_encoded_bytes_are_decoded(tmp_path):
    paths = []
    for i in range(4):
        paths.append(str(tmp_path / f"{i}.png"))
        Image.new("RGB", (6 + i, 5), (10 * i, 0, 0)).save(paths[-1])
    labels = {"labels": np.arange(4, dtype="int32")}
    files = Source(np.array(paths), labels, tuple("abcd"), files=True)
    encoded = Source(np.array([pathlib.Path(p).read_bytes() for p in paths], dtype=object), labels, tuple("abcd"))
    for source in (files, encoded):
        images, _ = next(pipeline.evaluation_batches(source, RECIPE, (3, 3, 3)).as_numpy_iterator())
        np.testing.assert_allclose(images[:, 1, 1, 0], [0, 10, 20, 30])
    gray, _ = next(pipeline.evaluation_batches(files, RECIPE, (3, 3, 1)).as_numpy_iterator())
    assert gray.shape == (4, 3, 3, 1)


def test_data_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="as many images as one batch, or more. Received: 3 images, data.batch_size=5"):
        pipeline.training_batches(SOURCE.take(slice(3)), RECIPE, SIZE)
    most = pipeline.steps_per_epoch(SOURCE, RECIPE) * RECIPE.optim.epochs
    with pytest.raises(ValueError, match=f"optim.accumulate must be at most {most}, .* Received: 1000"):
        pipeline.steps_per_epoch(SOURCE, override(RECIPE, {"optim.accumulate": 1000}))


def test_a_file_that_went_bad_is_refused(tmp_path):
    paths = [tmp_path / f"{i}.png" for i in range(3)]
    for path in paths:
        path.write_bytes(picturefiles.EXACT["gray.png"])
    source = Source(np.array(list(map(str, paths))), {"labels": np.arange(3, dtype="int32")}, tuple("abc"), files=True)
    assert len(list(pipeline.evaluation_arrays(source, RECIPE, SIZE))) == 1
    paths[1].write_text("no image")
    source = Source(source.images, source.targets, source.class_names, files=True)
    with pytest.raises(ValueError, match=r"1.png' was readable when it was checked, and now is not: "):
        list(pipeline.evaluation_arrays(source, RECIPE, SIZE))


@dataclasses.dataclass(frozen=True, repr=False)
class Pairs(Task):
    """Returns images and masks as they are, and random numbers."""

    targets = ("segmentation_masks",)

    def batch(self, examples, augment, seed):
        noise = tf.random.stateless_uniform(tf.shape(examples["images"])[:1], seed)
        return {"images": examples["images"], "noise": noise}, examples["segmentation_masks"]


MASKED = change(task=Pairs(), augment=dataclasses.replace(ALONE, randaugment=0))
PLACES = Source(PIXELS, {"segmentation_masks": PIXELS})


def test_masks_come_with_their_images_in_every_epoch():
    recipe = change(task=Pairs(), augment=Augment(crop="padded", crop_padding=2, flip=True))
    found = batches(recipe, source=Source(PIXELS + 1, {"segmentation_masks": PIXELS + 1}))
    assert len(found) == 12
    for x, masks in found:
        assert masks.dtype == np.uint8 and masks.shape == (5, *SIZE)
        np.testing.assert_array_equal(np.where(masks == 255, 0, masks), x["images"])
    assert any((masks == 255).any() for _, masks in found)
    images, masks = next(pipeline.evaluation_batches(PLACES, recipe, (8, 8, 1)).as_numpy_iterator())
    np.testing.assert_array_equal(images["images"], masks)


@slow
def test_masked_batches_can_start_anywhere_and_be_shared():
    def flat(found):
        return [(x["images"], x["noise"], masks) for x, masks in found]

    whole = flat(batches(MASKED, source=PLACES))
    same(whole[6:], flat(batches(MASKED, source=PLACES, first_epoch=1, first_step=2)))
    assert len({numbers.tobytes() for _, numbers, _ in whole}) == 12
    six = dataclasses.replace(MASKED, data=Data(batch_size=6))
    parts = [batches(six, source=PLACES, share=(index, 2)) for index in range(2)]
    joined = [[np.concatenate([a[0]["images"], b[0]["images"]]), np.concatenate([a[1], b[1]])] for a, b in zip(*parts)]
    same([(x["images"], masks) for x, masks in batches(six, source=PLACES)], joined)
    evaluated = pipeline.evaluation_batches(PLACES, MASKED, SIZE)
    first, again = ([x["noise"] for x, _ in evaluated.as_numpy_iterator()] for _ in range(2))
    assert (first[0] != first[1]).all()  # each batch has its own seed, the same in each pass
    np.testing.assert_array_equal(first[:2], again[:2])


def test_evaluation_arrays_have_targets_as_they_are():
    (first, *_), labeled = pipeline.evaluation_arrays(PLACES, MASKED, (8, 2, 1)), pipeline.evaluation_arrays
    assert first["images"].shape == (5, 8, 2, 1) and first["images"].dtype == np.float32
    np.testing.assert_array_equal(first["segmentation_masks"], PIXELS[:5])
    labels = np.concatenate([batch["labels"] for batch in labeled(SOURCE, RECIPE, SIZE)])
    np.testing.assert_array_equal(labels, SOURCE.labels)

    class OneHot(Classify):
        def prepare(self, examples, seed):
            return {**examples, "labels": tf.one_hot(examples["labels"], len(self.classes))}

    first, *_ = pipeline.evaluation_arrays(SOURCE, change(task=OneHot(classes=LETTERS.classes)), SIZE)
    np.testing.assert_array_equal(first["labels"].argmax(-1), SOURCE.labels[:5])


def test_masks_of_another_size_than_the_model_are_cut_with_their_images():
    masks = np.repeat(np.repeat(PIXELS, 2, 1), 2, 2)
    images = Source(PIXELS.repeat(2, 1).repeat(2, 2), {"segmentation_masks": masks})
    for recipe in (MASKED, change(task=Pairs(), augment=Augment(crop="inception"))):
        for x, found in batches(recipe, source=images):
            assert x["images"].shape == found.shape == (5, *SIZE)
    for x, found in batches(recipe, source=images):
        np.testing.assert_allclose(x["images"], found, rtol=1e-6)
