"""Labelled images streamed from TFRecord files in each epoch: for data sets that do not fit into memory."""

import dataclasses
import functools
import hashlib
import itertools
import os
import pathlib

import numpy as np
import tensorflow as tf

from keras_vit import checks

FILES, RUN = 16, 16  # files that are read in turn, and records that are read in a row from each
BUFFER = 2**31  # bytes of the records from which the next one is drawn
IMAGE = {"image": tf.io.FixedLenFeature((), tf.string)}
LABEL = {"label": tf.io.FixedLenFeature((), tf.int64)}


@dataclasses.dataclass(frozen=True)
class Stream:
    """Labelled, encoded images that stay in their files. Has the methods of `memory.Source`, but no `images`."""

    pieces: tuple[tuple[str, int, int], ...]  # path, records to skip, records to take
    class_names: tuple[str, ...]
    buffer: int  # number of records from which the next one is drawn
    channels = (1, 3)  # files are decoded to either

    @classmethod
    def of(cls, pieces, class_names, num_bytes):
        """Returns the stream of some pieces of files; `num_bytes` is the size of all their records."""
        count = sum(count for _, _, count in pieces)
        return cls(tuple(pieces), class_names, max(int(min(BUFFER / num_bytes, 1) * count), 1) if count else 1)

    def __len__(self):
        return sum(count for _, _, count in self.pieces)

    def shuffled(self, seed, epoch, count):
        """Returns the records of one epoch as a `tf.data.Dataset` of vectors of `count`; an incomplete one is dropped.

        The order is a function of (seed, epoch). Files come in random order, several in turn, and each record is drawn
        from the next `buffer`.
        """
        last = len(self.pieces) - 1

        def records_of_epoch(epoch):
            key = tf.stack([seed, epoch])
            order = tf.random.experimental.index_shuffle(tf.range(last + 1, dtype="int64"), key, last)
            pieces = tf.data.Dataset.from_tensor_slices(tuple(tf.gather(column, order) for column in self._columns()))
            calls = min(FILES, os.cpu_count())
            records = pieces.interleave(_records, FILES, RUN, num_parallel_calls=calls, deterministic=True)
            tf.compat.v1.set_random_seed(1)  # of this function's graph, else the order depends on the global seed
            draw = tf.random.stateless_uniform((), key, None, None, "int64")
            records = records.shuffle(self.buffer, seed=draw, reshuffle_each_iteration=False)
            return records.batch(count, drop_remainder=True)

        return tf.data.Dataset.from_tensors(tf.cast(epoch, "int64")).flat_map(records_of_epoch)

    def in_order(self, count):
        """Returns all records like `shuffled`, in order; the last vector may be shorter."""
        return tf.data.Dataset.from_tensor_slices(self._columns()).flat_map(_records).batch(count)

    def reader(self):
        """Returns a function from records to (encoded images, labels)."""

        def parse(records):
            fields = tf.io.parse_example(records, {**IMAGE, **LABEL})
            text = f"a label is outside the {len(self.class_names)} classes"
            known = (fields["label"] >= 0) & (fields["label"] < len(self.class_names))
            tf.debugging.Assert(tf.reduce_all(known), [text, fields["label"]])
            return fields["image"], fields["label"]

        return parse

    @functools.cached_property
    def labels(self):
        """All labels in order, an int32 vector. The first access reads every record."""
        return np.concatenate([_labels(records) for records in self.in_order(1024)]).astype("int32")

    def take(self, index):
        """Returns the stream of the images in a slice."""
        if not isinstance(index, slice) or index.step not in (None, 1):
            raise TypeError(f"A stream of records must be cut by a slice without step. Received: {index!r}")
        start, stop, _ = index.indices(len(self))
        ends = list(itertools.accumulate(count for _, _, count in self.pieces))
        pieces = []
        for (path, skip, count), end in zip(self.pieces, ends):
            first, last = max(start - (end - count), 0), min(stop - (end - count), count)
            if first < last:
                pieces.append((path, skip + first, last - first))
        return dataclasses.replace(self, pieces=tuple(pieces))

    def check_labels(self):
        """Raises ValueError unless the first labels are indices of classes; `reader` checks the others."""
        checks.class_indices(_labels(next(iter(self.in_order(64)))), len(self.class_names))

    def fingerprint(self):
        """Returns a hash of the class names, and of the names and sizes of the files and what is read of each."""
        pieces = [(pathlib.Path(path).name, tf.io.gfile.stat(path).length, *some) for path, *some in self.pieces]
        return hashlib.sha256(repr((self.class_names, pieces)).encode()).hexdigest()

    def _columns(self):
        paths, skips, counts = zip(*self.pieces)
        return list(paths), np.array(skips, "int64"), np.array(counts, "int64")


def _records(path, skip, count):
    return tf.data.TFRecordDataset(path).skip(skip).take(count)


def _labels(records):
    return tf.io.parse_example(records, LABEL)["label"].numpy()
