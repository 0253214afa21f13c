"""Finds what is wrong with a data set: copies, leaks between splits, wrong labels, outliers, unreadable files."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_vit.inspecting import findings
from keras_vit.inspecting.findings import Finding
from keras_vit.inspecting.pictures import NONE, Pictures
from keras_vit.utils import checks

VECTORS = "the index of a model, which the command embed writes"


class Inspection(NamedTuple):
    """What was found in a data set."""

    findings: list[Finding]  # by kind, the surest of each first
    remarks: list[str]  # what could not be looked for, and why; and how sure the rest is
    pictures: Pictures

    def counts(self):
        """Returns the number of findings of each kind, a dictionary."""
        kinds = [one.kind for one in self.findings]
        return {kind: kinds.count(kind) for kind in findings.KINDS}


def inspect_index(
    index: Any,
    labels: Sequence[str] | None = None,
    *,
    splits: Sequence[str] | None = None,
    recipe: Any = None,
    folder: str | os.PathLike | None = None,
    near: float | None = None,
    to: str | os.PathLike | None = None,
    overwrite: bool = False,
) -> Inspection:
    """Finds copies, leaks between splits, labels that are likely wrong, outliers and unreadable files.

    Nothing is changed or deleted. Exact and near copies are found by pixels, of all formats that are read; near ones,
    also by the vectors of an index. Wrong labels and outliers need vectors.

    Args:
        index: An `Index`, or the path of its file; or a folder, whose pictures are compared by their pixels; or a
            recipe, its name or its file, whose training, validation and test data are inspected.
        labels: Class of each picture, `None` for those without. By default those of the recipe, of a table next to the
            pictures, or the class folders.
        splits: Split of each picture, such as `"train"`. By default those of the recipe, the folders `train`,
            `validation` and `test`, or the column `split` of that table.
        recipe: A recipe of the same files, which says their labels and splits.
        folder: Where the folder of the index is now, if it was moved.
        near: Cosine similarity from which on two vectors are of nearly equal pictures, whatever their pixels are.
            `None` to decide by pixels among neighbors; where the pictures are not there, by a tenth of the usual
            distance to the tenth neighbor.
        to: Folder for `findings.csv` and `findings.html`; `None` to write nothing.
        overwrite: Whether to replace these files.

    Returns:
        An `Inspection`: `findings`, rows with the fields `kind`, `file`, `other`, `label`, `suggested`, `score`,
        `split`, `other_split` and `why`; and `remarks`, what could not be looked for. The score of copies is how alike
        they are, at most 1; of a label, how sure the classifier and the neighbors are of another one, 0 to 1; of an
        outlier, how many times the usual distance it is away.

    Raises:
        ValueError: For fewer than two pictures, labels or splits of another number, an index of patch tokens, or `near`
            or `folder` without an index.
        FileNotFoundError: If there is no such file, folder or recipe.
        FileExistsError: If there are findings in the folder already, unless `overwrite`.
        ImportError: With `to`, if jinja2 is not installed.
    """
    from keras_vit.inspecting import writing  # here, since whoever imports the package needs none of it
    from keras_vit.inspecting.opening import is_index, opened

    checks.switch(overwrite=overwrite)
    if near is not None:
        checks.rate(near=near)
    place = None if to is None else writing.place(to, overwrite)
    for name, value in (("near", near), ("folder", folder)):
        if value is not None and not is_index(index):
            raise ValueError(
                f"`{name}` is for an index of vectors. Received: {name}={value!r} for {checks.shown(index):.60}"
            )
    pictures, vectors = opened(index, labels, splits, recipe, folder)
    found = Inspection(*_found(pictures, vectors, near), pictures)
    if place is not None:
        writing.write(place, found)
    return found


def _found(pictures, vectors, similarity):
    """Returns the findings, and remarks."""
    from keras_vit.inspecting import exact, graph, pixels
    from keras_vit.inspecting import near as nearly

    remarks, found = [*pictures.left_out], [_unread(*item) for item in pictures.unread.items()]
    groups, rows = exact.alone(len(pictures)), np.arange(len(pictures))
    thumbs = grays = None
    if pictures.images is not None:
        scanned = pixels.scan(pictures)
        found += [findings.single("unreadable", pictures, i, None, why) for i, why in scanned.faults.items()]
        rows = np.delete(rows, [*scanned.faults])
        groups = exact.groups(scanned.digests, pictures.splits)
        thumbs, grays = scanned.thumbs, scanned.grays
        found += exact.find(pictures, groups, rows)
    if pictures.splits is None:
        remarks.append("Leaks: no folders of splits, such as train and test; a recipe may name the splits")
    elif len({*pictures.ranks.tolist()} - {NONE}) < 2:
        remarks.append(f"Leaks: there is one split, {pictures.split_names[0]!r}")
    judged = []  # of one of equal pictures
    different = rows[groups.first[rows]]  # of equal pictures one for each split
    pairs = nearly.Pairs(pictures.ranks, groups)
    if thumbs is not None and len(different) > 1:
        plain = nearly.add_alike(pairs, thumbs, grays, different)
        if plain:
            remarks.append(f"Near copies among {plain:,} plain pictures, which look alike anyway")
    if vectors is None:
        remarks.append(f"Near copies by vectors, labels and outliers: they need {VECTORS}")
    elif len(different) < 2:
        remarks.append(f"Labels and outliers: they need two different pictures, and there is {len(different)}")
    else:
        web = graph.graph(vectors[different])
        if thumbs is None or similarity is not None:
            nearly.add_close(pairs, web, different, similarity)
        else:
            nearly.add_crops(pairs, web, thumbs, grays, different)
        judged += _by_vectors(pictures, vectors, web, different, groups, remarks)
    judged += pairs.findings(pictures)
    return findings.ordered([*found, *judged, *exact.shared(judged, pictures, groups)]), remarks


def _by_vectors(pictures, vectors, web, rows, groups, remarks):
    """Yields findings that need vectors."""
    from keras_vit.inspecting import labels as judging
    from keras_vit.inspecting import outliers

    if len(rows) < outliers.FEWEST:
        remarks.append(f"Outliers: they need {outliers.FEWEST} different pictures, and there are {len(rows)}")
    else:
        yield from outliers.find(pictures, web, rows)
    if pictures.labels is None:
        remarks.append("Labels: the pictures are in no class folders, and no table or recipe names their classes")
        return
    of = pictures.labels[rows]
    classes = np.unique(of[of != NONE])
    few = len(classes) - len(judging.trusted(of[of != NONE]))
    if len(classes) < 2 or few == len(classes):
        count = "one class" if len(classes) == 1 else f"{len(classes)} classes"
        remarks.append(
            f"Labels: they need two classes, one of them of {judging.FEWEST} different pictures, and there is "
            f"{count} of {len(of)}"
        )
        return
    if few:
        remarks.append(f"Labels of {few:,} classes with fewer than {judging.FEWEST} different pictures")
    listed, remark = judging.find(pictures, vectors, web, rows, groups)
    remarks.append(remark)
    yield from listed


def _unread(name, why):
    return Finding("unreadable", name, "", "", "", None, "", "", why)
