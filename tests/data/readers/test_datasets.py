import dataclasses
import io

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf
from PIL import Image as Pillow

import keras_vit
from keras_vit import config
from keras_vit.config import Classify, Contrast, Data, Depth, Detect, Regress, Segment
from keras_vit.data import memory, sources
from keras_vit.data.readers.arrays import from_arrays
from tests.marks import slow
from tests.small import small

SHAPE = (8, 8, 1)
PIXELS = np.random.default_rng(0).integers(0, 256, (20, *SHAPE)).astype("uint8")
LABELS = np.arange(20) % 10
DIGITS = tuple("0123456789")


slices = tf.data.Dataset.from_tensor_slices


def rows(**columns):
    return slices(columns)


def augmented():
    return keras_vit.augment(slices((PIXELS, LABELS)).batch(4), config.Augment(flip=True))


def read(value, task=None, names=(), **options):
    task = Classify() if task is None else task
    return sources.of_caller(value, Data(**options), task, SHAPE, names, lambda: task.classes or DIGITS)


@dataclasses.dataclass
class Image:
    """As a feature of Hugging Face's library."""

    decode: bool = True


@dataclasses.dataclass
class ClassLabel:
    names: list


class HuggingFace:
    """As `datasets.Dataset`, with images as PNG files."""

    def __init__(self, features, columns, form=None):
        self.features = features
        self.columns = columns
        self.format = {"type": form}
        self.column_names = list(features)

    def with_format(self, form):
        return HuggingFace(self.features, self.columns, form)

    def select_columns(self, names):
        return HuggingFace({name: self.features[name] for name in names}, self.columns, self.format["type"])

    def cast_column(self, name, feature):
        return HuggingFace({**self.features, name: feature}, self.columns)

    def __len__(self):
        return 20

    def __getitem__(self, i):
        row = {name: self.columns[name][i] for name in self.features}
        assert not any(isinstance(feature, Image) and feature.decode for feature in self.features.values())
        return row


def hub(form=None, names=DIGITS):
    files = []
    for pixels in PIXELS:
        file = io.BytesIO()
        Pillow.fromarray(pixels[..., 0]).save(file, "PNG")
        files.append({"bytes": file.getvalue(), "path": None})
    features = {"picture": Image(), "fine": ClassLabel(list(names)), "text": object()}
    return HuggingFace(features, {"picture": files, "fine": LABELS.tolist(), "text": [None] * 20}, form)


def test_the_order_of_reading_does_not_matter():
    """Keras's issue 6234: what shuffles whenever it is read."""
    plain = slices((PIXELS, LABELS))
    named = rows(image=PIXELS, label=LABELS)
    found = [read(each) for each in (plain, plain.shuffle(20), named.batch(7), named.shuffle(20).batch(3))]
    assert len({source.fingerprint() for source in found}) == 1
    source = found[0]
    assert source.given and source.class_names == DIGITS and source.images.dtype == np.uint8
    pairs = {(pixels.tobytes(), int(label)) for pixels, label in zip(source.images, source.labels)}
    assert pairs == {(pixels.tobytes(), label) for pixels, label in zip(PIXELS, LABELS.tolist())}


def test_names_of_columns_and_of_classes():
    texts = np.array(["dog", "cat"])[LABELS % 2]
    assert read(rows(pixels=PIXELS, kind=texts), columns={"images": "pixels", "labels": "kind"}).class_names == (
        "cat",
        "dog",
    )
    given = read(rows(image=PIXELS, label=texts), names=("dog", "cat", "cow"))
    assert given.class_names == ("dog", "cat", "cow") and set(given.labels) == {0, 1}
    for form in (None, "torch"):
        source = read(hub(form, names="abcdefghij"))
        assert source.class_names == tuple("abcdefghij") and source.images.dtype == object and source.channels == (1, 3)
    one_hot = keras.utils.to_categorical(LABELS, 10)
    for labels in (one_hot, LABELS[:, None], LABELS.astype("float32"), LABELS.astype("uint8")):
        assert sorted(read(rows(image=PIXELS, label=labels)).labels) == sorted(LABELS)
    grouped = read(rows(image=PIXELS, label=LABELS, patient=LABELS % 3), columns={"groups": "patient"})
    assert len(set(grouped.groups)) == 3 and len(set(zip(grouped.groups, grouped.labels % 3))) == 3


