"""A table of the pictures that are kept, which recipes read: all but those of some findings."""

import pathlib

from keras_vit.inspecting.findings import KINDS
from keras_vit.inspecting.pictures import NONE
from keras_vit.utils import checks, tables

NAME = "metadata.csv"  # of a table that recipes read
NAMED = {f"{kind}s" if kind in ("leak", "label", "outlier") else kind: kind for kind in KINDS}  # as a caller says it


def kinds_of(words):
    """Returns the kinds that words name, such as `"leaks"`; raises ValueError for others."""
    for word in words:
        if word not in NAMED and word not in KINDS:
            raise ValueError(f"A kind of findings must be known. Received: {word!r}. {checks.near(word, NAMED)}")
    return {NAMED.get(word, word) for word in words}


def check_name(path):
    """Raises ValueError unless the name of a table ends in .csv."""
    if path.suffix != ".csv":
        raise ValueError(f"The table must end in .csv. Received: {str(path)!r}")


def write(path, inspection, kinds):
    """Writes the table; returns how many pictures are kept, and how many there are.

    Its columns are `file_name`, below the folder of the pictures; `label` and `split`, if there are any. Where the
    labels are from a CSV file, its other columns are there too. Pictures without a label are left out then: no recipe
    reads them.

    Args:
        path: The file.
        inspection: An `Inspection`.
        kinds: Kinds of findings, whose `file` is left out.
    """
    pictures = inspection.pictures
    if not pictures.files:
        raise ValueError("A table is for files. Received: pictures in memory, which have none")
    out = {one.row for one in inspection.findings if one.kind in {*kinds, "unreadable"}}
    labeled = pictures.labels is not None
    rows = {
        pictures.names[i]: {"file_name": pictures.names[i]}
        | ({"label": pictures.label(i)} if labeled else {})
        | ({"split": pictures.split(i)} if pictures.splits is not None else {})
        for i in range(len(pictures))
        if i not in out and not (labeled and pictures.labels[i] == NONE)
    }
    if pictures.table is not None and pictures.table.suffix == ".csv":
        rows = _as_in_table(pictures, rows)
    if not rows:
        raise ValueError(f"A table must name a picture. Received: none that is kept, of {len(pictures)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    tables.write(path, [*rows.values()])
    return len(rows), len(pictures) + len(pictures.unread)


def _as_in_table(pictures, rows):
    """Returns rows of the table that has the labels, of the pictures of some rows, by their names."""
    from keras_vit.data.readers import table, table_file

    header = table_file.columns_of(pictures.table)
    [column] = table.column_of("images", {}, header)
    place = pictures.table.parent
    files, below, found = table.Files(place), place.relative_to(pictures.folder).as_posix(), {}
    for _, cells in table_file.read(pictures.table, header):
        row = {name: cell or "" for name, cell in zip(header, cells) if name}
        try:
            name = (pathlib.PurePosixPath(below) / files.path_of(row[column] or None)).as_posix()
        except ValueError:  # of a file that is not there
            continue
        if name in rows:
            split = {"split": rows[name]["split"]} if "split" in rows[name] else {}
            found[name] = split | row | {column: name}
    return found


def reading(inspection, path):
    """Returns how a recipe reads the table, in one sentence."""
    pictures = inspection.pictures
    words = [f"data.source=folder:{pictures.folder}"]
    if pictures.splits is not None:
        roles = {"tr": "train", "va": "validation", "te": "test"}
        words.append("\"data.columns={'splits': 'split'}\"")
        words += [
            f"data.{roles[name[:2].lower()]}={name}" for name in pictures.split_names if name[:2].lower() in roles
        ]
    named = pictures.folder / NAME
    where = "" if path.resolve() == named.resolve() else f" as {named}"
    return f"A recipe reads it{where}: {' '.join(words)}"
