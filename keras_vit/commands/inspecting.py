"""The command inspect: what is wrong with a data set."""

import pathlib
from typing import Annotated

from tyro.conf import Positional

from keras_vit.commands.types import Flag, Folder, Number, Text, about, named

Source = Annotated[
    Positional[str],
    about("A file that the command embed wrote, a folder of images, or a recipe, whose data are inspected.", "SOURCE"),
]
Kinds = Annotated[
    tuple[str, ...],
    named("list", "Write a table of all files but those of these findings, such as leaks; recipes read it."),
]


def print_findings(
    source: Source,
    *,
    to: Annotated[
        pathlib.Path | None,
        about("Folder for findings.csv and findings.html, inspected by default; with --list, the table.", "PATH"),
    ] = None,
    kinds: Kinds = (),
    recipe: Annotated[Text, about("A recipe of the same files, which says their labels and splits.")] = None,
    folder: Annotated[Folder, about("Where the index's folder is now, if it was moved.")] = None,
    near: Number = None,
    overwrite: Flag = False,
) -> None:
    """Find copies, the same picture in two splits, labels that are likely wrong, outliers and unreadable files.

    Nothing is changed or deleted.

    Args:
        near: Similarity from which on two vectors are of nearly equal pictures; by default it depends on the model.
        overwrite: Replace what is there.
    """
    from keras_vit.commands.many import shown
    from keras_vit.inspecting import keeping
    from keras_vit.inspecting.findings import KINDS
    from keras_vit.inspecting.inspect import inspect_index
    from keras_vit.inspecting.writing import PAGE, TABLE
    from keras_vit.utils.files import check_free

    wanted = keeping.kinds_of(kinds)
    if kinds:
        to = to or pathlib.Path("keep.csv")
        keeping.check_name(to)
        keeping.check_files(source)
        check_free(to, overwrite)
    place = None if kinds else to or pathlib.Path("inspected")
    found = inspect_index(source, recipe=recipe, folder=folder, near=near, to=place, overwrite=overwrite)
    for kind, count in found.counts().items():
        if count:
            print(f"{KINDS[kind].lower()}: {count:,}")
    for text in found.remarks:
        print(f"note: {shown(text)}")
    if kinds:
        kept, count = keeping.write(to, found, wanted)
        print(f"{to}: {kept:,} of {count:,} pictures")
        print(keeping.reading(found, to))
    else:
        print(f"{place / TABLE}: {len(found.findings):,} findings\n{place / PAGE}")
