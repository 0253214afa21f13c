import dataclasses
import itertools
import os
import shutil

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.config import Augment, Classify, Data, Optim, Recipe  # noqa: E402
from keras_vit.data import memory, pipeline, sources  # noqa: E402
from keras_vit.data.readers import records  # noqa: E402
from tests.marks import few, slow  # noqa: E402

COUNTS = (9, 1, 30, 20, 13)  # records of each file
SIZE = (4, 4, 3)
LETTERS, DIGITS = Classify(classes=("a", "b", "c")), Classify(classes=tuple("0123456789"))
RECIPE = Recipe(name="x", model={}, task=LETTERS, data=Data(batch_size=8), optim=Optim(epochs=3), seed=7)


def write(path, numbers, label=lambda number: number % 3):
    """Writes images of one color each, their number."""
    with tf.io.TFRecordWriter(str(path)) as file:
        for number in numbers:
            image = tf.io.encode_png(tf.fill(SIZE, tf.cast(number, tf.uint8))).numpy()
            features = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label(number)])),
                "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"unread"])),
            }
            file.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, number = tmp_path_factory.mktemp("records"), itertools.count()
    return [write(folder / f"{i}", list(itertools.islice(number, count))) for i, count in enumerate(COUNTS)]


@pytest.fixture
def stream(files):
    pieces = [(path, 0, count) for path, count in zip(files, COUNTS)]
    return records.Stream.of(pieces, ("a", "b", "c"), num_bytes=10_000)


def numbers(dataset):
    return [images[:, 0, 0, 0].astype(int).tolist() for images, _ in dataset.as_numpy_iterator()]


def training(source, recipe=RECIPE, **settings):
    return numbers(pipeline.training_batches(source, recipe, SIZE, **settings))


def test_evaluation_sees_every_record_in_order_with_its_label(stream):
    assert len(stream) == 73
    found = list(pipeline.evaluation_batches(stream, RECIPE, SIZE).as_numpy_iterator())
    images, labels = (np.concatenate(parts) for parts in zip(*found))
    np.testing.assert_array_equal(images[:, 0, 0, 0], np.arange(73))
    np.testing.assert_array_equal(labels.argmax(1), np.arange(73) % 3)
    np.testing.assert_array_equal(stream.labels, np.arange(73) % 3)


def test_an_epoch_sees_each_record_at_most_once_in_full_batches(stream):
    whole = training(stream, first_epoch=0)
    epochs = [whole[:9], whole[9:18], whole[18:]]
    for epoch in epochs:
        assert [len(batch) for batch in epoch] == [8] * 9
        assert len(set(itertools.chain(*epoch))) == 72
    assert epochs[0] != epochs[1] != epochs[2]
    assert len(training(stream)) == 9 and training(stream) == training(stream)


@few(1)
@pytest.mark.parametrize("buffer", [1, 10])
def test_the_order_is_a_function_of_seed_and_epoch(stream, buffer, monkeypatch):
    monkeypatch.setattr(records, "FILES", 3)
    monkeypatch.setattr(records, "RUN", 2)
    stream = dataclasses.replace(stream, buffer=buffer)
    tf.random.set_seed(1)
    whole = training(stream, first_epoch=0)
    tf.random.set_seed(0)
    assert training(stream, first_epoch=0) == whole
    assert training(stream, first_epoch=1, first_step=4) == whole[13:]
    other = Recipe(**{**vars(RECIPE), "seed": 8})
    assert training(stream, other, first_epoch=0) != whole
    if buffer == 1:  # files change places, and three are read in turn
        assert sorted(whole[0]) != whole[0] and any(b - a == 1 for a, b in itertools.pairwise(whole[0]))


def test_records_are_well_mixed(stream):
    number = {record: i for i, record in enumerate(next(iter(stream.in_order(73))).numpy())}
    orders = tf.data.Dataset.range(60).flat_map(lambda epoch: stream.shuffled(3, epoch, 73)).as_numpy_iterator()
    places = [[number[record] for record in order] for order in orders]
    places = np.argsort(places, axis=1)  # of each record, in each order
    assert np.abs(places.mean(axis=0) - 36).max() < 4.5 * 21 / np.sqrt(60)
    assert np.abs(np.corrcoef(places)[np.triu_indices(60, 1)]).max() < 0.6


@slow
def test_augmentation_is_by_position_and_shares_make_up_the_batch(stream, monkeypatch):
    everything = Augment(crop="inception", flip=True, jitter=0.2, rotation=20.0)
    recipe = Recipe(**{**vars(RECIPE), "augment": everything})

    def as_arrays(dataset):
        return [tuple(part.numpy() for part in batch) for batch in dataset]

    make = lambda **s: as_arrays(pipeline.training_batches(stream, recipe, (8, 8, 3), first_epoch=1, **s))  # noqa: E731
    whole, halves = make(), [make(share=(index, 2)) for index in range(2)]
    for part in range(2):
        for both, one, two in zip(whole, *halves):
            np.testing.assert_array_equal(both[part], np.concatenate([one[part], two[part]]))
    monkeypatch.setattr(pipeline, "CHUNK", 2 * 8 * 8 * 3)
    for one, two in zip(whole, make(), strict=True):
        np.testing.assert_array_equal(one[0], two[0])


