import os

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

from keras_vit.data.readers import examples

PIXELS = np.arange(6 * 2 * 3, dtype="uint8").reshape(6, 2, 3, 1)
LABELS = np.arange(6)


class Batches(keras.utils.PyDataset):
    """Batches of two, without an end if `count` is `None`."""

    def __init__(self, count=3):
        super().__init__()
        self.count = count

    @property
    def num_batches(self):
        return self.count

    def __getitem__(self, i):
        return PIXELS[2 * i : 2 * i + 2], LABELS[2 * i : 2 * i + 2]


class Indexed:
    """As a dataset of PyTorch."""

    def __len__(self):
        return 6

    def __getitem__(self, i):
        return PIXELS[i], int(LABELS[i])


def test_every_kind_gives_its_examples_one_by_one():
    tuples, table = tf.data.Dataset.from_tensor_slices((PIXELS, LABELS)), {"image": PIXELS, "label": LABELS}
    named = tf.data.Dataset.from_tensor_slices(table)
    ragged = tf.data.Dataset.from_generator(
        lambda: zip(PIXELS, LABELS),
        output_signature=(tf.TensorSpec((None, None, 1), "uint8"), tf.TensorSpec((), "int64")),
    )
    rows = [{"image": pixels, "label": label} for pixels, label in zip(PIXELS, LABELS)]
    encoded = named.map(lambda row: {**row, "image": tf.io.encode_png(row["image"])})
    for dataset in (
        tuples, named, tuples.batch(4), named.batch(3, drop_remainder=True), ragged, ragged.ragged_batch(4),
        encoded, encoded.batch(4), Batches(), Indexed(), rows,
    ):  # fmt: skip
        assert examples.is_dataset(dataset)
        found = list(examples.examples(dataset, "image" if examples.header(dataset) else None))
        pairs = [(row["image"], row["label"]) if isinstance(row, dict) else row for row in found]
        assert [int(label) for _, label in pairs] == LABELS.tolist()
        for image, pixels in zip(pairs, PIXELS):
            assert isinstance(image[0], bytes) or np.array_equal(np.asarray(image[0]), pixels)
    assert examples.header(named) == ("image", "label") == examples.header(rows) and examples.header(tuples) is None


def test_gray_images_without_a_channel_axis():
    """As MNIST is in Keras."""
    pixels, vectors = np.arange(6 * 8 * 9, dtype="uint8").reshape(6, 8, 9), np.eye(6, dtype="int64")
    slices = tf.data.Dataset.from_tensor_slices
    plain, named = slices((pixels, LABELS)), slices({"image": pixels, "label": LABELS})
    for dataset in (plain, named, plain.batch(4), named.batch(3, drop_remainder=True), slices((pixels, vectors))):
        found = list(examples.examples(dataset, "image" if examples.header(dataset) else None))
        pairs = [tuple(row.values()) if isinstance(row, dict) else row for row in found]
        assert [int(np.argmax(label)) if np.ndim(label) else int(label) for _, label in pairs] == LABELS.tolist()
        np.testing.assert_array_equal([image for image, _ in pairs], pixels)
    for image, label in ((PIXELS[0], LABELS[:2]), (pixels, 1), (pixels, LABELS[:5])):  # not clearly a batch
        for dataset in (slices((image[None], np.array(label)[None])), [{"image": image, "label": label}]):
            (found,) = examples.examples(dataset, "image" if isinstance(dataset, list) else None)
            assert np.array_equal(found["image"] if isinstance(found, dict) else found[0], image)


def test_what_is_no_dataset():
    for value in (
        PIXELS,
        (PIXELS, LABELS),
        [PIXELS, LABELS],
        "text",
        None,
        iter([1]),
        {"image": PIXELS},
        [],
        os.environ,
    ):
        assert not examples.is_dataset(value)


class Streamed:
    """As `datasets.IterableDataset.from_generator`, which states neither features nor columns."""

    features = column_names = None

    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        return iter(self.rows)

    def select_columns(self, names):
        return Streamed([{name: row[name] for name in names} for row in self.rows])


def test_a_stream_without_features_says_its_columns_by_its_first_example():
    rows = [{"image": pixels, "label": label, "text": ""} for pixels, label in zip(PIXELS, LABELS)]
    assert examples.header(Streamed(rows)) == ("image", "label", "text")
    assert examples.only(Streamed(rows), "images") is None and examples.class_names(Streamed(rows), "label") == ()
    found = list(examples.examples(Streamed(rows), "image", ("image", "label")))
    assert [row["label"] for row in found] == LABELS.tolist() and "text" not in found[0]
    for wrong, said in (([], "an empty dataset"), ([PIXELS[0]], "a ndarray as the first example")):
        with pytest.raises(ValueError, match=f"must have examples, dictionaries. Received: {said}"):
            examples.header(Streamed(wrong))


def test_what_has_no_end_is_refused():
    endless = tf.data.Dataset.from_tensor_slices((PIXELS, LABELS)).repeat()
    for dataset in (endless, endless.batch(2), Batches(None)):
        with pytest.raises(ValueError, match="A dataset must have an end: a run shuffles and repeats it"):
            list(examples.examples(dataset, None))
    assert len(list(examples.examples(endless.take(9), None))) == 9


def test_names_of_classes(tmp_path):
    for i, name in enumerate("ba"):
        (tmp_path / name).mkdir()
        keras.utils.save_img(tmp_path / name / "1.png", PIXELS[i])
    dataset = keras.utils.image_dataset_from_directory(tmp_path, image_size=(2, 3), verbose=0)
    assert examples.class_names(dataset, None) == ("a", "b")
    assert examples.class_names(dataset.map(lambda *pair: pair), None) == ()  # Keras's issue 16577
    Indexed.classes = ["x", "y"]
    assert examples.class_names(Indexed(), None) == ("x", "y")
    Indexed.classes = LABELS.tolist()  # not names
    assert examples.class_names(Indexed(), None) == ()
    del Indexed.classes


@pytest.mark.parametrize("error", [KeyError("image"), StopIteration(), RuntimeError("a\nb"), IndexError()])
@pytest.mark.parametrize("kind", ["indexed", "batches", "stream", "generator"])
def test_a_dataset_that_raises_is_named_with_the_place(kind, error):
    class Raising(Indexed):
        def __getitem__(self, i):
            if i == 4:
                raise error
            return super().__getitem__(i)

    class Broken(Batches):
        def __getitem__(self, i):
            if i == 2:
                raise error
            return super().__getitem__(i)

    class Stream:
        features = column_names = {}

        def __iter__(self):
            return (Raising()[i] for i in range(6))

        def select_columns(self, columns):
            return self

    def generate():
        yield from Stream()

    shapes = (tf.TensorSpec((2, 3, 1), "uint8"), tf.TensorSpec((), "int64"))
    made = {"indexed": Raising, "batches": Broken, "stream": Stream}
    made["generator"] = lambda: tf.data.Dataset.from_generator(generate, output_signature=shapes)
    dataset = made[kind]()
    with pytest.raises(ValueError, match=r"must give each of its examples. Received: \w+ at element [024]: ."):
        list(examples.examples(dataset, None))
