"""Sources of crops: random ones of large pictures for training, a fixed grid of them for evaluation."""

import dataclasses
import functools
import math
from typing import ClassVar

import numpy as np
import tensorflow as tf

from keras_vit.data.augment.boxes import EMPTY
from keras_vit.data.draws import draws
from keras_vit.data.memory import Source
from keras_vit.data.parallel import each
from keras_vit.data.targets import OUTSIDE
from keras_vit.data.windows import boxes
from keras_vit.data.windows.opening import GROUP, KEPT, Shelf, opened, opened_mask
from keras_vit.data.windows.plan import NUMBERS, Plan
from keras_vit.utils import bands

SCALE = 2**24  # of random numbers as integers, among the keys
BOXES, MASKS = "bounding_boxes", "segmentation_masks"


@dataclasses.dataclass(frozen=True)
class Windows(Source):
    """A `Source` whose examples are windows of its pictures, all of one size.

    Of pictures that are smaller than a window, the last pixels are repeated; masks are void there.

    Attributes:
        pictures: The `Source` of the pictures.
        shapes: `(height, width)` of each picture, int64 `(pictures, 2)`.
        size: `(height, width, channels)` of a window.
        reading: How files become numbers, of pictures of any bands and depth; of bytes `None`.
    """

    pictures: Source = None
    shapes: np.ndarray = None
    size: tuple[int, int, int] = ()
    reading: bands.Reading | None = None
    kept: ClassVar[int] = KEPT  # bytes of decoded pictures and masks

    @property
    def channels(self):
        """The numbers of channels that a model may have: that of a window."""
        return (self.size[2],)

    def sizes(self):
        """Returns one name and size: all windows are alike."""
        return [("crops", self.size[:2])]

    def fingerprint(self):
        """Returns that of the pictures."""
        return self.pictures.fingerprint()

    def open_one(self, key):
        """Returns the `Picture` of a key, the name of a column and the place of a picture in it."""
        name, place = key
        size = tuple(self.shapes[place].tolist())
        if name == MASKS:
            return opened_mask(self.pictures.targets[MASKS][place], size)
        return opened(self.pictures.images[place], size, self.size[2], self.size[:2], self.windows_each, self.reading)

    def check(self):
        """Raises ValueError, with the name of the file, if a window could not be read."""
        if self._faults:
            raise ValueError(self._faults[0])

    @functools.cached_property
    def _faults(self):
        return []

    @property
    def windows_each(self):
        """Windows that are read of a picture in one pass over the data, on average."""
        return len(self) / max(len(self.pictures), 1)

    def _reader(self):
        """Returns a function from places of pictures and the starts of windows to a dictionary of these."""
        shelf, names = Shelf(self.open_one, self.kept), ["images", *([MASKS] if MASKS in self.targets else [])]
        sizes = {"images": self.size, MASKS: (*self.size[:2], 1)}
        own = self.pictures.images.dtype if self.pictures.images.ndim == 4 else "uint8"
        types = {"images": tf.as_dtype(own if self.reading is None else "float32"), MASKS: tf.uint8}

        def window(name, place, start):
            pixels = shelf.read((name, place), start, self.size[:2])
            missing = [(0, side - own) for side, own in zip(self.size[:2], pixels.shape)]
            if not np.any(missing):
                return pixels
            more = {"mode": "edge"} if name == "images" else {"constant_values": OUTSIDE}
            return np.pad(pixels, [*missing, (0, 0)], **more)

        def read(places, starts):
            pairs = [*zip(places.tolist(), starts.tolist())]
            try:
                return [np.stack([window(name, *pair) for pair in pairs]) for name in names]
            except (ValueError, OSError) as error:
                self._faults.append(str(error))
                raise

        def look_up(places, starts):
            found = tf.numpy_function(read, [places, starts], [types[name] for name in names], stateful=False)
            windows = zip(names, tf.nest.flatten(found))
            return {name: tf.ensure_shape(one, (None, *sizes[name])) for name, one in windows}

        return look_up