def test_parts_of_files_are_read(files):
    stream = records.Stream.of([(files[2], 5, 10), (files[3], 18, 2)], ("a", "b", "c"), 1)
    assert numbers(pipeline.evaluation_batches(stream, RECIPE, SIZE)) == [[*range(15, 23)], [23, 24, 58, 59]]
    assert sorted(itertools.chain(*training(stream))) in (sorted(s) for s in itertools.combinations(
        [*range(15, 25), 58, 59], 8))  # fmt: skip


@few(2)
@pytest.mark.parametrize("index", [slice(8), slice(9), slice(9, 11), slice(-5, None), slice(30, 1000), slice(0, 0)])
def test_slices_are_as_of_a_list(stream, index):
    part = stream.take(index)
    assert len(part) == len(range(73)[index])
    if len(part):
        found = itertools.chain(*numbers(pipeline.evaluation_batches(part, RECIPE, SIZE)))
        assert list(found) == list(range(73))[index]
    for bad in ([1, 2], slice(0, 8, 2)):
        with pytest.raises(TypeError, match="must be cut by a slice without step. Received"):
            stream.take(bad)


def test_the_fingerprint_is_of_what_is_read(stream, files, tmp_path):
    assert stream.fingerprint() == dataclasses.replace(stream, buffer=1).fingerprint()
    moved = [(shutil.copy(path, tmp_path), 0, count) for path, count in zip(files, COUNTS)]
    assert records.Stream.of(moved, ("a", "b", "c"), 1).fingerprint() == stream.fingerprint()
    others = [
        stream.take(slice(72)),
        dataclasses.replace(stream, class_names=("a", "b", "d")),
        dataclasses.replace(stream, pieces=stream.pieces[::-1]),
    ]
    assert len({other.fingerprint() for other in [stream, *others]}) == 4


def test_labels_outside_the_classes_are_refused(files, tmp_path):
    early = records.Stream.of([(write(tmp_path / "0", range(20), lambda n: n - 1), 0, 20)], ("a", "b", "c"), 1)
    with pytest.raises(ValueError, match=r"0 to 2. Received: 17 outside, such as \[-1, 3, 4"):
        early.check_labels()
    late = records.Stream.of([(write(tmp_path / "1", range(99), lambda n: n // 90 * 3), 0, 99)], ("a", "b", "c"), 1)
    late.check_labels()
    with pytest.raises(tf.errors.InvalidArgumentError, match="a label is outside the 3 classes"):
        numbers(pipeline.evaluation_batches(late, RECIPE, SIZE))
    extra = dataclasses.replace(late, labeled=False)  # a task that only looks at labels where there are some
    assert next(pipeline.evaluation_arrays(extra, RECIPE, SIZE))["labels"].tolist() == [0] * 8
    assert sum((batch["labels"] == 3).sum() for batch in pipeline.evaluation_arrays(extra, RECIPE, SIZE)) == 9


def test_a_model_of_other_channels_is_refused(stream):
    assert sources.check_channels(stream, (9, 9, 1)) is stream
    with pytest.raises(ValueError, match="as the images, 1 or 3. Received: 4 channels"):
        sources.check_channels(stream, (4, 4, 4))


def test_the_buffer_holds_so_many_bytes():
    pieces = [("a", 0, 1000)]
    assert records.Stream.of(pieces, (), records.BUFFER / 2).buffer == 1000
    assert records.Stream.of(pieces, (), records.BUFFER * 4).buffer == 250
    assert records.Stream.of(pieces, (), records.BUFFER * 4000).buffer == 1
    assert len(records.Stream.of([], (), 0)) == 0


@slow
@pytest.mark.skipif("TFDS_DATA_DIR" not in os.environ, reason="TFDS_DATA_DIR is not set")
def test_real_mnist_streamed_is_mnist_in_memory(monkeypatch):
    mnist = Data(source="tfds:mnist", batch_size=100)
    recipe = Recipe(name="x", model={}, task=DIGITS, data=mnist, optim=Optim(epochs=1))
    held = sources.load(recipe.data, "test[1%:12%]")
    monkeypatch.setattr(memory, "SHARE", 0)
    stream = sources.load(recipe.data, "test[1%:12%]")
    assert isinstance(held, memory.Source) and isinstance(stream, records.Stream)
    assert len(stream) == len(held) == 1100 and stream.class_names == held.class_names
    in_order = [list(pipeline.evaluation_batches(s, recipe, (28, 28, 1)).as_numpy_iterator()) for s in (held, stream)]
    for (images, labels), (others, theirs) in zip(*in_order, strict=True):
        np.testing.assert_array_equal(images, others)
        np.testing.assert_array_equal(labels, theirs)
    seen = pipeline.training_batches(stream, recipe, (28, 28, 1), first_epoch=0).as_numpy_iterator()
    everything = np.concatenate([images for images, _ in seen]).astype("uint8")
    assert sorted(map(bytes, everything)) == sorted(map(bytes, held.images))
    assert len(sources.load(Data(source="tfds:mnist", limit=16), "train")) == 16
