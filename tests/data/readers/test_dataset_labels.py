import dataclasses

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from keras_vit.config import Classify, Regress
from tests.data.readers.test_datasets import LABELS, PIXELS, ClassLabel, HuggingFace, Image, hub, read, rows


@dataclasses.dataclass
class Sequence:
    feature: object


def test_several_labels():
    task = Classify(multilabel=True, classes=("a", "b", "c"))
    several = np.stack([LABELS % 2, LABELS % 3 == 0, LABELS > 4], 1)
    source = read(rows(image=PIXELS, labels=several.astype("float32")), task)
    assert source.targets["multilabels"].dtype == np.int8 and source.class_names == ("a", "b", "c")
    known = {pixels.tobytes(): labels for pixels, labels in zip(PIXELS, several.tolist())}
    for images, labels in zip(source.images, source.targets["multilabels"].tolist()):
        assert labels == known[images.tobytes()]
    names = [[name for name, has in zip("cab", row) if has] for row in several]
    found = read([{"image": x, "tags": y} for x, y in zip(PIXELS, names)], Classify(multilabel=True))
    assert found.class_names == ("a", "b", "c")
    hub_of = HuggingFace(
        {"image": Image(), "labels": Sequence(ClassLabel(["x", "y", "z"]))},
        {"image": hub().columns["picture"], "labels": [np.flatnonzero(row).tolist() for row in several]},
    )
    read_of = read(hub_of, Classify(multilabel=True))
    assert read_of.class_names == ("x", "y", "z")
    assert sorted(read_of.targets["multilabels"].tolist()) == sorted(several.astype(int).tolist())
    hub_of.columns["labels"][0] = None
    hub_of.columns["labels"][1] = [0, -1]
    with pytest.raises(ValueError, match="class indices from 0 to 2. Received: -1"):
        read(hub_of, Classify(multilabel=True))
    with pytest.raises(ValueError, match="Each image must have a label. Received: None"):
        read([{"image": PIXELS[0], "label": None}, {"image": PIXELS[1], "label": "a"}], names=("a", "b"))
    with pytest.raises(ValueError, match="names of the classes, a, b, c. Received: 'd'"):
        read([{"image": PIXELS[0], "tags": ["a", "d"]}], task, task.classes)


def listed(**columns):
    """Returns a dictionary for each example."""
    return [{"image": PIXELS[i], **dict(zip(columns, row))} for i, row in enumerate(zip(*columns.values()))]


def labels_of(dataset, columns=None, task=None):
    """Returns the names of the classes, and several labels in the order of the dataset."""
    task = task or Classify(multilabel=True)
    source = read(dataset, task, task.classes, columns=columns)
    places = {image.tobytes(): i for i, image in enumerate(source.images)}
    order = [places[image.tobytes()] for image in PIXELS if image.tobytes() in places]
    return source.class_names, source.targets["multilabels"][order].tolist()


def test_several_names_in_a_text_are_read_as_in_a_table():
    expected = ("cat", "dog"), [[1, 1], [1, 0], [0, 1], [0, 0]]
    for separator in ";,":
        tags = [f"cat{separator}dog", "cat", "dog", ""]
        columns = {"multilabels": {"names": "tags", "separator": separator}}
        four = rows(image=PIXELS[:4], tags=tags)
        for dataset in (listed(tags=tags), listed(tags=[*tags[:3], None]), four, four.batch(3)):
            assert labels_of(dataset, columns) == expected
            if separator == ";":
                assert labels_of(dataset) == expected
            else:
                with pytest.raises(ValueError, match="'cat,dog' looks like several"):
                    labels_of(dataset)
    assert labels_of(listed(tags=[["cat", "dog"], ["cat"], ["dog"], []])) == expected
    with pytest.raises(ValueError, match="separator of names must be a text. Received: separator=''"):
        labels_of(listed(tags=tags), {"multilabels": {"names": "tags", "separator": ""}})


def test_a_column_for_each_class_is_read_as_in_a_table():
    columns = {"multilabels": ["cat", "dog"]}
    words, numbers = (["yes", "no", "", "yes"], ["No", "yes", "yes", "no"]), ([1, 0, -1, 1], [0, 1, 1, 0])
    for cat, dog in (words, numbers, np.float32(numbers)):
        for dataset in (listed(cat=cat, dog=dog), rows(image=PIXELS[:4], cat=cat, dog=dog)):
            assert labels_of(dataset, columns) == (("cat", "dog"), [[1, 0], [0, 1], [-1, 1], [1, 0]])
    task = Classify(multilabel=True, classes=("dog", "cat"))
    with pytest.raises(ValueError, match="`classes` must be the data's"):
        task.on(read(listed(cat=numbers[0], dog=numbers[1]), task, task.classes, columns=columns))
    with pytest.raises(ValueError, match="Example 1: 'dog' must be 0 or 1, yes or no.* Received: 'maybe'"):
        labels_of(listed(cat=["yes", "no"], dog=["no", "maybe"]), columns)


@pytest.mark.parametrize("values", [[[0], [1], [0, 1], []], [[], [0], [0, 1]], [[0], [0], None]])
def test_indices_without_their_type_are_refused(values):
    files = hub().columns["picture"]
    dataset = HuggingFace({"image": Image(), "labels": Sequence(int)}, {"image": files, "labels": values * 7})
    with pytest.raises(
        ValueError, match=r"need the type ClassLabel. Received: \[.*\] in example [12], and \[.*\] in example 0"
    ):
        labels_of(dataset, task=Classify(multilabel=True, classes=("a", "b")))


def test_ragged_numbers_are_refused():
    task = Regress(names=("x", "y"))
    with pytest.raises(
        ValueError, match=r"Received: \[1.0, \[2.0, 3.0\]\] in example 1, and \[1.0, 2.0\] in example 0"
    ):
        read(listed(x=[1.0, 1.0], y=[2.0, [2.0, 3.0]]), task)
    with pytest.raises(ValueError, match=r"Received: \[1, 2, 3\] in example 1, and \[1, 2\] in example 0"):
        read(listed(numbers=[[1, 2], [1, 2, 3]]), task)
    assert read(listed(numbers=[(1, 2), [3, 4]]), task).targets["numbers"].shape == (2, 2)
    task = Classify(multilabel=True, classes=("a", "b"))
    assert labels_of(listed(labels=[(1, 0), [0, 1]]), task=task) == (("a", "b"), [[1, 0], [0, 1]])


def test_batches_of_gray_images_need_their_channel_axis_where_they_may_be_images():
    gray = tf.data.Dataset.from_tensor_slices((PIXELS[..., 0], np.eye(10)[LABELS]))
    assert sorted(read(gray).labels) == sorted(LABELS)
    for batch, said in ((4, r"labels of the shape \(4, 10\)"), (6, r"shape=\(6, 8, 8\)")):
        with pytest.raises(ValueError, match=rf"channel axis, \(batch, height, width, 1\). Received: {said}"):
            read(gray.batch(batch))


def test_a_vector_that_is_not_one_hot_is_shown():
    vectors = np.eye(10)[LABELS]
    for wrong, said in ((1.0, "classes. Received: .*the sum 2"), (0.5, "classes: augment.mixup of .*the sum 1.5")):
        vectors[7, 0] = wrong
        with pytest.raises(ValueError, match=f"must be one-hot, with 10 {said}"):
            read(rows(image=PIXELS, label=vectors))
