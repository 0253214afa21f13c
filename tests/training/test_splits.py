import warnings

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.config import Classify, Data, Detect, Recipe, Segment
from keras_vit.data.memory import Source
from keras_vit.training import splits

IMAGES = np.zeros((4, 8, 8, 3), "uint8")


def said(task, train, validation, **data):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        splits.warn_of(task, Recipe(name="r", model={}, data=Data(**data)), train, validation)
    return [str(one.message) for one in caught]


def source(name, values, **more):
    return Source(IMAGES, {name: np.array(values)}, tuple("abc"), **more)


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
    assert said(task, full, full) == []
    (text,) = said(task, lacking, full)
    assert text == "No training image is of 1 of 3 classes, which the model cannot learn: 'b'."
    (text,) = said(task, full, lacking)
    assert text == "No validation image is of 1 of 3 classes, of which the scores say nothing: 'b'."
    assert len(said(task, lacking, lacking)) == 1  # what is not learned need not be measured


def test_groups_of_both_splits_are_told():
    task, values = Classify(classes=tuple("abc")), [0, 1, 2, 0]
    one = source("labels", values, groups=np.array([1, 1, 2, 3]))
    other = source("labels", values, groups=np.array([3, 4, 4, 2]))
    apart = source("labels", values, groups=np.array([5, 6, 6, 6]))
    (text,) = said(task, one, other, source="folder:x", columns={"groups": "patient"})
    assert "2 of the 3 groups of the validation images are in the training images too" in text
    assert said(task, one, apart, source="folder:x", columns={"groups": "patient"}) == []
    assert said(task, one, other) == []  # of texts in two tables, whose files have the same names
    given = source("labels", values, groups=np.array([1, 1, 2, 3]), given=True)
    assert len(said(task, given, other)) == 1


def test_nothing_is_counted_of_what_stays_in_files():
    class Stream:
        targets = ("labels",)
        groups = None

    assert splits.class_counts(Classify(classes=("a", "b")), Stream()) is None
