"""Clips and their targets: sampled frames are folded into the channels of one image, so that all change alike."""

import dataclasses
import functools

import numpy as np
import tensorflow as tf

from keras_vit.data.draws import draws
from keras_vit.data.inspection import DIGEST, RULES, Checked, Inspected, digest_of_file
from keras_vit.data.known_files import KnownFiles
from keras_vit.data.memory import Source, fits
from keras_vit.data.packing import folded, packed
from keras_vit.utils import clip_files
from keras_vit.utils.folders import shown
from keras_vit.utils.sampling import frame_indices, view_indices
from keras_vit.utils.warned import refuse_or_leave_out

SCALE = 2**24  # of random numbers as integers, among the keys
READING = 2  # raise it when another frame of the same file may be the first, the last, or of another size


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How frames are sampled; see `frame_indices`. For evaluation, of how many parts of a clip, and crops of frames."""

    frames: int
    stride: int = 1
    segments: bool = False
    views: int = 1
    crops: int = 1
    centered: bool = False  # around the middle frame, in training too

    def indices(self, count, numbers=None):
        """Returns the indices of the frames of a clip of `count`; `numbers` as in `frame_indices`."""
        return frame_indices(count, self.frames, self.stride, self.segments, numbers, self.centered)

    @property
    def rule(self):
        """What a model's metadata say of it, as `frames_rule` reads them."""
        return {"stride": self.stride, "segments": self.segments, **({"centered": True} if self.centered else {})}

    @property
    def count(self):
        """Views of a video that are averaged in evaluation."""
        return self.views * self.crops

    @property
    def choices(self):
        """For each view, the function from a number of frames to the indices of those that it has."""
        rule = (self.frames, self.stride, self.segments)
        return [lambda count, i=i: view_indices(count, *rule, i, self.views) for i in range(self.views)]


@dataclasses.dataclass(frozen=True)
class Clips(Source):
    """Clips and targets: a `Source` whose examples are images of `frames * channels` channels.

    `images` is an array `(n, frames, height, width, channels)`, or a vector of paths. Of each clip `sampling.frames`
    are read; in training from a start that is drawn again in each epoch.
    """

    sampling: Sampling | None = None

    @property
    def channels(self):
        """The numbers of channels of examples that a model may have."""
        own = (self.images.shape[-1],) if self.images.ndim == 5 else (1, 3)
        return tuple(self.sampling.frames * each for each in own)

    def sizes(self):
        """Returns the name and the `(height, width)` of each clip, of files those of the first frame."""
        if self.images.ndim == 5:
            return [("clips", self.images.shape[2:4])]
        return [(str(path), clip.size[::-1]) for path, clip in zip(self.images, inspect_all(self.images))]

    def inspect(self, paths):
        """Returns the `Checked` of the source's files."""
        return inspect_all(paths)

    def shuffled(self, seed, epoch, count):
        """Returns the keys of one epoch like `Source.shuffled`, each with the random numbers that sample its frames."""
        numbers = self.sampling.frames if self.sampling.segments else 1
        keys = super().shuffled(seed, epoch, count)

        def with_numbers(chunk, keys):
            drawn = draws(seed, epoch, chunk * count)("frames", count, numbers) * SCALE
            return tf.concat([tf.cast(keys, "int64")[:, None], tf.cast(drawn, "int64")], axis=1)

        return keys.enumerate().map(with_numbers)

    def reader(self):
        """Returns a function from keys to a dictionary of items: clips as images, and each target."""
        columns = {name: self._tensor(name, column) for name, column in self.targets.items()}

        def look_up(keys):
            places = keys if keys.shape.rank == 1 else keys[:, 0]
            if self.images.ndim == 1:
                clips = tf.ensure_shape(tf.numpy_function(self._of_files, [keys], "string", stateful=False), (None,))
            else:
                height, width, channels = self.images.shape[2:]
                clips = tf.numpy_function(self._of_arrays, [keys], self.images.dtype.name, stateful=False)
                clips = tf.ensure_shape(clips, (None, height, width, self.sampling.frames * channels))
            return {"images": clips, **{name: tf.gather(column, places) for name, column in columns.items()}}

        return look_up

    def clip(self, place, choose):
        """Returns frames of the clip at a place, `(frames, height, width, channels)`; of files always in color.

        Args:
            place: Its position among the clips.
            choose: Function from the number of its frames to the indices of those wanted.
        """
        if self.images.ndim == 5:
            return self.images[place, choose(self.images.shape[1])]
        if not self._fits:
            return self.read_file(self.images[place], choose)
        always = self.sampling.centered  # the same frames, whatever is drawn
        if place not in self._decoded:
            self._decoded[place] = self.read_file(self.images[place], choose if always else np.arange)
        clip = self._decoded[place]
        return clip if always else clip[choose(len(clip))]

    def read_file(self, file, choose):
        """Returns frames of one of `images`, which are no pixels; `choose` as in `clip`."""
        return clip_files.read_clip(file, 3, choose, centered=self.sampling.centered)

    def _of_key(self, key):
        place, *numbers = np.atleast_1d(key).tolist()
        numbers = np.divide(numbers, SCALE) if numbers else None
        return self.clip(place, lambda count: self.sampling.indices(count, numbers))

    def _of_arrays(self, keys):
        """Returns the clips of some keys, `(keys, height, width, frames * channels)`."""
        return np.stack([folded(self._of_key(key)) for key in keys])

    def _of_files(self, keys):
        """Returns the clips of some keys as bytes; see `packed`."""
        return np.array([packed(self._of_key(key)) for key in keys], object)

    @functools.cached_property
    def _fits(self):
        """Whether all frames of all files fit into memory: each file is then decoded once."""
        records = inspect_all(self.images).records
        return fits(3 * int((records["size"].prod(axis=1, dtype="int64") * records["frames"]).sum()))

    @functools.cached_property
    def _decoded(self):
        return {}