@pytest.mark.parametrize(
    "value, message",
    [
        (lambda: rows(x=PIXELS, label=LABELS), r"images, such as 'image'. Name it: .*\{'images': 'COL.*'x', 'label'"),
        (lambda: rows(image=PIXELS), r"must have labels, such as 'label'"),
        (lambda: rows(image=PIXELS, label=LABELS).repeat(), "must have an end"),
        (lambda: rows(image=PIXELS, label=LABELS).take(0), "must have one example or more"),
        (lambda: rows(image=PIXELS / 255, label=LABELS), "multiply by 255"),
        (lambda: rows(image=PIXELS * np.nan, label=LABELS), "values from nan"),
        (lambda: rows(image=PIXELS, label=LABELS + 1), r"from 0 to 9. Received: 2 outside, such as \[10\]"),
        (lambda: rows(image=PIXELS, label=LABELS - 0.5), "must be a vector of integers"),
        (lambda: rows(image=PIXELS, label=np.ones((20, 10))), "must be one-hot, with 10 classes"),
        (lambda: rows(image=PIXELS, label=np.eye(20)), r"one-hot, with 10 classes. Received: shape=\(20, 20\)"),
        (lambda: rows(image=PIXELS, label=["x"] * 20), None),
        (lambda: slices((PIXELS, LABELS, LABELS)), r"must be \(image, label\). Received: 3"),
        (lambda: slices(PIXELS), r"must be \(image, label\). Received: 1"),
        (lambda: [{"image": PIXELS[0], "label": 1}, {"image": PIXELS[1]}], "same columns. .* 'image' in example 1"),
        (lambda: [{"image": PIXELS[0], "label": 1}, {"image": None, "label": 1}], "Example 1: An image must be"),
        (lambda: {"train": rows(image=PIXELS, label=LABELS)}, "Pass one split .* a dictionary of train"),
        (lambda: (each for each in []), "Received: generator"),
        (lambda: augmented(), "put the Augment into the recipe, `augment=`. Received: a dataset of `keras_vit"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_sentence(value, message):
    if message is None:
        with pytest.raises(ValueError, match="must be names of the classes, a, b. Received: 'x'"):
            read(value(), names=("a", "b"))
        return
    with pytest.raises(ValueError, match=message):
        read(value())


def test_what_does_not_fit_into_memory_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "total", lambda: 4 * 640)
    assert len(read(rows(image=PIXELS[:4], label=LABELS[:4]))) == 4
    with pytest.raises(ValueError, match="more than that in 5 examples. Save it as a folder of images, or as TFRecord"):
        read(rows(image=PIXELS, label=LABELS))


def test_a_missing_file_is_an_image_that_cannot_be_read(tmp_path):
    for i in range(3):
        keras.utils.save_img(tmp_path / f"{i}.png", PIXELS[i], scale=False)
    paths = [str(tmp_path / f"{i}.png") for i in (0, 7, 2)]
    listed = [{"image": path, "label": i} for i, path in enumerate(paths)]
    with pytest.raises(ValueError, match=r"1 of 3 images cannot be read(.|\n)*image 1 \(There is no file '.*7.png'\)"):
        read(listed)
    with pytest.warns(UserWarning, match="Left out 1 of 3 images"):
        assert sorted(read(listed, bad_images="skip").labels) == [0, 2]
    with pytest.raises(ValueError, match="Example 0: There is no file"):
        read([{"image": PIXELS[0], "mask": paths[1]}], Segment(classes=("a", "b")))


def test_other_targets():
    numbers = read(rows(image=PIXELS, age=LABELS / 2, size=LABELS), Regress(names=("age", "size"))).targets["numbers"]
    np.testing.assert_array_equal(numbers[:, 0] * 2, numbers[:, 1])
    assert read(rows(image=PIXELS, numbers=LABELS), Regress(names=("age",))).targets["numbers"].shape == (20, 1)
    both = read(rows(image=PIXELS, age=LABELS, number=LABELS + 1000), Regress(names=("age",)))
    assert both.targets["numbers"].max() < 1000  # the task's own name comes first
    with pytest.raises(ValueError, match="must have the column 'age'"):
        read(rows(image=PIXELS, years=LABELS), Regress(names=("age",)))
    with pytest.raises(ValueError, match="must be finite"):
        read(rows(image=PIXELS, age=LABELS * np.nan), Regress(names=("age",)))
    masks = read(rows(image=PIXELS, mask=PIXELS % 2), Segment(classes=("a", "b"))).targets["segmentation_masks"]
    assert masks.shape == (20, *SHAPE) and masks.max() == 1
    depth = PIXELS[..., 0] + 0.5
    for column in (depth, depth[..., None]):
        np.testing.assert_array_equal(
            np.sort(read(rows(image=PIXELS, depth=column), Depth()).targets["depths"].ravel()), np.sort(depth.ravel())
        )
    with pytest.raises(ValueError, match="Example 0: Depth must be finite and at least 0"):
        read(rows(image=PIXELS, depth=-depth), Depth())
    boxes = [{"image": PIXELS[i], "boxes": [[0, 0, 0.5, 0.5, 1]] * i} for i in range(3)]
    found = read(boxes, Detect(classes=("a", "b"))).targets["bounding_boxes"]
    assert found.shape == (3, 2, 5) and sorted((found[..., 4] >= 0).sum(1)) == [0, 1, 2]
    for value, message in (
        ([0.1, 0.2], "must have the shape"),
        ({"boxes": [], "labels": []}, "need their format, such as 'xywh' in pixels.* Received: no format"),
    ):
        with pytest.raises(ValueError, match=message):
            read([{"image": PIXELS[0], "boxes": value}], Detect(classes=("a", "b")))


def test_texts_of_one_image_belong_together():
    few = [{"image": PIXELS[i // 2], "caption": f"a;{i}"} for i in range(4)]
    found = read(few, Contrast(), columns={"texts": {"names": ["caption"], "separator": ";"}})
    assert sorted(found.targets["texts"]) == [("a", str(i)) for i in range(4)]
    assert sorted(np.unique(found.groups, return_counts=True)[1]) == [2, 2]
    arrays = from_arrays((PIXELS[[0, 0, 1]], ["a", "b", "c"]), ("texts",), (*SHAPE, 1))
    assert arrays.groups[0] == arrays.groups[1] != arrays.groups[2]
    with pytest.raises(ValueError, match="Example 0: 'caption' is empty"):
        read([{"image": PIXELS[0], "caption": None}], Contrast())


def test_names_are_read_as_in_a_table():
    texts = ["yes", " yes ", ["yes"], np.array([b"no"])]
    assert read([{"image": PIXELS[0], "label": text} for text in texts]).class_names == ("no", "yes")
    for labels, message in (
        ([["yes", "no"], "no"], r"Example 0: it must have one label. Received: \['yes', 'no'\]"),
        (["yes", 2], "Labels must be all names or all numbers. Received: 2 along with names"),
        (["yes", "nan"], "Example 1: 'label' must be the name of a class, not of a missing value"),
    ):
        with pytest.raises(ValueError, match=message):
            read([{"image": PIXELS[0], "label": label} for label in labels])


def test_boxes_in_dictionaries():
    boxes, kinds = np.float32([[2, 0, 4, 8], [0, 0, 8, 4]]), np.array([1, 0])
    expected = [[0, 0.25, 1, 0.75, 1], [0, 0, 0.5, 1, 0]]
    inside = {"boxes": np.stack([boxes] * 20), "classes": np.stack([kinds] * 20)}
    one_a_box = [{"bbox": box, "category": kind} for box, kind in zip(boxes.tolist(), kinds.tolist())]
    listed = [{"image": PIXELS[i], "objects": one_a_box if i else []} for i in range(3)]
    columns = lambda name: {"bounding_boxes": {"column": name, "format": "xywh"}}  # noqa: E731
    for value, name in (
        (rows(image=PIXELS, bounding_boxes=inside), "bounding_boxes"),  # as in KerasCV
        (rows(image=PIXELS, bounding_boxes=inside).batch(3), "bounding_boxes"),
        (listed, "objects"),  # as in Hugging Face's sets
        ([{**row, "objects": {"bbox": boxes.tolist(), "category": [1, 0]}} for row in listed], "objects"),
    ):
        found = read(value, Detect(classes=("a", "b")), columns=columns(name)).targets["bounding_boxes"]
        full = found[(found[..., 4] >= 0).all(1)]
        np.testing.assert_allclose(full, np.tile(expected, (len(full), 1, 1)))
        assert len(found) - len(full) == (name == "objects" and value is listed)
    ragged = tf.ragged.constant([[[0, 0, 0.5, 0.5, 1]], [[0, 0, 0.5, 0.5, 0], [0, 0, 1, 1, 1]]], inner_shape=(5,))
    for dataset in (
        slices({"image": PIXELS[:2], "boxes": ragged}),
        slices({"image": PIXELS[:2], "boxes": ragged}).batch(2),
    ):
        assert read(dataset, Detect(classes=("a", "b"))).targets["bounding_boxes"].shape == (2, 2, 5)
    crowd = [{"image": PIXELS[0], "objects": [{**one_a_box[0], "iscrowd": 1}, one_a_box[1]]}]
    found = read(crowd, Detect(classes=("a", "b")), columns=columns("objects")).targets["bounding_boxes"]
    assert found[0, :, 4].tolist() == [-3, 0]
    with pytest.raises(ValueError, match="must be one of 'xyxy'.* Received: 'coco'"):
        read(listed, Detect(classes=("a", "b")), columns={"bounding_boxes": {"column": "objects", "format": "coco"}})


@slow
def test_a_run_on_a_dataset_is_resumed(tmp_path, eagerly):
    recipe, dataset = (
        config.override(small(), {"optim.epochs": 2, "data.batch_size": 10}),
        rows(image=PIXELS, label=LABELS),
    )

    class Stop(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                raise KeyboardInterrupt

    def fit(folder, **more):
        return keras_vit.fit(
            recipe, folder, train=dataset.shuffle(20), validation=dataset.shuffle(20), verbose=0, **more
        )

    whole, _ = fit(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path / "stopped", callbacks=[Stop()])
    resumed, _ = fit(tmp_path / "stopped")
    for one, other in zip(whole.get_weights(), resumed.get_weights()):
        np.testing.assert_array_equal(one, other)
    run = tmp_path / "stopped"
    measured = [keras_vit.evaluate(run, arrays=each) for each in (dataset, dataset.batch(6), (PIXELS, LABELS))]
    assert measured[0] == measured[1] == measured[2]
    other = rows(image=255 - PIXELS, label=LABELS)
    with pytest.raises(ValueError, match="on other data"):
        keras_vit.fit(recipe, run, train=other, validation=other, verbose=0)
    with pytest.raises(ValueError, match="was trained on arrays or a dataset"):
        keras_vit.evaluate(run)
    larger = rows(image=PIXELS.repeat(2, 1), label=LABELS)  # resized as in training; a file alone does not say how
    assert keras_vit.evaluate(run, arrays=larger)
    (run / "model.keras").rename(tmp_path / "alone.keras")
    with pytest.raises(ValueError, match=r"takes images of \(8, 8\). Received: images of \(16, 8\)"):
        keras_vit.evaluate(tmp_path / "alone.keras", arrays=larger)
