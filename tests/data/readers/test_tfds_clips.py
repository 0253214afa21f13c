import dataclasses
import struct

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.config import Augment, Classify, ClassifyClips, Data, Optim, Recipe
from keras_vit.data import memory, pipeline, sources, views
from keras_vit.data.clip_source import Sampling
from keras_vit.data.readers import tfds_clips

NAMES = ("jump", "run", "walk")
COUNT = 12
CLIPS = [  # of 2 to 13 frames of several sizes; the color says which frame it is
    np.broadcast_to(
        np.array([20 * i + 5, 0, 0]) + np.arange(2 + i)[:, None, None, None] * np.array([0, 10, 5]),
        (2 + i, 8 + i % 3, 12, 3),
    ).astype("uint8")
    for i in range(COUNT)
]


def prepared(folder, monkeypatch, **more):
    """Writes a data set like ucf101 into a folder, by tensorflow-datasets itself; returns its `Data`."""
    import tensorflow_datasets
    from tensorflow_datasets.core import features

    class TinyVideos(tensorflow_datasets.core.GeneratorBasedBuilder, skip_registration=True):
        VERSION = tensorflow_datasets.core.Version("1.0.0")

        def _info(self):
            label = {"label": features.ClassLabel(names=NAMES), "name": features.Text()}
            video = features.Video(shape=(None, None, None, 3), **more)
            return self.dataset_info_from_configs(features=features.FeaturesDict({"video": video, **label}))

        def _split_generators(self, _):
            return {"train": self._generate_examples()}

        def _generate_examples(self):
            for i, clip in enumerate(CLIPS):
                yield i, {"video": clip.astype(more.get("dtype", "uint8")), "label": i % 3, "name": f"clip {i}"}

    monkeypatch.setenv("TFDS_DATA_DIR", str(folder))
    TinyVideos(data_dir=folder).download_and_prepare()
    return Data(source="tfds:tiny_videos", batch_size=3)


@pytest.fixture
def data(tmp_path, monkeypatch):
    return prepared(tmp_path, monkeypatch)


def load(data, split="train", targets=("labels",), **more):
    return sources.load(data, split, targets, clips=Sampling(4, 2, **more))


def recipe(data, **task):
    task = ClassifyClips(frames=4, stride=2, classes=NAMES, **task)
    return Recipe(name="x", task=task, model={}, data=data, augment=Augment(), optim=Optim(epochs=1))


def numbers(clips):
    """Returns of which example, and which frame of it, are frames, `(..., height, width, 3)`."""
    color = np.asarray(clips, "float32")[..., 0, 0, :]
    return np.rint((color[..., 0] - 5) / 20).astype(int), np.rint(color[..., 1] / 10).astype(int)


@pytest.mark.parametrize("share", [1 / 4, 0])
def test_videos_are_read_from_their_records(data, share, monkeypatch):
    monkeypatch.setattr(memory, "SHARE", share)
    found = load(data)
    assert len(found) == COUNT and found.class_names == NAMES and found._fits == bool(share)
    order = []
    for place in range(COUNT):
        clip = found.clip(place, np.arange)
        (number,) = {*numbers(clip)[0].tolist()}
        np.testing.assert_array_equal(clip, CLIPS[number])
        assert found.labels[place] == number % 3 and found.images[place].frames == len(clip)
        assert dict(found.sizes())[f"video {place}"] == clip.shape[1:3]
        order.append(number)
    assert sorted(order) == [*range(COUNT)] and bool(vars(found).get("_decoded")) == bool(share)
    (batch, *_) = pipeline.evaluation_arrays(found, recipe(data), (4, 8, 8, 3))
    expected = [Sampling(4, 2).indices(len(CLIPS[number])) for number in order[:3]]
    np.testing.assert_array_equal(numbers(batch["images"])[1], expected)
    seen = pipeline.training_batches(found, recipe(data), (4, 8, 8, 3), first_epoch=0)
    drawn = [pair for x, y in seen.as_numpy_iterator() for pair in zip(numbers(x)[0][:, 0], y.argmax(-1))]
    assert sorted(number for number, _ in drawn) == [*range(COUNT)] and all(n % 3 == label for n, label in drawn)
    several = recipe(data, views=3)
    several = [*views.view_arrays(load(data, views=3), several, (4, 8, 8, 3))]
    assert {each["images"].shape[1:] for each in several} == {(3, 4, 8, 8, 3)}


