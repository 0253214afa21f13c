"""Labelled images in TFRecord files, read anew in each epoch: for what does not fit into memory."""

import dataclasses
import functools
import hashlib
import itertools
import os
import pathlib

import numpy as np
import tensorflow as tf

from keras_vit import checks

FILES, RUN = 16, 16  # how many files are read side by side, and how many records in a row of each
BUFFER = 2**31  # bytes of the records among which the next one is drawn
IMAGE = {"image": tf.io.FixedLenFeature((), tf.string)}
LABEL = {"label": tf.io.FixedLenFeature((), tf.int64)}


@dataclasses.dataclass(frozen=True)
class Stream:
    """Labelled images, encoded, that stay in their files. What a `memory.Source` does, but for its `images`."""

    pieces: tuple[tuple[str, int, int], ...]  # path, records to pass over, records to take
    class_names: tuple[str, ...]
    buffer: int  # records among which the next one is drawn
    channels = (1, 3)  # files are decoded to either

    @classmethod
    def of(cls, pieces, class_names, num_bytes):
        """Returns the stream of some pieces of files; `num_bytes` is what those take together."""
        count = sum(count for _, _, count in pieces)
        return cls(tuple(pieces), class_names, max(int(min(BUFFER / num_bytes, 1) * count), 1) if count else 1)

    def __len__(self):
        return sum(count for _, _, count in self.pieces)

    @functools.cached_property
    def labels(self):
        """All labels in order, an int32 vector. Reads every record, at the first call."""
        return np.concatenate([_labels(records) for records in self.in_order(1024)]).astype("int32")

    def check_labels(self):
        """Raises ValueError unless the first labels are indices of classes; the others are looked at when read."""
        checks.class_indices(_labels(next(iter(self.in_order(64)))), len(self.class_names))

    def fingerprint(self):
        """Returns a hash of the class names, and of the names and sizes of the files and what is read of each."""
        pieces = [(pathlib.Path(path).name, tf.io.gfile.stat(path).length, *some) for path, *some in self.pieces]
        return hashlib.sha256(repr((self.class_names, pieces)).encode()).hexdigest()

    def take(self, index):
        """Returns the stream of the images in a slice."""
        if not isinstance(index, slice) or index.step not in (None, 1):
            raise TypeError(f"A set that does not fit into memory is cut by a slice. Received: {index!r}")
        start, stop, _ = index.indices(len(self))
        ends = list(itertools.accumulate(count for _, _, count in self.pieces))
        pieces = []
        for (path, skip, count), end in zip(self.pieces, ends):
            first, last = max(start - (end - count), 0), min(stop - (end - count), count)
            if first < last:
                pieces.append((path, skip + first, last - first))
        return dataclasses.replace(self, pieces=tuple(pieces))

    def in_order(self, count):
        """Returns a `tf.data.Dataset` of vectors of so many records, which `reader` takes; the last may be shorter."""
        return tf.data.Dataset.from_tensor_slices(self._columns()).flat_map(_records).batch(count)

    def shuffled(self, seed, epoch, count):
        """Returns the records of one epoch like `in_order`, in an order that depends on (seed, epoch); full vectors.

        Files come in random order, several side by side, and each record is drawn among the next `buffer`.
        """
        last = len(self.pieces) - 1

        def whole(epoch):
            key = tf.stack([seed, epoch])
            order = tf.random.experimental.index_shuffle(tf.range(last + 1, dtype="int64"), key, last)
            pieces = tf.data.Dataset.from_tensor_slices(tuple(tf.gather(column, order) for column in self._columns()))
            calls = min(FILES, os.cpu_count())
            records = pieces.interleave(_records, FILES, RUN, num_parallel_calls=calls, deterministic=True)
            tf.compat.v1.set_random_seed(1)  # of this function's graph, lest the order depend on the program's own seed
            draw = tf.random.stateless_uniform((), key, None, None, "int64")
            records = records.shuffle(self.buffer, seed=draw, reshuffle_each_iteration=False)
            return records.batch(count, drop_remainder=True)

        return tf.data.Dataset.from_tensors(tf.cast(epoch, "int64")).flat_map(whole)

    def reader(self):
        """Returns a function from records to (encoded images, labels)."""

        def read(records):
            found = tf.io.parse_example(records, {**IMAGE, **LABEL})
            text = f"a label is outside the {len(self.class_names)} classes"
            known = (found["label"] >= 0) & (found["label"] < len(self.class_names))
            tf.debugging.Assert(tf.reduce_all(known), [text, found["label"]])
            return found["image"], found["label"]

        return read

    def _columns(self):
        paths, skips, counts = zip(*self.pieces)
        return list(paths), np.array(skips, "int64"), np.array(counts, "int64")


def _records(path, skip, count):
    return tf.data.TFRecordDataset(path).skip(skip).take(count)


def _labels(records):
    return tf.io.parse_example(records, LABEL)["label"].numpy()
