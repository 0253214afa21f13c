"""Clips that the caller has: class folders of files, or arrays."""

import itertools
import pathlib

import numpy as np

from keras_vit.data.clip_source import Clips, inspect_all
from keras_vit.data.packing import packed, unfolded, unpacked
from keras_vit.data.readers import groups, split_folders, target_arrays, tfds_clips
from keras_vit.data.readers.image_files import preparation
from keras_vit.utils import checks, clip_files, folders
from keras_vit.utils.folders import ending, is_hidden, shown
from keras_vit.utils.names import Written
from keras_vit.utils.warned import left_out, named


def from_arrays(arrays, sampling, shape, class_names=(), labeled=True):
    """Returns the source of the caller's own arrays.

    Args:
        arrays: `(clips, labels)`; or `clips` alone unless they are `labeled`. Clips are `(clips, frames, height, width,
            channels)`, 0..255, of as many frames as they may have; labels as in `arrays.from_arrays`.
        sampling: A `clip_source.Sampling`.
        shape: `(height, width, channels)` of examples, in which the frames that the model takes are folded.
        class_names: Names of the classes.
        labeled: Whether there are labels.

    Raises:
        ValueError: If there are more or fewer arrays, or one has another shape, type or range.
    """
    if not labeled and not isinstance(arrays, (tuple, list)):
        arrays = (arrays,)
    if not isinstance(arrays, (tuple, list)) or len(arrays) != 1 + labeled:
        kind = type(arrays).__name__ + (f" of {len(arrays)}" if isinstance(arrays, (tuple, list)) else "")
        raise ValueError(f"Arrays must be {'a pair (clips, labels)' if labeled else 'clips'}. Received: {kind}")
    channels = shape[2] // sampling.frames
    clips = clip_files.checked(arrays[0], (None, None, None, channels))
    clips = clips.astype("uint8", copy=False) if clips.dtype.kind in "ui" else clips.astype("float32", copy=False)
    targets = {"labels": target_arrays.labels(arrays[1], clips, class_names)} if labeled else {}
    return Clips(clips, targets, tuple(class_names), sampling=sampling)


def read_folder(path, split, data, targets, extras, sampling):
    """Reads a split of a folder of class folders of clips; arguments as in `folder.read`, and a `clip_source.Sampling`.

    Without labels among the targets, clips may lie anywhere in the folder.
    """
    root = pathlib.Path(Written().path(pathlib.Path(path).expanduser()))
    if data.columns and not groups.alone(data.columns):
        raise ValueError(
            "Of clips a table has groups alone, data.columns={'groups': 'COLUMN'}. "
            f"Received: data.columns={checks.shown(data.columns)}"
        )
    place = split_folders.place_of(root, split, "class folders" if "labels" in targets else "clips")
    names = split_folders.class_folders(place)
    if "labels" not in targets and any(
        clip_files.is_clip(path) for path in place.iterdir() if not is_hidden(path.name)
    ):
        names = []
    files_of_classes = _clips_in([place / name for name in names])
    filled = [name for name, paths in zip(names, files_of_classes) if paths]
    if len(filled) < 2 or len(filled) < len(names):
        if "labels" in targets:
            raise ValueError(
                f"{str(place)!r} must contain at least two class folders, each with clips "
                f"({', '.join(clip_files.ENDINGS)}). Received: {len(names)} folders, {len(filled)} with clips"
            )
        names, files_of_classes = [], _clips_in([place])
        if not files_of_classes[0]:
            raise ValueError(f"{str(place)!r} must contain clips ({', '.join(clip_files.ENDINGS)}). Received: none")
    paths = [*itertools.chain(*files_of_classes)]
    names, numbers = split_folders.names_of(names)
    labels = np.repeat(np.array(numbers or [0], "int32"), [*map(len, files_of_classes)])
    digests, readable = _readable(paths, data.bad_images)
    paths, targets_read = np.array(paths, object)[readable], {"labels": labels[readable]} if names else {}
    whole = Clips(paths, targets_read, tuple(names), files=True, digests=digests, sampling=sampling)
    return groups.added(whole, [root], data).part(split, split.partition("[")[0])


def _clips_in(places):
    """Returns the paths of the clips in each of some folders; a warning names the endings of other files."""
    every = folders.files_in_each(places)
    others = [path for paths in every for path in paths if not clip_files.is_clip(path)]
    if others:
        endings = sorted({ending(path) for path in others})
        left_out(f"{len(others)} files that are no clips: {', '.join(map(shown, endings[:10]))}")
    return [list(filter(clip_files.is_clip, paths)) for paths in every]


def _readable(paths, on_bad):
    """Reads the ends of every clip once: an error or a warning names what cannot be read. As `folder._readable`."""
    checked = inspect_all(paths)
    bad = [f"{shown(paths[i])} ({checked.faults[i]})" for i in sorted(checked.faults)]
    if bad and (on_bad == "raise" or len(bad) == len(paths)):
        raise ValueError(
            f"{len(bad)} of {len(paths)} clips cannot be read. Repair or remove them, or leave them out with "
            f"data.bad_images=skip:\n  {named(bad)}"
        )
    if bad:
        left_out(f"{len(bad)} of {len(paths)} clips, which cannot be read", bad)
    readable = np.delete(np.arange(len(paths)), sorted(checked.faults))
    return checked.records[readable]["digest"], readable


def reader(shape, data, sampling, **limits):
    """Returns the function from a clip's path to its pixels as evaluation sees them, `shape`; threads may call it.

    Args:
        shape: `(frames, height, width, channels)`.
        data: A `keras_vit.config.Data`, which determines how frames are resized.
        sampling: A `clip_source.Sampling`.
        **limits: `most_pixels` and `by_bytes` of `read_clip`.
    """
    frames, height, width, channels = shape
    prepare = preparation((height, width, frames * channels), data)

    def read(path):
        clip = clip_files.read_clip(path, 3, sampling.indices, **limits)
        return unfolded(prepare(unpacked(packed(clip), frames * channels)), frames)

    return read


def none(rest, split, data, *others):
    """Raises ValueError for a kind of data of which no clips are read."""
    raise ValueError(
        "Clips are read from class folders, 'folder:PATH', from 'tfds:NAME', or passed to `fit` as arrays, (clips, "
        "labels). "
        f"Received: data.source={data.source!r}"
    )


READERS = {"digits": none, "folder": read_folder, "tfds": tfds_clips.read}
