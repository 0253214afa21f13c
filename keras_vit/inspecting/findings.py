"""What was found: one row a finding, and its table."""

from typing import NamedTuple

from keras_vit.utils import tables

KINDS = {  # in the order of the table and of the page
    "unreadable": "Pictures that cannot be read",
    "leak": "The same picture on both sides of a split",
    "exact": "Equal pictures",
    "near": "Nearly equal pictures",
    "label": "Labels that neighbors and a classifier contradict",
    "outlier": "Pictures unlike all others",
}


class Finding(NamedTuple):
    """A row of the table; texts are `""` where there is nothing to say."""

    kind: str  # of `KINDS`
    file: str  # the picture to look at
    other: str  # the one that it is compared with
    label: str  # of the file
    suggested: str  # another label: of the other picture, or what the classifier says
    score: float | None  # how sure, see `inspect_index`
    split: str  # of the file
    other_split: str
    why: str
    row: int | None = None  # position of the file among the pictures
    other_row: int | None = None


COLUMNS = ("kind", "file", "other_file", "label", "suggested_label", "score", "split", "other_split", "why")


def pair(kind, pictures, first, second, score, why):
    """Returns the `Finding` of two pictures, by their positions."""
    labels = [pictures.label(i) for i in (first, second)]
    return Finding(
        kind, pictures.names[first], pictures.names[second], labels[0],
        labels[1] if "" not in labels and labels[0] != labels[1] else "",
        score, pictures.split(first), pictures.split(second), why, int(first), int(second),
    )  # fmt: skip


def single(kind, pictures, row, score, why, suggested=""):
    """Returns the `Finding` of one picture, by its position."""
    split, label = pictures.split(row), pictures.label(row)
    return Finding(kind, pictures.names[row], "", label, suggested, score, split, "", why, int(row))


def ordered(found):
    """Returns findings by kind, the highest score of each first."""
    kinds = [*KINDS]
    return sorted(found, key=lambda one: (kinds.index(one.kind), -(one.score or 0)))


def write(path, found):
    """Writes findings as CSV."""
    rows = [dict(zip(COLUMNS, one[: len(COLUMNS)])) for one in found]
    for row in rows:
        row["score"] = "" if row["score"] is None else f"{row['score']:.4f}"
    tables.write(path, rows, COLUMNS)
