"""Whether image files can be read, and hashes of their bytes. A file is inspected once, and again if it changes."""

import collections.abc
import contextlib
import functools
import hashlib
import json
import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_vit.data import deep_inspection, large_jpegs
from keras_vit.data.digests import DIGEST as DIGEST
from keras_vit.data.digests import digest_of as digest_of
from keras_vit.data.digests import digest_of_file as digest_of_file
from keras_vit.data.known_files import KnownFiles
from keras_vit.data.readers import decoding
from keras_vit.utils import deep_files, depth_maps, images

RULES = 1  # raise it when a file of the same bytes may be judged otherwise, or a field means something else
FIELDS = (("digest", "u1", (DIGEST,)), ("size", "u4", (2,)), ("orientation", "u1"), ("highest", "i2"))
SMALL = 2**18  # pixels, and bytes, of images that are decoded together
FEW = 16  # images, beyond which that is quicker than one by one


class Inspected(NamedTuple):
    """The result of inspecting an image file."""

    fault: str | None  # why it cannot be read
    digest: bytes = b""  # hash of its bytes, `DIGEST` bytes long
    size: tuple[int, int] = (0, 0)  # width, height, as it is seen
    orientation: int = 1  # of EXIF
    highest: int | None = None  # of the upper eight bits, if it has sixteen


class Checked(collections.abc.Sequence):
    """The `Inspected` of each of many files, in little memory.

    Attributes:
        records: Array `(files,)` with the fields `FIELDS`; `highest` is -1 for images of eight bits.
        faults: Why files cannot be read, by their positions.
    """

    def __init__(self, records, faults):
        self.records = records
        self.faults = faults

    def __len__(self):
        return len(self.records)

    def __getitem__(self, place):
        if place in self.faults:
            return Inspected(self.faults[place])
        digest, size, orientation, highest = (self.records[name][place] for name, *_ in FIELDS)
        deep = None if highest < 0 else int(highest)
        return Inspected(None, digest.tobytes(), tuple(size.tolist()), int(orientation), deep)


def inspect_all(paths, by_windows=False):
    """Decodes image files, unless that was done before and they are the same; returns their `Checked`, in order.

    Args:
        paths: The files.
        by_windows: Whether pictures that are too large to be decoded whole are no fault if windows of them can be read.
    """
    paths = list(map(str, paths))
    checked = _inspected_all(paths)
    return large_jpegs.accepted(paths, checked, FIELDS) if by_windows else large_jpegs.refused(checked)


def _inspected_all(paths):
    """Returns the `Checked` of image files, texts; files of bands may be of any size."""
    deep = [place for place, path in enumerate(paths) if deep_files.is_named(path)]
    if not deep:
        return Checked(*_known().look_up(paths, "checking images"))
    others = np.delete(np.arange(len(paths)), deep).tolist()
    records, faults = np.zeros(len(paths), [*FIELDS]), {}
    records["highest"] = -1
    for places, look_up, names in (
        (others, lambda some: _known().look_up(some, "checking images"), [name for name, *_ in FIELDS]),
        (deep, deep_inspection.look_up, ["digest", "size", "orientation"]),
    ):
        found, bad = look_up([paths[place] for place in places])
        for name in names:
            records[name][places] = found[name] if len(found) else 0
        faults |= {places[i]: why for i, why in bad.items()}
    return Checked(records, faults)


@functools.cache
def _known():
    return KnownFiles(f"images {RULES}", FIELDS, _inspect)


def _inspect(paths):
    """Returns for each of a few files a tuple of `FIELDS`, or why it cannot be read."""
    results, together = [None] * len(paths), {}
    for place, path in enumerate(paths):
        try:
            data = images.encoded(path)
        except (ValueError, OSError) as error:
            results[place] = str(error).removeprefix(f"{path!r} ").removesuffix(".")
            continue
        if len(paths) > FEW and _is_small(data):
            together[place] = data
        else:
            results[place] = _inspected(data)
    for (place, data), size in zip(together.items(), _sizes([*together.values()])):
        if size is None:
            results[place] = _inspected(data)
        else:
            number = images.orientation(data)
            results[place] = digest_of(data), size if number > 4 else size[::-1], number, -1
    return results