def test_parts_of_a_split(data):
    whole, parts = load(data), [load(data, split) for split in ("train[:25%]", "train[25%:]")]
    assert [len(part) for part in parts] == [3, 9]
    together = [part.clip(i, np.arange) for part in parts for i in range(len(part))]
    assert all((whole.clip(i, np.arange) == clip).all() for i, clip in enumerate(together))
    assert len({each.fingerprint() for each in (whole, *parts, load(data, targets=()))}) == 4
    assert whole.fingerprint() == load(data).fingerprint() and not load(data, targets=()).targets
    folded = load(dataclasses.replace(data, train="train[:25%]", validation="train[25%:]", fold=(1, 3)), "train[:25%]")
    assert len(folded) == 8 and len(load(dataclasses.replace(data, limit=2))) == 2


def test_what_is_no_set_of_videos_is_refused(data, tmp_path, monkeypatch):
    with pytest.raises(
        ValueError, match="of videos is for ClassifyClips and PretrainClips. Received: 'tiny_videos' of"
    ):
        sources.load(data, "train", Classify().targets)
    with pytest.raises(ValueError, match="'tiny_videos' has no split 'test'. Known: train"):
        load(data, "test")
    with pytest.raises(ValueError, match="'tiny_videos' has no numbers. It has: .*video"):
        load(data, targets=("numbers",))
    import tensorflow_datasets

    images = {
        "image": tensorflow_datasets.features.Image(),
        "label": tensorflow_datasets.features.ClassLabel(names=NAMES),
    }
    with pytest.raises(ValueError, match="must have one feature of videos. Received: 'mnist' of image, label"):
        tfds_clips.feature_keys(images, "mnist", ("labels",))
    deep = {"video": tensorflow_datasets.features.Video(shape=(None, 8, 8, 1), dtype=np.uint16)}
    with pytest.raises(ValueError, match="must be of type uint8. Received: 'deep', whose frames are of type .*uint16"):
        tfds_clips.feature_keys(deep, "deep", ())
    (file,) = tmp_path.rglob("*.tfrecord*")
    found, whole = load(data), file.read_bytes()
    video = found.images[5]
    at = whole.index(b"\x89PNG", video.start)
    monkeypatch.setattr(memory, "SHARE", 0)
    file.write_bytes(whole[:at] + b"none" + whole[at + 4 :])  # after it was found
    with pytest.raises(ValueError, match=f"The video at byte {video.start:,} of .* cannot be read: "):
        found.clip(5, np.arange)
    made = Recipe(name="x", task=ClassifyClips(frames=2, classes=NAMES), model={}, data=data)
    with pytest.raises(ValueError, match=f"The video at byte {video.start:,} of .* cannot be read: "):
        [*pipeline.evaluation_arrays(found, made, (2, 8, 8, 3))]
    first = whole.index(b"\x89PNG", found.images[2].start)
    for damaged in (whole[:first] + b"none" + whole[first + 4 :], _with(whole, found.images[2].start, b"\xff" * 20)):
        file.write_bytes(damaged)  # before it is found
        with pytest.raises(ValueError, match=f"The video at byte {found.images[2].start:,} of .* cannot be read: "):
            load(data)
    for damaged in (whole[:-20], _with(whole, found.images[11].start - 12, struct.pack("<Q", 2**40))):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match="ends early: prepare the data set again. Received: 11 records"):
            load(data)


def _with(data, at, some):
    return data[:at] + some + data[at + len(some) :]
