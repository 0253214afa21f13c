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
    found, said = with_tables(found)
    if splits is None and any(said["split"]):
        found = found.divided(said["split"])
    if any(said["labels"]):
        return found.labeled(said["labels"])
    return found.labeled([folders[i][0] if folders[i] else None for i in kept]) if len(classes) > 1 else found


def with_tables(pictures, columns=None):
    """Returns `Pictures` with the tables next to the files or above, and what these say.

    Args:
        pictures: `Pictures`.
        columns: As in `Data.columns`: the names of columns that are not the usual ones.

    Returns:
        The `Pictures`; and a dictionary with the `"labels"` and the `"split"` of each, `None` for none.
    """
    from keras_vit.data.readers import table, table_file

    tops = {pathlib.PurePosixPath(name).parts[0] for name in pictures.names if "/" in name}
    names, used = {name: i for i, name in enumerate(pictures.names)}, []
    said = {"labels": [None] * len(pictures), "split": [None] * len(pictures)}
    for place in (pictures.folder, *(pictures.folder / top for top in sorted(tops))):
        file = table_file.find(place)
        header = table_file.columns_of(file) if file else []
        named = {name: table.column_of(name, columns or {}, header)[:1] for name in ("images", "labels")}
        named[SPLIT] = (SPLIT,) if SPLIT in header else ()
        named = {name: column for name, (column,) in ((name, each) for name, each in named.items() if each)}
        if "images" not in named:
            continue
        files, start = table.Files(place), place.relative_to(pictures.folder).as_posix()
        for _, (cell, *cells) in table_file.read(file, [*named.values()]):
            try:
                name = (pathlib.PurePosixPath(start) / files.path_of(cell)).as_posix()
            except ValueError:  # of a file that is not there
                continue
            if name in names:
                for kind, value in zip([*named][1:], cells):
                    said[kind][names[name]] = value
        used.append((file, named["images"]))
    return dataclasses.replace(pictures, tables=tuple(used)), said


def as_in(pictures, others):
    """Returns those `Pictures` that are also among others, with the labels and splits of these.

    A link counts as the file that it is, if the others have it by its own path. A picture that is in several splits is
    there for each.

    Raises:
        ValueError: If none is.
    """
    if not (pictures.files and others.files):
        raise ValueError("`recipe` must be of the files that are inspected. Received: a recipe of images in memory")
    own, real = {}, {}
    for i, name in enumerate(others.names):
        own.setdefault(_path(others.folder, name), []).append(i)
        real.setdefault(os.path.realpath(others.images[i]), []).append(i)
    found = []
    for i, name in enumerate(pictures.names):
        places = own.get(_path(pictures.folder, name)) or real.get(os.path.realpath(pictures.folder / name), [])
        found += [(i, place) for place in places]
    if not found:
        raise ValueError(
            f"`recipe` must be of the files that are inspected. Received: one of {str(others.folder)!r} for "
            f"{str(pictures.folder)!r}"
        )
    pictures = pictures.part([i for i, _ in found], "that the recipe does not read")
    pictures = pictures.labeled([others.label(place) for _, place in found])
    pictures = pictures.divided([others.split(place) for _, place in found])
    return dataclasses.replace(pictures, unread=pictures.unread | others.unread)


def _path(folder, name):
    """Returns the path of a file: without links of its folder, but as it is called there."""
    return os.path.normpath(os.path.join(os.path.realpath(folder), name))


def with_given(pictures, labels, splits):
    """Returns `Pictures` with labels and splits that the caller gives, a text for each picture; `None` keeps theirs.

    Args:
        pictures: `Pictures`.
        labels, splits: Lists of texts, or `None`; if the pictures are a part, of all.

    Raises:
        ValueError: If they are not as many.
    """
    count = pictures.count or len(pictures)
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
