import warnings

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.config import Classify, Data, Detect, Recipe, Segment
from keras_vit.data.memory import Source
from keras_vit.data.sources import load
from keras_vit.training import splits

RNG = np.random.default_rng(0)


def said(task, train, validation, **data):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        splits.warn_of(task, Recipe(name="r", model={}, data=Data(**data)), train, validation)
    return [str(one.message) for one in caught]


def source(name, values, **more):
    return Source(RNG.integers(0, 256, (4, 8, 8, 3)).astype("uint8"), {name: np.array(values)}, tuple("abc"), **more)


def boxes(*classes):
    return np.array([[[0, 0, 1, 1, kind]] for kind in classes], "float32")


def masks(*classes):
    return np.stack([np.full((8, 8, 1), kind, "uint8") for kind in classes])


KINDS = {
    "labels": (Classify(classes=tuple("abc")), [0, 1, 2, 0], [0, 2, 2, 0]),
    "bounding_boxes": (Detect(classes=tuple("abc")), boxes(0, 1, 2, -1), boxes(0, -3, 2, -1)),
    "segmentation_masks": (Segment(classes=tuple("abc"), first=1), masks(1, 2, 3, 255), masks(1, 1, 3, 0)),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_class_that_a_split_lacks_is_named(name):
    task, full, lacking = KINDS[name]
    full, lacking = source(name, full), source(name, lacking)
    assert said(task, full, source(name, full.targets[name])) == []
    (text,) = said(task, lacking, full)
    assert text == "No training image is of 1 of 3 classes, which the model cannot learn: 'b'."
    (text,) = said(task, full, lacking)
    assert text == "No validation image is of 1 of 3 classes, of which the scores say nothing: 'b'."
    assert (
        len(said(task, lacking, source(name, lacking.targets[name]))) == 1
    )  # what is not learned need not be measured


def test_groups_of_both_splits_are_told():
    task, values = Classify(classes=tuple("abc")), [0, 1, 2, 0]
    one = source("labels", values, groups=np.array([1, 1, 2, 3]))
    other = source("labels", values, groups=np.array([3, 4, 4, 2]))
    apart = source("labels", values, groups=np.array([5, 6, 6, 6]))
    (text,) = said(task, one, other, source="folder:x", columns={"groups": "patient"})
    assert "2 of the 3 groups of the validation examples are in the training examples too" in text
    assert said(task, one, apart, source="folder:x", columns={"groups": "patient"}) == []
    assert said(task, one, other) == []  # of texts in two tables, whose files have the same names
    given = source("labels", values, groups=np.array([1, 1, 2, 3]), given=True)
    assert len(said(task, given, other)) == 1


def test_nothing_is_counted_of_what_stays_in_files():
    class Stream:
        targets = ("labels",)
        groups = None

    assert splits.class_counts(Classify(classes=("a", "b")), Stream()) is None


def pixels(*values):
    return np.stack([np.full((4, 4, 3), value, "uint8") for value in values])


def test_images_of_both_splits_are_told(tmp_path):
    task = Classify(classes=("a", "b"))
    make = lambda images, **more: Source(images, {"labels": np.arange(len(images)) % 2}, ("a", "b"), **more)  # noqa: E731
    train = make(pixels(*range(100)))
    assert said(task, train, make(pixels(*range(100, 104)))) == []
    assert said(task, train, make(pixels(*range(100, 250), 1))) == []  # data sets have a few equal pictures
    (text,) = said(task, train, make(pixels(98, 99, 100, 101)))
    assert "2 of 4 validation examples are training examples too" in text
    encoded = lambda *values: np.array([bytes([value]) for value in values], object)  # noqa: E731
    assert "1 of 2 validation examples" in said(task, make(encoded(1, 2)), make(encoded(2, 3)))[0]


@pytest.mark.parametrize("overlap", ["parts", "copies"])
def test_files_of_both_splits_are_told(tmp_path, overlap):
    for split in ("train", "val"):
        for i in range(10):
            file = tmp_path / split / "ab"[i % 2] / f"{split}{i}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            seed = i if overlap == "copies" and i < 3 else hash((split, i)) % 2**32
            Image.fromarray(np.random.default_rng(seed).integers(0, 256, (8, 8, 3)).astype("uint8")).save(file)
    parts = ("train[:80%]", "train[60%:]") if overlap == "parts" else ("train", "val")
    data = Data(source=f"folder:{tmp_path}", train=parts[0], validation=parts[1])
    sources = [load(data, split) for split in parts]
    (text,) = said(Classify(classes=("a", "b")), *sources)
    assert text.startswith("2 of 4" if overlap == "parts" else "3 of 10") and "are training examples too" in text
