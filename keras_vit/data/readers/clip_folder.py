"""Clips that the caller has: class folders of files, files with a table of texts or COCO's boxes, or arrays."""

import itertools
import pathlib

import numpy as np

from keras_vit.data.clip_source import Clips, readable
from keras_vit.data.packing import packed, unfolded, unpacked
from keras_vit.data.readers import clip_boxes, groups, split_folders, table, table_file, tfds_clips
from keras_vit.data.readers.image_files import preparation
from keras_vit.data.readers.table_cells import group_of
from keras_vit.data.targets import KINDS
from keras_vit.utils import checks, clip_files, folders
from keras_vit.utils.folders import ending, is_hidden, shown
from keras_vit.utils.names import Written
from keras_vit.utils.warned import left_out

WITH_TEXTS = ("images", "texts", "groups", "splits")  # columns of a table of clips and their texts


def from_arrays(arrays, sampling, shape, class_names=(), targets=("labels",)):
    """Returns the source of the caller's own arrays.

    Args:
        arrays: `(clips, labels)`, `(clips, texts)` or `(clips, bounding_boxes)`; `clips` alone without targets. Clips
            are `(clips, frames, height, width, channels)`, 0..255, of as many frames as they may have; targets as in
            `arrays.from_arrays`, boxes of the middle frame.
        sampling: A `clip_source.Sampling`.
        shape: `(height, width, channels)` of examples, in which the frames that the model takes are folded.
        class_names: Names of the classes.
        targets: Their names: `("labels",)`, `("texts",)`, `("bounding_boxes",)` or none.

    Raises:
        ValueError: If there are more or fewer arrays, or one has another shape, type or range.
    """
    if not targets and not isinstance(arrays, (tuple, list)):
        arrays = (arrays,)
    if not isinstance(arrays, (tuple, list)) or len(arrays) != 1 + len(targets):
        kind = type(arrays).__name__ + (f" of {len(arrays)}" if isinstance(arrays, (tuple, list)) else "")
        raise ValueError(f"Arrays must be {f'a pair (clips, {targets[0]})' if targets else 'clips'}. Received: {kind}")
    channels = shape[2] // sampling.frames
    clips = clip_files.checked(arrays[0], (None, None, None, channels))
    clips = clips.astype("uint8", copy=False) if clips.dtype.kind in "ui" else clips.astype("float32", copy=False)
    frames = clips[:, 0]  # of their size: boxes are those of one
    found = {name: KINDS[name].array(values, frames, class_names) for name, values in zip(targets, arrays[1:])}
    alike = np.array([group_of(clip.tobytes()) for clip in clips], "int64") if "texts" in found else None
    return Clips(clips, found, tuple(class_names), groups=alike, sampling=sampling)


def read_folder(path, split, data, targets, extras, sampling):
    """Reads a split of a folder of class folders of clips; arguments as in `folder.read`, and a `clip_source.Sampling`.

    Without labels among the targets, clips may lie anywhere in the folder. Texts are in a table, boxes in COCO's file.
    """
    root = pathlib.Path(Written().path(pathlib.Path(path).expanduser()))
    if "bounding_boxes" in targets:
        return clip_boxes.read(root, split, data, sampling)
    if "texts" in targets:
        return _with_texts(root, split, data, sampling)
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
    digests, kept = readable(paths, data.bad_images)
    paths, targets_read = np.array(paths, object)[kept], {"labels": labels[kept]} if names else {}
    whole = Clips(paths, targets_read, tuple(names), files=True, digests=digests, sampling=sampling)
    return groups.added(whole, [root], data).part(split, split.partition("[")[0])


def _with_texts(root, split, data, sampling):
    """Reads the clips of a split that a table names, in their folder or above it, with the texts of each row."""
    columns, base = data.columns or {}, split.partition("[")[0]
    unknown = sorted({*columns} - {*WITH_TEXTS})
    if unknown:
        raise ValueError(
            f"`data.columns` may name the columns of clips, {', '.join(WITH_TEXTS)}. Received: {unknown[0]!r}"
        )
    by_column = "splits" in columns
    place = split_folders.place_of(root, split, "clips", by_column)
    above = [place, *(folder for folder in place.parents if root in (folder, *folder.parents))]
    file = next(filter(None, map(table_file.find, above)), None)
    if file is None:
        raise ValueError(
            f"{str(root)!r} must have a table, {' or '.join(table_file.NAMES)}, with texts for each clip. "
            "Received: none"
        )
    wanted = base if by_column and base != "all" else None
    rows = table.read(file, place, columns, ("texts",), wanted, skip=data.bad_images == "skip")
    others = [path for path in rows.paths if not clip_files.is_clip(path)]
    if others:
        raise ValueError(
            f"{file.name} must name clips ({', '.join(clip_files.ENDINGS)}). Received: {len(others)} other files, such "
            f"as {shown(others[0])!r}"
        )
    digests, kept = readable(rows.paths, data.bad_images)
    of_rows = None if rows.groups is None else rows.groups[kept]
    paths, texts = np.array(rows.paths, object)[kept], rows.targets["texts"][kept]
    whole = Clips(paths, {"texts": texts}, (), files=True, groups=of_rows, digests=digests, sampling=sampling)
    return whole.part(split, base)


def _clips_in(places):
    """Returns the paths of the clips in each of some folders; a warning names the endings of other files."""
    every = folders.files_in_each(places)
    others = [path for paths in every for path in paths if not clip_files.is_clip(path)]
    if others:
        endings = sorted({ending(path) for path in others})
        left_out(f"{len(others)} files that are no clips: {', '.join(map(shown, endings[:10]))}")
    return [list(filter(clip_files.is_clip, paths)) for paths in every]


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
        clip = clip_files.read_clip(path, 3, sampling.indices, centered=sampling.centered, **limits)
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