def _inspected(data):
    """Returns the fields of the bytes of a file, or why it cannot be decoded."""
    try:
        orientation = images.orientation(data)
        with images.in_turn(data):
            pixels = decoding.decode(tf.constant(data), 3, orientation)
            (height, width, _), highest = pixels.shape, int(tf.reduce_max(pixels)) if images.is_deep(data) else -1
            del pixels
    except (ValueError, OSError) as error:
        return str(error).removesuffix(".")
    except Exception as error:  # any error of the decoder is a fault of this file
        return decoding.error_reason(error)
    return digest_of(data), (width, height), orientation, highest


def _is_small(data):
    """Returns whether TensorFlow decodes a file in little memory, and it has eight bits."""
    if len(data) > SMALL or images.is_deep(data):
        return False
    if data[:4] == b"\x89PNG":
        return int.from_bytes(data[16:20], "big") * int.from_bytes(data[20:24], "big") <= SMALL
    return data[:3] == b"\xff\xd8\xff" and math.prod(images.image_size(data)) <= SMALL


def _sizes(items):
    """Returns the stored `(height, width)` of each JPEG or PNG, `None` of one that cannot be decoded.

    The decoders are those of `decoding.decode`, in one graph: calling them from Python takes longer than a small image.
    """
    try:
        with tf.device("CPU"):
            return _sizes_in_graph(tf.constant(items, "string", (len(items),))).numpy()
    except tf.errors.OpError:
        half = len(items) // 2
        return [*_sizes(items[:half]), *_sizes(items[half:])] if half else [None]


@tf.function(input_signature=[tf.TensorSpec((None,), "string")], autograph=False)
def _sizes_in_graph(items):
    def size(item):
        return tf.shape(decoding.decode_in_graph(item, 3, tf.constant(1)))[:2]

    return tf.map_fn(size, items, parallel_iterations=1, fn_output_signature="int32")


def contents(**sources):
    """Returns hashes of the bytes of all files of each source, as they were when they were inspected.

    Args:
        **sources: Sources by name. Those without inspected files are skipped.

    Returns:
        A dictionary, such as `{"train_contents": "3f..."}`.
    """
    digests = {name: getattr(source, "digests", None) for name, source in sources.items()}
    return {f"{name}_contents": hashlib.sha256(d.tobytes()).hexdigest() for name, d in digests.items() if d is not None}


def identity(train, validation):
    """Returns a dictionary of hashes that identifies a run's data.

    Args:
        train: `Source` to train on.
        validation: `Source` to measure on.
    """
    hashes = {
        "arrays": getattr(train, "given", False),
        "train": train.fingerprint(),
        "validation": validation.fingerprint(),
    }
    return hashes | contents(train=train, validation=validation)


def words_of(task, asked):
    """Returns a hash of the words that a task learned from its data as a dictionary, empty without such.

    Ids alone would be those of other words too.

    Args:
        task: The task, bound to its data.
        asked: The task as it was asked for.
    """
    learned = getattr(task, "words", ())
    if not learned or getattr(asked, "words", ()):
        return {}
    return {"words": hashlib.sha256(json.dumps(learned).encode()).hexdigest()}


@contextlib.contextmanager
def named(*sources):
    """Raises one clear error with the file's name if an image file can no longer be read inside the block.

    Raises:
        ValueError: If a file of the sources was changed or removed after it was inspected.
    """
    try:
        yield
    except (tf.errors.OpError, FileNotFoundError) as error:
        paths = [path for source in sources for path in getattr(source, "paths", ())]
        inspect = getattr(sources[0], "inspect", inspect_all)  # of images, or of clips
        pictures = {str(path) for one in sources if getattr(one, "bands", None) for path in one.images}  # arrays too
        numbers = [path for path in paths if str(path).endswith(depth_maps.ENDINGS[1]) and str(path) not in pictures]
        paths = [path for path in paths if path not in {*numbers}]
        faults = [*map(depth_maps.fault, numbers), *(found.fault for found in inspect(paths))]
        for path, fault in zip([*numbers, *paths], faults):
            if fault:
                message = f"{str(path)!r} was readable when it was checked, and now is not: {fault}."
                raise ValueError(message) from None
        for source in sources:
            getattr(source, "check", lambda: None)()  # of records
        said = [line.partition("ValueError: ")[2] for line in str(error).splitlines() if "ValueError: " in line]
        if pictures and said:  # by `bands.read`, of numbers
            raise ValueError(said[0]) from None
        raise
