"""A table of the pictures that are kept, which recipes read: all but those of some findings."""

import pathlib
import shlex

from keras_vit.inspecting.findings import KINDS
from keras_vit.inspecting.opening import has_files
from keras_vit.inspecting.pictures import NONE
from keras_vit.utils import checks, tables

NAME = "metadata.csv"  # of a table that recipes read
OWN = ("file_name", "label", "split")  # columns that it has without another table
NAMED = {f"{kind}s" if kind in ("leak", "label", "outlier") else kind: kind for kind in KINDS}  # as a caller says it


def kinds_of(words):
    """Returns the kinds that words name, such as `"leaks"`; raises ValueError for others."""
    for word in words:
        if word not in NAMED and word not in KINDS:
            raise ValueError(f"A kind of findings must be known. Received: {word!r}. {checks.near(word, NAMED)}")
    return {NAMED.get(word, word) for word in words}


def check_name(path):
    """Raises ValueError unless the name of a table ends in .csv, and there is no other table in its place."""
    from keras_vit.data.readers import table_file

    if path.suffix != ".csv":
        raise ValueError(f"The table must end in .csv. Received: {str(path)!r}")
    if path.name == NAME:
        for other in table_file.NAMES:
            if other != NAME and (path.parent / other).exists():
                raise ValueError(f"A folder has one table. Received: {str(path)!r}, and there is {other!r}")


def check_files(source):
    """Raises ValueError if the pictures of a source, the name of a recipe, are not files."""
    if not has_files(source):
        raise ValueError(f"A table is for files. Received: {source!r}, whose pictures are none")


def write(path, inspection, kinds):
    """Writes the table; returns how many pictures are kept, and how many there are.

    Its columns are `file_name`, below the folder of the pictures; `label` and `split`, if there are any. If there is a
    table next to the pictures, its rows and columns are those of this one too. Pictures that it does not name, or that
    have no label among others that have, are left out: no recipe reads them.

    Args:
        path: The file.
        inspection: An `Inspection`.
        kinds: Kinds of findings, whose `file` is left out.
    """
    pictures = inspection.pictures
    out = {one.row for one in inspection.findings if one.kind in {*kinds, "unreadable"}}
    labeled = pictures.labels is not None
    rows = {
        pictures.names[i]: {"file_name": pictures.names[i]}
        | ({"label": pictures.label(i)} if labeled else {})
        | ({"split": pictures.split(i)} if pictures.splits is not None else {})
        for i in range(len(pictures))
        if i not in out and not (labeled and pictures.labels[i] == NONE)
    }
    written = [*(_as_in_tables(pictures, rows) if pictures.tables else rows.items())]
    if not written:
        raise ValueError(f"A table must name a picture. Received: none that is kept, of {len(pictures)}")
    _check_columns(path, {name for _, row in written for name in row})
    path.parent.mkdir(parents=True, exist_ok=True)
    tables.write(path, [row for _, row in written])
    return len({name for name, _ in written}), len(pictures) + len(pictures.unread)


def _as_in_tables(pictures, rows):
    """Yields names of pictures that are in tables next to them and in `rows`, and their rows with what these say."""
    from keras_vit.data.readers import table, table_file

    for file, column in pictures.tables:
        header = [name for name in table_file.columns_of(file) if name]
        added = {"split"} | ({"label"} if not table.column_of("labels", {}, header) else set())
        files, below = table.Files(file.parent), file.parent.relative_to(pictures.folder).as_posix()
        for _, cells in table_file.read(file, header):
            row = {name: "" if cell is None else cell for name, cell in zip(header, cells)}
            try:
                name = (pathlib.PurePosixPath(below) / files.path_of(row[column] or None)).as_posix()
            except ValueError:  # of a file that is not there
                continue
            if name in rows:
                if any(isinstance(cell, (list, dict)) for cell in cells):
                    raise ValueError(f"The table is a CSV, which has no lists. Received: {file.name!r}, which has some")
                more = {key: value for key, value in rows[name].items() if key in added}
                yield name, row | more | {column: name}


def _check_columns(path, names):
    """Raises ValueError if there is a table with columns that the new one lacks."""
    from keras_vit.data.readers import table_file

    old = table_file.columns_of(path) if path.is_file() and path.stat().st_size else []
    lost = [name for name in old if name and name not in {*names, *OWN}]
    if lost:
        raise ValueError(f"{str(path)!r} has columns that would be lost: {', '.join(map(repr, lost))}")


def reading(inspection, path):
    """Returns how a recipe reads the table, in one sentence."""
    pictures = inspection.pictures
    words = [shlex.quote(f"data.source=folder:{pictures.folder}")]
    if pictures.splits is not None:
        words.append("\"data.columns={'splits': 'split'}\"")
        words += [shlex.quote(f"data.{role}={name}") for role, name in _roles(pictures.split_names).items()]
    named = pictures.folder / NAME
    where = "" if path.resolve() == named.resolve() else f" as {named}"
    return f"A recipe reads it{where}: {' '.join(words)}"


def _roles(names):
    """Returns the split of each role: of validation that of the test, and the other way around, where there is one."""
    starts = {"train": ("tr",), "validation": ("va", "de"), "test": ("te",)}
    found = {role: next((name for name in names if name[:2].lower() in start), None) for role, start in starts.items()}
    found["validation"] = found["validation"] or found["test"] or found["train"]
    found["test"] = found["test"] or found["validation"]
    return {role: name for role, name in found.items() if name}