FIELDS = (("digest", "u1", (DIGEST,)), ("size", "u4", (2,)), ("frames", "u4"))


def inspect_all(paths):
    """Reads the first frame of clips, unless that was done before and they are the same; returns their `Checked`."""
    paths = list(map(str, paths))
    clip_files.need(paths)
    return CheckedClips(*_known().look_up(paths, "checking clips"))


def readable(paths, on_bad, faults=None, targets=None):
    """Reads the ends of every clip once: an error or a warning names what cannot be read.

    Args:
        paths: The files.
        on_bad: `Data.bad_images`.
        faults: What else is wrong with some, by their positions, such as with their boxes.
        targets: What these faults are of, such as `"boxes"`.

    Returns:
        Hashes of the readable files, one row for each, and the positions of these files among `paths`.
    """
    checked = inspect_all(paths)
    faults = {**(faults or {}), **checked.faults}
    bad = [f"{shown(paths[i])} ({faults[i]})" for i in sorted(faults)]
    what = "cannot be read" + (f", or have wrong {targets}" if targets else "")
    refuse_or_leave_out(bad, len(paths), "clips", on_bad, what)
    kept = np.delete(np.arange(len(paths)), sorted(faults))
    return checked.records[kept]["digest"], kept


class CheckedClips(Checked):
    """The `Inspected` of each of many clips; their `records` have the fields `FIELDS`."""

    def __getitem__(self, place):
        if place in self.faults:
            return Inspected(self.faults[place])
        digest, size = (self.records[name][place] for name in ("digest", "size"))
        return Inspected(None, digest.tobytes(), tuple(size.tolist()))


@functools.cache
def _known():
    return KnownFiles(f"clips {RULES} {READING}", FIELDS, lambda paths: [*map(_inspected, paths)])


def _inspected(path):
    """Returns the fields of a clip, or why it cannot be read: its first and its last frame are decoded."""
    counts = []

    def ends(count):
        counts.append(count)
        return [0, count - 1]

    try:
        first, _ = clip_files.read_clip(path, 3, ends)
        digest = digest_of_file(path)
    except (ValueError, OSError) as error:
        return str(error).removeprefix(f"{path!r} ").removesuffix(".")
    return digest, first.shape[1::-1], counts[0]
