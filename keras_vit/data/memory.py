"""Labelled images in memory, and how much memory one split may take."""

import contextlib
import dataclasses
import functools
import hashlib
import os
import pathlib
import re

import numpy as np
import tensorflow as tf

from keras_vit import checks

SHARE = 1 / 4  # of the memory, for one split: there are two, and NumPy, TensorFlow and a reader may each hold a copy
CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclasses.dataclass(frozen=True)
class Source:
    """Labelled images: pixels or encoded files in memory, or file names.

    `images` is uint8 of shape (n, height, width, channels), or a vector of encoded files or of paths.
    """

    images: np.ndarray
    labels: np.ndarray
    class_names: tuple[str, ...]
    files: bool = False  # whether `images` are paths
    digests: np.ndarray | None = None  # of each file's bytes when it was checked, from `inspection.inspect`

    def __len__(self):
        return len(self.labels)

    def shuffled(self, seed, epoch, count):
        """Returns the keys of one epoch as a `tf.data.Dataset` of vectors of `count`; an incomplete one is dropped.

        The order is a function of (seed, epoch): a pseudo-random permutation, computed and not stored.
        """

        def keys_from(first):
            position = first + tf.range(count, dtype="int64")
            return tf.random.experimental.index_shuffle(position, tf.stack([seed, epoch]), len(self) - 1)

        return tf.data.Dataset.range(0, len(self) - count + 1, count).map(keys_from)

    def in_order(self, count):
        """Returns all keys like `shuffled`, in order; the last vector may be shorter."""
        return tf.data.Dataset.range(len(self)).batch(count)

    def reader(self):
        """Returns a function from keys to (pixels or encoded images, labels)."""
        images, labels, paths = self._tensors

        def look_up(keys):
            items = tf.gather(images, keys)
            return tf.map_fn(tf.io.read_file, items) if paths else items, tf.gather(labels, keys)

        return look_up

    def take(self, index):
        """Returns the source of the images at `index`, in that order."""
        digests = None if self.digests is None else self.digests[index]
        return dataclasses.replace(self, images=self.images[index], labels=self.labels[index], digests=digests)

    def part(self, split, name):
        """Returns the part `name[a%:b%]`, or all for `name`, in an order that is shuffled but always the same."""
        match = re.fullmatch(r"([^\[\]]+)(?:\[(?:(\d+)%)?:(?:(\d+)%)?\])?", split)
        if not match or match[1] != name:
            raise ValueError(f"A split must be {name!r}, or a part of it such as '{name}[:80%]'. Received: {split!r}")
        if int(match[2] or 0) > 100 or int(match[3] or 100) > 100:
            raise ValueError(f"A split must end at 100 % or before. Received: {split!r}")
        order = np.random.default_rng(0).permutation(len(self))
        first, last = (round(len(self) * int(percent) / 100) for percent in (match[2] or 0, match[3] or 100))
        return self.take(order[first:last])

    @property
    def channels(self):
        """The numbers of channels that a model may have: files are decoded to either."""
        return (self.images.shape[-1],) if self.images.ndim == 4 else (1, 3)

    def check_labels(self):
        """Raises ValueError unless every image has a label, the index of a class."""
        checks.class_indices(self.labels, len(self.class_names), len(self.images))

    def fingerprint(self):
        """Returns a hash of the labels, and of the pixels, encoded files or file names, in their order."""
        digest = hashlib.sha256(repr(self.class_names).encode() + self.labels.tobytes())
        if self.images.ndim == 4:
            digest.update(np.ascontiguousarray(self.images).reshape(-1))
        elif self.files:
            digest.update(repr(self.images.tolist()).encode())
        else:
            for image in self.images:
                digest.update(len(image).to_bytes(8, "little") + image)
        return digest.hexdigest()

    @functools.cached_property
    def _tensors(self):
        """Images and labels, and whether the images are still paths: files that fit into memory are read once, here."""
        # As bytes, since a name may be no UTF-8.
        images = tf.constant(list(map(os.fsencode, self.images)) if self.files else self.images)
        paths = self.files and not fits(sum(map(os.path.getsize, self.images)))
        if self.files and not paths:
            files = tf.data.Dataset.from_tensor_slices(images).map(tf.io.read_file, num_parallel_calls=os.cpu_count())
            images = files.batch(len(self)).get_single_element()
        return images, tf.constant(self.labels), paths


def fits(num_bytes):
    """Returns whether images of this size can be held in memory."""
    return num_bytes < SHARE * total()


@functools.cache
def total():
    """Returns the memory that this process can use, in bytes: the machine's, or its container's."""
    try:
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, ValueError, OSError):
        limits = [2**33]  # Windows does not say
    for path in CONTAINER:
        with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
            limits.append(int(pathlib.Path(path).read_text()))
    return min(limits)
