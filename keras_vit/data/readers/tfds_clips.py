"""Videos of tensorflow-datasets: where each is in its file is noted, and it is read when it is needed.

A video is a sequence of encoded frames in a record. Records are found by their places, so that they are drawn from
all of a split, however large it is. Videos that fit into memory are decoded once.
"""

import contextlib
import dataclasses
import functools
import hashlib
import pathlib
import struct
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_vit.data.clip_source import Clips
from keras_vit.data.memory import fits, lacks
from keras_vit.data.readers.decoding import error_reason
from keras_vit.data.readers.tfds import one_of, opened
from keras_vit.utils.images import decoded, image_size
from keras_vit.utils.progress import passing

LENGTH = struct.Struct("<Q")  # of a record's bytes, before them
BEFORE, AFTER = LENGTH.size + 4, 4  # bytes around a record: its length, and two checksums


class Video(NamedTuple):
    """Where a video is, and how large."""

    path: str
    start: int  # of the record's bytes in the file
    length: int  # of the record, in bytes
    frames: int
    size: tuple[int, int]  # (height, width)


@dataclasses.dataclass(frozen=True)
class RecordedClips(Clips):
    """Clips of videos in TFRecord files; `images` is a vector of `Video`."""

    feature: str = "video"  # the name in a record

    def read_file(self, file, choose):
        with _named(file.path, file.start):
            frames = self._encoded(file)
            wanted = np.asarray(choose(len(frames))).tolist()
            pixels = {place: decoded(frames[place], 3) for place in sorted({*wanted})}
            return np.stack([pixels[place] for place in wanted])  # an error if frames differ in size

    def _encoded(self, file):
        with tf.io.gfile.GFile(file.path, "rb") as opened_file:
            opened_file.seek(file.start)
            return _frames(_values(opened_file.read(file.length)), self.feature)

    def check(self):
        """Raises ValueError with the place of the first video that can no longer be read, if there is one."""
        for file in self.images:
            with _named(file.path, file.start):
                if {decoded(frame, 3).shape[:2] for frame in self._encoded(file)} != {file.size}:
                    raise ValueError("it has changed")

    def sizes(self):
        return [(f"video {i}", video.size) for i, video in enumerate(self.images)]

    def fingerprint(self):
        """Returns a hash of the labels, and of the names of the files with the places in them, in their order."""
        places = [(pathlib.Path(video.path).name, video.start, video.length) for video in self.images]
        labels = {name: column.tobytes() for name, column in self.targets.items()}
        return hashlib.sha256(repr((self.class_names, labels, places)).encode()).hexdigest()

    @functools.cached_property
    def _fits(self):
        return fits(sum(3 * video.frames * video.size[0] * video.size[1] for video in self.images))


def read(name, split, data, targets, extras, sampling):
    """Reads a split of a data set of videos; arguments as in `tfds.read`, and a `clip_source.Sampling`."""
    builder, pieces = opened(name, split)
    features = builder.info.features
    keys = feature_keys(features, name, targets, extras)
    if builder.info.file_format.value != "tfrecord":
        raise ValueError(
            f"A data set of videos must be prepared as TFRecord files. Received: {name!r}, prepared as "
            f"{builder.info.file_format.value!r}"
        )
    videos, labels = [], []
    parts = [(piece.filename, piece.skip, piece.take) for piece in pieces]
    for path, start, record in passing(_records(parts), "reading videos: {n:,}", 3.0):
        with _named(path, start):
            values = _values(record)
            frames = _frames(values, keys["images"])
            if not frames:
                raise ValueError("it has no frames")
            videos.append(Video(path, start, len(record), len(frames), tuple(image_size(frames[0]))))
            labels += [values[keys["labels"]].int64_list.value[0]] if "labels" in keys else []
    places = np.empty(len(videos), object)  # else of its tuples it would make rows
    for i, video in enumerate(videos):
        places[i] = video
    known = {"labels": np.array(labels, "int32")} if "labels" in keys else {}
    names = tuple(features[keys["labels"]].names) if "labels" in keys else ()
    return RecordedClips(places, known, names, sampling=sampling, feature=keys["images"])


def feature_keys(features, name, targets, extras=()):
    """Returns the keys of a data set's features: of its video, as `"images"`, and of labels if they are wanted.

    Raises:
        ValueError: If there is no feature for one of them, or are several.
    """
    import tensorflow_datasets as tfds

    features = dict(features)
    videos = {key: feature.feature for key, feature in features.items() if isinstance(feature, tfds.features.Video)}
    video = one_of(videos, "video")
    if video is None:
        raise ValueError(
            f"A data set for a task of clips must have one feature of videos. Received: {name!r} of "
            f"{', '.join(features)}"
        )
    if videos[video].np_dtype != np.uint8:
        raise ValueError(
            f"Videos must be of type uint8. Received: {name!r}, whose frames are of type {videos[video].np_dtype}"
        )
    label = one_of([key for key, f in features.items() if isinstance(f, tfds.features.ClassLabel)], "label")
    found = {"labels": label}
    missing = next((target for target in targets if not found.get(target)), None)
    if missing:
        raise lacks(name, missing, features)
    return {"images": video, **{target: found[target] for target in (*targets, *extras) if found.get(target)}}


def _records(pieces):
    """Yields the path, the place and the bytes of each record in some parts of TFRecord files."""
    for path, skip, take in pieces:
        with tf.io.gfile.GFile(path, "rb") as file:
            start, end = BEFORE, file.size()
            for number in range(skip + take):
                head = file.read(BEFORE)
                length = LENGTH.unpack_from(head)[0] if len(head) == BEFORE else end
                if start + length + AFTER > end:  # before it is read: a damaged length may be any
                    raise ValueError(f"{path!r} ends early: prepare the data set again. Received: {number} records")
                if number >= skip:
                    yield path, start, file.read(length)
                file.seek(start + length + AFTER)
                start += length + AFTER + BEFORE


@contextlib.contextmanager
def _named(path, start):
    """Gives any error of a record and its frames the place of the record."""
    try:
        yield
    except Exception as error:  # any error of a decoder is a fault of this file
        raise ValueError(f"The video at byte {start:,} of {path!r} cannot be read: {error_reason(error)}.") from None


def _values(record):
    return tf.train.Example.FromString(record).features.feature


def _frames(values, feature):
    return values[feature].bytes_list.value
