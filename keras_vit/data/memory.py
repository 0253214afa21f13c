"""Images and their targets in memory, and how much memory one split may take."""

import contextlib
import dataclasses
import functools
import hashlib
import itertools
import os
import pathlib
import re

import numpy as np
import tensorflow as tf

from keras_vit.data import inspection
from keras_vit.data.augment import masks
from keras_vit.utils import checks
from keras_vit.utils.cores import cores
from keras_vit.utils.images import image_size
from keras_vit.utils.names import composed

SHARE = 1 / 4  # of the memory, for one split: there are two, and NumPy, TensorFlow and a reader may each hold a copy
CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclasses.dataclass(frozen=True)
class Source:
    """Images and targets: pixels or encoded files in memory, or file names.

    `images` is uint8 of shape (n, height, width, channels), or a vector of encoded files or of paths. `targets` has
    `"labels"`, int32 (n,); `"segmentation_masks"`, uint8 (n, height, width, 1) or a vector of PNG files or of paths;
    `"instance_masks"`, int32 (n, height, width, 1) or a vector of PNG files, see `utils.instance_maps`;
    `"depths"`, float32 (n, height, width, 1) or a vector of files or of paths, see `utils.depth_maps`;
    `"bounding_boxes"`, float32 (n, most, 5), as in `boxes`; `"numbers"`, float32 (n, numbers);
    `"multilabels"`, int8 (n, classes), 1, 0 or -1 for unknown; `"texts"`, a tuple of strings each, which the task's
    `read` turns into ids, int32 (n, length) or (n, texts, length); or nothing.
    """

    images: np.ndarray
    targets: dict[str, np.ndarray]
    class_names: tuple[str, ...] = ()
    files: bool = False  # whether `images` are paths, and targets that are strings too
    groups: np.ndarray | None = None  # a number for each image: a split keeps those of a group together
    digests: np.ndarray | None = None  # of each file's bytes when it was checked, from `inspection.inspect`
    given: bool = False  # by the caller, not read from the data of a recipe
    stuff: tuple[str, ...] = ()  # names of the classes that are regions, such as sky, where the data say it
    bands: int | None = None  # of images that `data.deep_source` reads

    def __post_init__(self):
        for name in ("class_names", "stuff"):
            object.__setattr__(self, name, tuple(map(composed, getattr(self, name))))

    def __len__(self):
        return len(self.images)

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
        """Returns a function from keys to a dictionary of items: pixels or encoded images, and each target.

        Files that `deep_source` reads are paths.
        """
        tensors, unread = self._tensors, self._unread - self._left

        def look_up(keys):
            items = {name: tf.gather(column, keys) for name, column in tensors.items()}
            return {n: tf.map_fn(tf.io.read_file, v) if n in unread else v for n, v in items.items()}

        return look_up

    def take(self, index):
        """Returns the source of the images at `index`, in that order."""
        digests = None if self.digests is None else self.digests[index]
        groups = None if self.groups is None else self.groups[index]
        targets = {name: target[index] for name, target in self.targets.items()}
        part = dataclasses.replace(self, images=self.images[index], targets=targets, groups=groups, digests=digests)
        if "mask_counts" in vars(self):  # decoded already
            vars(part)["mask_counts"] = self.mask_counts[index]
        return part

    def sample(self, count):
        """Returns the source of `count` random images, always the same, in their order; of all if there are fewer."""
        return self.take(np.sort(np.random.default_rng(0).permutation(len(self))[:count]))

    def part(self, split, name):
        """Returns the part `name[a%:b%]`, or all for `name`, in an order that is shuffled but always the same."""
        match = re.fullmatch(r"([^\[\]]+)(?:\[(?:(\d+)%)?:(?:(\d+)%)?\])?", split)
        if not match or match[1] != name:
            raise ValueError(
                f"A split must be {name!r}, or a part of it such as '{name}[:80%]'. Received: {checks.shown(split)}"
            )
        if int(match[2] or 0) > 100 or int(match[3] or 100) > 100:
            raise ValueError(f"A split must end at 100 % or before. Received: {checks.shown(split)}")
        first, last = (round(len(self) * int(percent) / 100) for percent in (match[2] or 0, match[3] or 100))
        random = np.random.default_rng(0)
        if self.groups is None:
            return self.take(random.permutation(len(self))[first:last])
        _, seen, groups = np.unique(self.groups, return_index=True, return_inverse=True)
        ranks = random.permutation(len(seen))[np.argsort(np.argsort(seen))[groups]]  # counted as they are first seen
        ends = np.cumsum([0, *np.bincount(ranks)])  # a part ends with a group
        first, last = (ends[np.abs(ends - place).argmin()] for place in (first, last))
        return self.take(np.argsort(ranks, kind="stable")[first:last])

    @property
    def channels(self):
        """The numbers of channels that a model may have: files are decoded to either."""
        if self.bands is not None:
            return (self.bands,) if self.bands > 1 else (1, 3)
        return (self.images.shape[-1],) if self.images.ndim == 4 else (1, 3)

    @property
    def labels(self):
        """The label of each image, int32."""
        return self.targets["labels"]

    def check_labels(self):
        """Raises ValueError unless every image has a label, the index of a class; where they are labels at all."""
        if "labels" in self.targets:
            checks.class_indices(self.labels, len(self.class_names), len(self.images))

    @functools.cached_property
    def mask_counts(self):
        """Pixels of each value 0 to 255 in each segmentation mask, `(n, 256)`."""
        return masks.counts_of(list(self.targets["segmentation_masks"]))

    @property
    def mask_values(self):
        """The values in the segmentation masks: a dictionary from each to the name of a mask that has it."""
        column = self.targets["segmentation_masks"]
        paths = column if _are_paths(column, self.files) else None
        if paths is None and self.files:  # the masks were read, and some written again
            paths = [f"the mask of {image}" for image in self.images]
        return masks.named_values(self.mask_counts, paths)

    def sizes(self):
        """Returns the name and the `(height, width)` of each image, without decoding it again."""
        if self.images.ndim == 4:
            return [("images", self.images.shape[1:3])]
        if not self.files:
            return [(f"image {i}", image_size(item)) for i, item in enumerate(self.images)]
        return [(str(path), image.size[::-1]) for path, image in zip(self.images, inspection.inspect_all(self.images))]

    @property
    def paths(self):
        """The paths of all files that are read, as strings."""
        return [path for column in self._columns.values() if _are_paths(column, self.files) for path in column]

    def fingerprint(self):
        """Returns a hash of the targets, and of the pixels, encoded files or file names, in their order.

        File names begin below the folder that all files are in: it may be moved.
        """
        labels = self.targets.get("labels")
        digest = hashlib.sha256(repr(self.class_names).encode() + (b"" if labels is None else labels.tobytes()))
        if self.stuff:
            digest.update(repr(self.stuff).encode())
        for name, column in self._columns.items():
            if name == "labels":
                continue
            if name != "images":
                digest.update(name.encode())
            if column.dtype.kind in "iuf":
                digest.update(np.ascontiguousarray(column).reshape(-1))
            elif _are_paths(column, self.files):
                names = column.tolist()
                ends = (min(names), max(names)) if names else ("", "")  # what these have in common, all have
                folder = os.path.commonpath([os.path.dirname(name) for name in ends])
                digest.update(repr([name[len(folder) :].lstrip(os.sep) for name in names]).encode())
            else:
                for item in column:
                    item = repr(item).encode() if isinstance(item, tuple) else item
                    digest.update(len(item).to_bytes(8, "little") + item)
        return digest.hexdigest()

    @property
    def _columns(self):
        return {"images": self.images, **self.targets}

    @functools.cached_property
    def _unread(self):
        """The names of what is read when it is needed. Files that fit into memory are read once."""
        paths = {name for name, column in self._columns.items() if _are_paths(column, self.files)}
        sizes = itertools.accumulate(map(os.path.getsize, self.paths))
        return set() if all(map(fits, sizes)) else paths

    @property
    def _left(self):
        """The names of what stays paths."""
        return {"images"} if self.files and self.bands is not None else set()

    @functools.cached_property
    def _tensors(self):
        """Images and targets, by name."""
        return {name: self._tensor(name, column) for name, column in self._columns.items()}

    def _tensor(self, name, column):
        if not _are_paths(column, self.files):
            with tf.device("CPU"):  # else all of it is copied to a GPU
                return tf.constant(column)
        paths = tf.constant(list(map(os.fsencode, column)))  # as bytes, since a name may be no UTF-8
        if name in self._unread | self._left:
            return paths
        files = tf.data.Dataset.from_tensor_slices(paths).map(tf.io.read_file, num_parallel_calls=cores())
        return files.batch(len(self)).get_single_element()


def lacks(name, target, names):
    """Returns the error for a target that a data set does not have."""
    return ValueError(f"{name!r} has no {target.replace('_', ' ')}. It has: {', '.join(names)}")


def _are_paths(column, files):
    """Returns whether a column consists of paths: texts, which an array of objects holds in a quarter of the memory."""
    return files and (column.dtype.kind in "US" or (len(column) > 0 and isinstance(column[0], str)))


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
