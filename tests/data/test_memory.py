import os
import pathlib

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.config import Augment, Classify, Data, Optim, Recipe
from keras_vit.data import memory, pipeline, sources
from keras_vit.data.memory import Source
from tests.marks import slow

PIXELS = np.random.default_rng(0).integers(0, 256, (20, 6, 5, 3)).astype("uint8")
LABELS = {"labels": (np.arange(20) % 2).astype("int32")}
NAMES = ("cat", "dog")
RECIPE = Recipe(name="x", model={}, task=Classify(classes=NAMES), data=Data(batch_size=4), optim=Optim(epochs=2))


@pytest.fixture
def paths(tmp_path):
    found = []
    for i, (image, label) in enumerate(zip(PIXELS, LABELS["labels"])):
        folder = tmp_path / NAMES[label]
        folder.mkdir(exist_ok=True)
        found.append(str(folder / f"{i:02}.png"))
        Image.fromarray(image).save(found[-1])
    return found


def images(source, **settings):
    dataset = pipeline.evaluation_batches(source, RECIPE, (6, 5, 3))
    return np.concatenate([batch for batch, _ in dataset.as_numpy_iterator()])


def test_a_quarter_of_the_memory_is_used(monkeypatch):
    assert memory.total() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    monkeypatch.setattr(memory, "total", lambda: 4000)
    assert memory.fits(999) and not memory.fits(1000)


def test_a_container_has_less_than_the_machine(tmp_path, monkeypatch):
    (tmp_path / "limit").write_text("123456\n")
    (tmp_path / "none").write_text("max\n")
    monkeypatch.setattr(memory, "CONTAINER", (tmp_path / "none", tmp_path / "limit", tmp_path / "missing"))
    assert memory.total.__wrapped__() == 123456
    monkeypatch.delattr(os, "sysconf")
    monkeypatch.setattr(memory, "CONTAINER", ())
    assert memory.total.__wrapped__() == 2**33


def test_files_that_fit_are_read_once(paths, monkeypatch):
    source = Source(np.array(paths), LABELS, NAMES, files=True)
    size = sum(map(os.path.getsize, paths))
    monkeypatch.setattr(memory, "SHARE", 1)
    monkeypatch.setattr(memory, "total", lambda: size + 1)
    before = images(source)
    np.testing.assert_array_equal(before, PIXELS)
    for path in paths:
        os.remove(path)
    np.testing.assert_array_equal(images(source), PIXELS)
    assert source.fingerprint() == Source(np.array(paths), LABELS, NAMES, files=True).fingerprint()


