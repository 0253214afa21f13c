"""Labels and splits of the files of a folder: from class folders, folders of splits, and tables."""

import dataclasses
import os
import pathlib

import numpy as np

from keras_vit.utils.checks import shown
from keras_vit.utils.folders import SPLITS

OBJECTS = "images"  # the folder of images next to one of masks, annotations or labels, which are no classes
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
    splits = None
    if first and {name.lower() for name in first} <= SPLITS:
        splits = [parts[0] if parts else None for parts in folders]
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
    if said is None and len(classes) > 1:
        said = [folders[i][0] if folders[i] else None for i in kept], None
    return found if said is None else found.labeled(said[0], said[1])


def _from_tables(pictures):
    """Returns the label of each file from tables next to it or above, and the one table; `None` if there is none."""
    from keras_vit.data.readers import table, table_file

    tops = {pathlib.PurePosixPath(name).parts[0] for name in pictures.names if "/" in name}
    names, labels, used = {name: i for i, name in enumerate(pictures.names)}, [None] * len(pictures), []
    for place in (pictures.folder, *(pictures.folder / top for top in sorted(tops))):
        file = table_file.find(place)
        header = table_file.columns_of(file) if file else []
        columns = [table.column_of(name, {}, header) for name in ("images", "labels")]
        if not all(columns):
            continue
        files, start = table.Files(place), place.relative_to(pictures.folder)
        for _, (cell, label) in table_file.read(file, [name for [name] in columns]):
            try:
                name = (pathlib.PurePosixPath(start.as_posix()) / files.path_of(cell)).as_posix()
            except ValueError:  # of a file that is not there
                continue
            if name in names:
                labels[names[name]] = label
        used.append(file)
    return (labels, used[0] if len(used) == 1 else None) if any(label is not None for label in labels) else None


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