@dataclasses.dataclass(frozen=True)
class Crops(Windows):
    """Random crops for training: an epoch has `plan.quotas` of each picture. `images` and `targets` are the pictures'.

    Attributes:
        plan: The `Plan` of an epoch.
        visible: As in `boxes.cut`.
    """

    plan: Plan = None
    visible: float = 0.5
    group: ClassVar[int] = GROUP  # bytes of decoded pictures whose crops are mixed

    def __len__(self):
        return int(self.plan.quotas.sum())

    def shuffled(self, seed, epoch, count):
        """Returns the keys of one epoch like `Source.shuffled`: pictures, each with random numbers for its crop.

        Pictures come in random order. Those that must be decoded form groups of `opening.GROUP` bytes or a little
        more, and crops are shuffled within their group, so that each is decoded once in an epoch.
        """
        key, last = tf.stack([tf.cast(seed, "int64"), tf.cast(epoch, "int64")]), len(self.pictures) - 1
        order = tf.random.experimental.index_shuffle(tf.range(last + 1, dtype="int64"), key, last)
        quotas, costs = (tf.gather(tf.constant(each, "int64"), order) for each in (self.plan.quotas, self.costs))
        ends = tf.cumsum(quotas)
        groups = tf.cumsum(costs, exclusive=True) // self.group
        first = tf.gather(ends - quotas, tf.searchsorted(groups, groups))  # crops before the group of each picture
        after = tf.gather(ends, tf.searchsorted(groups, groups, "right") - 1)

        def keys_from(chunk):
            position = chunk * count + tf.range(count, dtype="int64")
            place = tf.searchsorted(ends, position, "right")
            begin, end = tf.gather(first, place), tf.gather(after, place)
            shuffled = begin + tf.random.experimental.index_shuffle(position - begin, key, end - begin - 1)
            pictures = tf.gather(order, tf.searchsorted(ends, shuffled, "right"))
            drawn = draws(seed, epoch, chunk * count)("crops", count, NUMBERS) * SCALE
            return tf.concat([pictures[:, None], tf.cast(drawn, "int64")], axis=1)

        return tf.data.Dataset.range(len(self) // count).map(keys_from)

    def reader(self):
        """Returns a function from keys to a dictionary of items: windows, and each target."""
        others = {name: tf.constant(column) for name, column in self.targets.items() if name not in (BOXES, MASKS)}
        read = self._reader()

        def starts_of(keys):
            return self.plan.starts(keys[:, 0], keys[:, 1:] / SCALE)

        def boxes_of(places, starts):
            rows = [self._boxes_of(*pair) for pair in zip(places, starts)]
            return boxes.padded(rows, self.most_boxes)

        def look_up(keys):
            places = keys[:, 0]
            starts = tf.ensure_shape(tf.numpy_function(starts_of, [keys], "int64", stateful=False), (None, 2))
            items = read(places, starts)
            if BOXES in self.targets:
                found = tf.numpy_function(boxes_of, [places, starts], "float32", stateful=False)
                items[BOXES] = tf.ensure_shape(found, (None, max(self.most_boxes, 1), len(EMPTY)))
            return {**items, **{name: tf.gather(column, places) for name, column in others.items()}}

        return look_up

    def _boxes_of(self, place, start):
        objects, shape = self.targets[BOXES][place], self.shapes[place]
        return boxes.cut(objects, shape, start, self.size[:2], self.visible)

    @functools.cached_property
    def most_boxes(self):
        """A number of boxes that no crop exceeds."""
        return max(boxes.most_in_crop(*pair, self.size[:2]) for pair in zip(self.targets[BOXES], self.shapes))

    @functools.cached_property
    def costs(self):
        """Bytes that each picture and its mask take while they are kept decoded; 0 where their windows are read."""
        names = [name for name in ("images", MASKS) if name == "images" or name in self.targets]

        def cost(place):
            opened = [self.open_one((name, place)) for name in names]
            return sum(math.prod(one.shape) * one.dtype.itemsize for one in opened if one.decoded)

        return np.array(each(cost, range(len(self.pictures)), "opening pictures"), "int64")

    def take(self, index):
        """Raises TypeError: an epoch's crops are drawn anew each time."""
        raise TypeError("Random crops cannot be taken by their positions: take pictures before they are cut.")


@dataclasses.dataclass(frozen=True)
class Grid(Windows):
    """Windows at fixed places, for evaluation: one row of `images` and `targets` for each.

    Attributes:
        places: The picture of each window, int64 `(windows,)`; windows of a picture follow each other.
        starts: Top and left of each, int64 `(windows, 2)`.
    """

    kept = GROUP

    places: np.ndarray = None
    starts: np.ndarray = None

    def take(self, index):
        """Returns the source of the windows at `index`, in that order."""
        part = super().take(index)
        return dataclasses.replace(part, places=self.places[index], starts=self.starts[index])

    def reader(self):
        """Returns a function from positions to a dictionary of items: windows, and each target."""
        others = {name: tf.constant(column) for name, column in self.targets.items() if name != MASKS}
        places, starts, read = tf.constant(self.places), tf.constant(self.starts), self._reader()

        def look_up(keys):
            items = read(tf.gather(places, keys), tf.gather(starts, keys))
            return {**items, **{name: tf.gather(column, keys) for name, column in others.items()}}

        return look_up