@slow
def test_files_that_do_not_fit_are_read_when_needed_in_the_same_order(paths, monkeypatch):
    recipe = Recipe(**{**vars(RECIPE), "augment": Augment(crop="inception", flip=True)})
    batches = []
    for share in (0, 1):
        monkeypatch.setattr(memory, "SHARE", share)
        source = sources.load(Data(source=f"folder:{os.path.dirname(os.path.dirname(paths[0]))}"), "all")
        dataset = pipeline.training_batches(source, recipe, (4, 4, 3), first_epoch=0)
        batches.append(list(dataset.as_numpy_iterator()))
        if not share:
            for path in paths[:3]:
                os.rename(path, path + ".away")
            with pytest.raises(Exception, match="No such file"):
                images(source)
            for path in paths[:3]:
                os.rename(path + ".away", path)
    for (one, labels), (two, others) in zip(*batches, strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(labels, others)


def test_fingerprints_tell_pixels_labels_names_and_order_apart(paths):
    encoded = np.array([pathlib.Path(path).read_bytes() for path in paths], dtype=object)
    found = set()
    for kind, files in ((PIXELS, False), (encoded, False), (np.array(paths), True)):
        source = Source(kind, LABELS, NAMES, files)
        variants = [
            source,
            source.take(slice(None, None, -1)),
            source.take(slice(19)),
            Source(kind, {"labels": 1 - LABELS["labels"]}, NAMES, files),
            Source(kind, LABELS, NAMES[::-1], files),
        ]
        found |= {variant.fingerprint() for variant in variants}
        assert source.fingerprint() == Source(kind.copy(), LABELS, NAMES, files).fingerprint()
    assert len(found) == 15


def test_fingerprints_tell_targets_apart(paths):
    files = np.array(paths)
    masks = np.arange(600).reshape(20, 6, 5, 1).astype("uint8")
    found = [
        Source(PIXELS, {}).fingerprint(),
        Source(PIXELS, LABELS).fingerprint(),
        Source(PIXELS, {"segmentation_masks": masks}).fingerprint(),
        Source(PIXELS, {"segmentation_masks": masks + 1}).fingerprint(),
        Source(PIXELS, {"multilabels": np.eye(20, dtype="int8")}).fingerprint(),
        Source(PIXELS, {"multilabels": -np.eye(20, dtype="int8")}).fingerprint(),
        Source(files, {}, files=True).fingerprint(),
        Source(files, {"segmentation_masks": files}, files=True).fingerprint(),
        Source(files, {"segmentation_masks": files[::-1]}, files=True).fingerprint(),
    ]
    assert len(set(found)) == 9


def test_a_fingerprint_of_labeled_images_stays_what_it_was():
    # of `data.json` of older runs
    expected = "454545768158b209e6f6ef97e313d87303bce978b91909764e14c97722ed8a21"
    assert Source(PIXELS, LABELS, NAMES).fingerprint() == expected


def test_values_of_masks_are_those_of_the_part():
    masks = np.arange(20, dtype="uint8")[:, None, None, None] * np.ones((1, 6, 5, 1), "uint8")
    source = Source(PIXELS, {"segmentation_masks": masks})
    assert source.take([5, 3]).mask_values == {3: "mask 1", 5: "mask 0"}
    assert len(source.mask_values) == 20 and source.mask_counts.sum() == 600
    assert source.take([5, 3]).mask_values == {3: "mask 1", 5: "mask 0"}  # after they were counted


@pytest.mark.parametrize("share", [0, 1])
def test_targets_are_read_like_images(share, paths, monkeypatch):
    monkeypatch.setattr(memory, "SHARE", share)
    source = Source(np.array(paths), {"segmentation_masks": np.array(paths[::-1]), **LABELS}, NAMES, files=True)
    items = source.reader()(np.array([0, 19]))
    contents = [pathlib.Path(paths[i]).read_bytes() for i in (0, 19)]
    assert items["images"].numpy().tolist() == contents == items["segmentation_masks"].numpy().tolist()[::-1]
    assert items["labels"].numpy().tolist() == [0, 1] and len(source.paths) == 40


def test_channels_and_labels():
    assert Source(PIXELS, LABELS, NAMES).channels == (3,)
    assert Source(np.array(["a"] * 20), LABELS, NAMES, files=True).channels == (1, 3)
    Source(PIXELS, LABELS, NAMES).check_labels()
    Source(PIXELS, {}, NAMES).check_labels()  # none
    with pytest.raises(ValueError, match="1 outside"):
        Source(PIXELS, {"labels": np.where(np.arange(20) == 3, 2, LABELS["labels"])}, NAMES).check_labels()
    with pytest.raises(ValueError, match="20 images and 19 labels"):
        Source(PIXELS, {"labels": LABELS["labels"][1:]}, NAMES).check_labels()


@pytest.mark.parametrize("share", [0, 1])
def test_names_may_be_no_utf_8(share, paths, monkeypatch):
    monkeypatch.setattr(memory, "SHARE", share)
    other = os.fsdecode(os.fsencode(paths[3])[:-4] + b"\xff.png")
    os.rename(paths[3], other)
    source = Source(np.array([*paths[:3], other, *paths[4:]]), LABELS, NAMES, files=True)
    np.testing.assert_array_equal(images(source), PIXELS)
    assert source.fingerprint() != Source(np.array(paths), LABELS, NAMES, files=True).fingerprint()


def test_sizes_of_pixels_of_encoded_images_and_of_files(tmp_path):
    rng = np.random.default_rng(0)
    for i, sides in enumerate([(3, 5), (7, 2)]):
        Image.fromarray(rng.integers(0, 256, (*sides, 3), "uint8")).save(tmp_path / f"{i}.png")
    files = sorted(map(str, tmp_path.iterdir()))
    sizes = [(3, 5), (7, 2)]
    assert Source(np.array(files), {}, files=True).sizes() == [*zip(files, sizes)]
    encoded = np.array([pathlib.Path(file).read_bytes() for file in files], object)
    assert Source(encoded, {}).sizes() == [*zip(["image 0", "image 1"], sizes)]
    assert Source(np.zeros((4, 6, 9, 3), "uint8"), {}).sizes() == [("images", (6, 9))]


def test_classes_that_are_regions_are_kept_and_tell_data_apart():
    source = Source(PIXELS, LABELS, NAMES, stuff=("sky", "cafe\u0301"))
    assert source.stuff == ("sky", "caf\u00e9") == source.take([0, 1]).stuff
    assert source.fingerprint() != Source(PIXELS, LABELS, NAMES).fingerprint()
