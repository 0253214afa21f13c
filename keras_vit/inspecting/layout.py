"""Labels and splits of the files of a folder: from class folders, folders of splits, and tables."""

import dataclasses
import os
import pathlib

import numpy as np

from keras_vit.utils.checks import shown
from keras_vit.utils.folders import SPLITS

OBJECTS = "images"  # the folder of images next to one of masks, annotations or labels, which are no classes
SPLIT = "split"  # a column of a table, as in those that `keeping` writes
OTHERS = {"masks", "annotations", "labels", "panoptic", "depths", "references"}


def laid_out(pictures):
    """Returns `Pictures` of a folder with their labels and splits, and without masks and the like.

    Args:
        pictures: A `Pictures` of files.
    """
    folders = [pathlib.PurePosixPath(name).parts[:-1] for name in pictures.names]
    first = {parts[0] for parts in folders if parts}
    if OBJECTS in first and first - {OBJECTS} and {name.lower() for name in first - {OBJECTS}} <= OTHERS:
        folders = [parts[1:] if parts[:1] == (OBJECTS,) else None for parts in folders]  # YOLO: images/train
        first = {parts[0] for parts in folders if parts}
    splits, named = None, {name for name in first if name.lower() in SPLITS}
    if named and (named == first or len(named) > 1):  # a class may be called "train"
        splits = [parts[0] if parts and parts[0] in named else None for parts in folders]
        folders = [parts[1:] if parts else parts for parts in folders]
    classes = {parts[0] for parts in folders if parts}
    if OBJECTS in classes:  # train/images next to train/annotations
        beside = {name.lower() for name in classes - {OBJECTS}} <= OTHERS
        folders = [None if beside and parts and parts[0] != OBJECTS else parts for parts in folders]
        classes = set() if beside else classes
    kept = [i for i, parts in enumerate(folders) if parts is not None]
    found = pictures.part(kept, "in folders of masks, annotations and the like")
    if splits is not None:
        found = found.divided([splits[i] for i in kept])
    said = _from_tables(found)
    if splits is None and any(said["split"]):
        found = found.divided(said["split"])
    if any(said["labels"]):
        return found.labeled(said["labels"], said["table"])
    return found.labeled([folders[i][0] if folders[i] else None for i in kept]) if len(classes) > 1 else found


def _from_tables(pictures):
    """Returns what tables next to the files or above say: a dictionary with the `"labels"` and the `"split"` of each.

    `"table"` is the one table, `None` if there are several.
    """
    from keras_vit.data.readers import table, table_file

    tops = {pathlib.PurePosixPath(name).parts[0] for name in pictures.names if "/" in name}
    names, used = {name: i for i, name in enumerate(pictures.names)}, []
    said = {"labels": [None] * len(pictures), "split": [None] * len(pictures)}
    for place in (pictures.folder, *(pictures.folder / top for top in sorted(tops))):
        file = table_file.find(place)
        header = table_file.columns_of(file) if file else []
        columns = {name: table.column_of(name, {}, header)[:1] for name in ("images", "labels")}
        if not all(columns.values()):
            continue
        columns = {name: column for name, (column,) in columns.items()} | {n: n for n in (SPLIT,) if n in header}
        files, start = table.Files(place), place.relative_to(pictures.folder).as_posix()
        for _, (cell, *cells) in table_file.read(file, [*columns.values()]):
            try:
                name = (pathlib.PurePosixPath(start) / files.path_of(cell)).as_posix()
            except ValueError:  # of a file that is not there
                continue
            if name in names:
                for kind, value in zip([*columns][1:], cells):
                    said[kind][names[name]] = value
        used.append(file)
    return said | {"table": used[0] if len(used) == 1 else None}


def as_in(pictures, others):
    """Returns those `Pictures` that are also among others, with the labels and splits of these.

    Raises:
        ValueError: If none is.
    """
    if not (pictures.files and others.files):
        raise ValueError("`recipe` must be of the files that are inspected. Received: a recipe of images in memory")
    places = {os.path.realpath(path): i for i, path in enumerate(others.images)}
    found = [places.get(os.path.realpath(os.path.join(pictures.folder, name))) for name in pictures.names]
    kept = [i for i, place in enumerate(found) if place is not None]
    if not kept:
        raise ValueError(
            f"`recipe` must be of the files that are inspected. Received: one of {str(others.folder)!r} for "
            f"{str(pictures.folder)!r}"
        )
    pictures = pictures.part(kept, "that the recipe does not read").labeled(
        [others.label(found[i]) for i in kept], others.table
    )
    pictures = pictures.divided([others.split(found[i]) for i in kept])
    return dataclasses.replace(pictures, unread=pictures.unread | others.unread)


def with_given(pictures, labels, splits, count=None):
    """Returns `Pictures` with labels and splits that the caller gives, a text for each picture; `None` keeps theirs.

    Args:
        pictures: `Pictures`.
        labels, splits: Lists of texts, or `None`.
        count: Number of all pictures, of which these may be a part.

    Raises:
        ValueError: If they are not as many.
    """
    count = count or len(pictures)
    for name, texts in (("labels", labels), ("splits", splits)):
        if texts is None:
            continue
        texts = texts.tolist() if isinstance(texts, np.ndarray) else texts
        if not isinstance(texts, (list, tuple)) or len(texts) != count:
            given = len(texts) if isinstance(texts, (list, tuple)) else shown(texts)
            raise ValueError(f"`{name}` must be a list, one for each of the {count} pictures. Received: {given}")
        texts = texts if pictures.rows is None else [texts[i] for i in pictures.rows]
        pictures = pictures.labeled(texts) if name == "labels" else pictures.divided(texts)
    return pictures
