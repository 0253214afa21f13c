"""Images and targets streamed from TFRecord files in each epoch: for data sets that do not fit into memory."""

import dataclasses
import functools
import hashlib
import itertools
import pathlib

import numpy as np
import tensorflow as tf

from keras_vit.data.augment import masks
from keras_vit.data.orientation import orientations
from keras_vit.data.targets import KINDS
from keras_vit.utils import checks
from keras_vit.utils.cores import cores

FILES, RUN = 16, 16  # files that are read in turn, and records that are read in a row from each
BUFFER = 2**31  # bytes of the records from which the next one is drawn
FIRST = 64  # records that are checked before training
RUNS = 50  # of a sample


@dataclasses.dataclass(frozen=True)
class Stream:
    """Encoded images and targets that stay in their files. Has the methods of `memory.Source`, but no `images`."""

    pieces: tuple[tuple[str, int, int], ...]  # path, records to skip, records to take
    class_names: tuple[str, ...]
    buffer: int  # number of records from which the next one is drawn
    features: tuple[tuple[str, str], ...] = (("images", "image"), ("labels", "label"))  # names, and those in a record
    labeled: bool = True  # whether every label must be the index of a class
    channels = (1, 3)  # files are decoded to either

    @classmethod
    def of(cls, pieces, class_names, num_bytes, **more):
        """Returns the stream of some pieces of files; `num_bytes` is the size of all their records."""
        count = sum(count for _, _, count in pieces)
        buffer = max(int(min(BUFFER / num_bytes, 1) * count), 1) if count else 1
        return cls(tuple(pieces), class_names, buffer, **more)

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
            calls = min(FILES, cores())
            records = pieces.interleave(_records, FILES, RUN, num_parallel_calls=calls, deterministic=True)
            tf.compat.v1.set_random_seed(1)  # of this function's graph, else the order depends on the global seed
            draw = tf.random.stateless_uniform((), key, None, None, "int64")
            records = records.shuffle(self.buffer, seed=draw, reshuffle_each_iteration=False)
            return records.batch(count, drop_remainder=True)

        return tf.data.Dataset.from_tensors(tf.cast(epoch, "int64")).flat_map(records_of_epoch)

    def in_order(self, count):
        """Returns all records like `shuffled`, in order; the last vector may be shorter."""
        return tf.data.Dataset.from_tensor_slices(self._columns()).flat_map(_records).batch(count)

    @property
    def targets(self):
        """The names of the targets."""
        return tuple(name for name, _ in self.features if name != "images")

    def reader(self):
        """Returns a function from records to a dictionary of items: encoded images, and each target."""

        def parse(records):
            items = _parsed(records, self.features)
            if "labels" in items and self.labeled:
                text = f"a label is outside the {len(self.class_names)} classes"
                inside = (items["labels"] >= 0) & (items["labels"] < len(self.class_names))
                tf.debugging.Assert(tf.reduce_all(inside), [text, items["labels"]])
            if "segmentation_masks" in items:
                text = "an image with a mask has an EXIF orientation: turn its pixels before"
                tf.debugging.Assert(tf.reduce_all(orientations(items["images"]) == 1), [text])
            return items

        return parse

    @functools.cached_property
    def labels(self):
        """All labels in order, an int32 vector. The first access reads every record."""
        return np.concatenate([self._column("labels", records) for records in self.in_order(1024)]).astype("int32")

    @functools.cached_property
    def mask_counts(self):
        """Pixels of each value 0 to 255 in all segmentation masks, `(parts, 256)`; reads every record."""
        return np.stack([self._counts(records).sum(0) for records in self.in_order(FIRST)])

    @functools.cached_property
    def mask_values(self):
        """The values in the segmentation masks of the first records: from each to the name of a mask that has it."""
        return masks.named_values(self._counts(next(iter(self.in_order(FIRST)))))

    def _counts(self, records):
        return masks.counts_of(self._column("segmentation_masks", records).tolist())

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

    def sample(self, count):
        """Returns the stream of about `count` records, never more: runs of them, the first of equal parts of all."""
        parts = min(RUNS, count)
        starts, run = (np.arange(parts) * len(self) // parts).tolist(), count // parts
        pieces = [piece for start in starts for piece in self.take(slice(start, start + run)).pieces]
        return self if count >= len(self) else dataclasses.replace(self, pieces=tuple(pieces))

    def sizes(self):
        """Returns nothing: the sides of the images are not known before they are read."""
        return []

    def check_labels(self):
        """Raises ValueError unless the first labels are indices of classes; `reader` checks the others."""
        checks.class_indices(self._column("labels", next(iter(self.in_order(FIRST)))), len(self.class_names))

    def fingerprint(self):
        """Returns a hash of the class names, and of the names and sizes of the files and what is read of each."""
        pieces = [(pathlib.Path(path).name, tf.io.gfile.stat(path).length, *some) for path, *some in self.pieces]
        others = [name for name in self.targets if name != "labels"]
        content = (self.class_names, pieces, others) if others else (self.class_names, pieces)
        return hashlib.sha256(repr(content).encode()).hexdigest()

    def _column(self, name, records):
        """Returns one feature of some records, as an array."""
        return _parsed(records, [pair for pair in self.features if pair[0] == name])[name].numpy()

    def _columns(self):
        paths, skips, counts = zip(*self.pieces)
        return list(paths), np.array(skips, "int64"), np.array(counts, "int64")


def _records(path, skip, count):
    return tf.data.TFRecordDataset(path).skip(skip).take(count)


def _parsed(records, features):
    types = {key: tf.io.FixedLenFeature((), KINDS[name].record) for name, key in features}
    fields = tf.io.parse_example(records, types)
    return {name: fields[key] for name, key in features}
