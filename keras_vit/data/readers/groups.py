"""Groups of images whose targets are in other files than a table: class folders, masks, depth, boxes, clips.

The nearest table above an image says its group, so a table may be in the folder of all splits, in that of one, or next
to the images.
"""

import dataclasses
import os
import pathlib

import numpy as np

from keras_vit.data.readers import table, table_file
from keras_vit.utils.names import composed
from keras_vit.utils.warned import named


def alone(columns):
    """Returns whether `Data.columns` names groups, and no target."""
    return "groups" in columns and {*columns} <= {"images", "groups"}


def added(source, roots, data):
    """Returns a source of files with the groups that tables say, or as it is where `data.columns` names none.

    Args:
        source: A `memory.Source` of files.
        roots: Folders above which no table is looked for.
        data: A `keras_vit.config.Data`; `columns` and `bad_images` are read.

    Raises:
        ValueError: For images without a table or without a row, and as `table.read`.
    """
    columns = data.columns or {}
    if not alone(columns):
        return source
    paths = [_place(path) for path in source.images]
    roots = [pathlib.Path(_place(root)) for root in roots]
    near = {folder: _nearest(pathlib.Path(folder), roots) for folder in dict.fromkeys(map(os.path.dirname, paths))}
    groups = {}
    for file in filter(None, dict.fromkeys(near.values())):
        rows = table.read(file, file.parent, columns, (), skip=data.bad_images == "skip")
        groups |= zip(map(_place, rows.paths), rows.groups.tolist())
    lacking = [path for path in paths if path not in groups]
    if lacking:
        files = ", ".join(repr(str(file)) for file in dict.fromkeys(near.values()) if file)
        raise ValueError(
            f"Each image must have a row in a table with the column {columns['groups']!r} of its group, "
            f"{' or '.join(table_file.NAMES)}, in a folder above it. Received: {files or 'no table'}, and "
            f"{len(lacking)} of {len(paths)} images without:\n  {named(lacking)}"
        )
    return dataclasses.replace(source, groups=np.array([groups[path] for path in paths], "int64"))


def _place(path):
    return composed(os.path.abspath(os.fspath(path)))


def _nearest(folder, roots):
    """Returns the table in a folder or the nearest one above it that is not above all roots, a path, or `None`."""
    chain = [folder, *folder.parents]
    ends = [chain.index(root) + 1 for root in roots if root in chain]
    return next(filter(None, map(table_file.find, chain[: max(ends, default=1)])), None)
