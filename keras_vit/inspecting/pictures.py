"""The pictures that are inspected, with what is known of each: its file, its label, its split."""

import dataclasses
import pathlib

import numpy as np

NONE = -1  # in place of a label, or of a split
RANKS = {"tr": 0, "va": 1, "de": 1, "te": 2}  # of splits by the first letters: what learns, what chooses, what measures
RANK = 1  # of a split of another name


@dataclasses.dataclass(frozen=True)
class Pictures:
    """Pictures, their labels and splits.

    Attributes:
        names: Path of each picture below `folder`; of a picture in memory, its split and its number.
        images: Paths of files; else arrays, `(height, width, channels)`, or encoded files.
        files: Whether `images` are paths.
        folder: The folder of the files.
        labels: Class index of each picture, or `NONE`; `None` if there are no labels.
        class_names: Names of the classes.
        splits: Number of each picture's split, or `NONE`; `None` if there are no splits.
        split_names: Names of the splits.
        left_out: Why what cannot be inspected is left out, a sentence each.
        unread: Files that could not be read, and why, by their names.
        tables: Tables next to the files, each with the name of its column of files.
        rows: Their positions among all pictures, if these are a part of them; else `None`.
        count: Number of all pictures, if these are a part of them.
    """

    names: list
    images: list
    files: bool = True
    folder: pathlib.Path | None = None
    labels: np.ndarray | None = None
    class_names: tuple = ()
    splits: np.ndarray | None = None
    split_names: tuple = ()
    left_out: tuple = ()
    unread: dict = dataclasses.field(default_factory=dict)
    tables: tuple = ()
    rows: np.ndarray | None = None
    count: int | None = None

    def __len__(self):
        return len(self.names)

    def label(self, i):
        """Returns the name of a picture's class, `""` without one."""
        return "" if self.labels is None or self.labels[i] == NONE else self.class_names[self.labels[i]]

    def split(self, i):
        """Returns the name of a picture's split, `""` without one."""
        return "" if self.splits is None or self.splits[i] == NONE else self.split_names[self.splits[i]]

    @property
    def ranks(self):
        """The rank of each picture's split: of two equal pictures, the one of the lower rank is listed."""
        if self.splits is None:
            return np.zeros(len(self), int)
        order = sorted(self.split_names, key=lambda name: (RANKS.get(name.lower()[:2], RANK), name))
        place = np.array([*map(order.index, self.split_names), NONE])  # the last one is for `NONE`
        return place[self.splits]

    def part(self, rows, why):
        """Returns some of the pictures, by their positions, some perhaps twice; `why` says which are left out."""
        if [*rows] == [*range(len(self))]:
            return self
        lost = len(self) - len({*rows})
        pick = lambda values: None if values is None else [values[i] for i in rows]  # noqa: E731
        arrays = {name: getattr(self, name) for name in ("labels", "splits")}
        return dataclasses.replace(
            self,
            names=pick(self.names),
            images=pick(self.images),
            rows=np.array(rows) if self.rows is None else self.rows[rows],
            count=self.count or len(self),
            left_out=(*self.left_out, *([f"{lost:,} pictures {why}"] if lost else [])),
            **{name: None if values is None else values[rows] for name, values in arrays.items()},
        )

    def labeled(self, texts):
        """Returns these pictures with labels from texts, one each; `None` and `""` for none."""
        numbers, names = numbered(texts)
        return dataclasses.replace(self, labels=numbers, class_names=names)

    def divided(self, texts):
        """Returns these pictures with splits from texts, one each; `None` and `""` for none."""
        numbers, names = numbered(texts)
        return dataclasses.replace(self, splits=numbers, split_names=names)


def numbered(texts):
    """Returns the numbers of texts among the sorted different ones, `NONE` for none, and these; or `None` and `()`."""
    names = sorted({str(text) for text in texts if text not in (None, "")})
    if not names:
        return None, ()
    places = {name: i for i, name in enumerate(names)}
    return np.array([NONE if text in (None, "") else places[str(text)] for text in texts]), tuple(names)
