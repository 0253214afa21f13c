"""Datasets in YOLO's layout: the classes and splits of a `data.yaml`, and the images of a split with their labels."""

import collections
import os
import pathlib
import reprlib  # shows a few items: aliases may make any number of a short file
from typing import NamedTuple

import yaml

from keras_vit.data.readers import table_file
from keras_vit.utils import files
from keras_vit.utils.folders import IMAGE_ENDINGS, SPLITS, ending, files_in, is_hidden, is_image
from keras_vit.utils.names import Written, composed
from keras_vit.utils.warned import left_out, warn

ENDINGS, NAMES = (".yaml", ".yml"), ("data", "dataset")
CLASSES = ("classes.txt", "labels/classes.txt")  # of Label Studio and LabelImg, which write no YAML file
BESIDE = (*ENDINGS, ".txt", ".cache")  # what else may be in a folder of images
ABSENT = ("", "~", "null")


class Dataset(NamedTuple):
    """What is known of a dataset before its images are looked for."""

    file: pathlib.Path  # which says it
    folder: pathlib.Path  # that other paths begin at
    names: tuple[str, ...]  # of the classes, in the order of their indices
    splits: dict[str, list[str]]  # folders, or text files of paths, by name


class TextLoader(yaml.BaseLoader):
    """Reads every value as a text, so that a class may be called `no` or `1`; refuses a key that occurs twice."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value if isinstance(key.value, str)]
        twice = _twice(keys)
        if twice is not None:
            raise yaml.constructor.ConstructorError(None, None, f"the key {twice!r} is there twice", node.start_mark)
        return super().construct_mapping(node, deep)


def find(root):
    """Returns the file that describes a dataset in YOLO's layout, or `None`.

    Args:
        root: A YAML file; or a folder with `data.yaml`, `dataset.yaml`, or another one that has `names` and a split; or
            with `images`, `labels` and `classes.txt`.

    Raises:
        ValueError: If there are several.
    """
    if not root.is_dir():
        return root if root.suffix.lower() in ENDINGS and root.is_file() else None
    inside = sorted(path for path in root.iterdir() if path.suffix.lower() in ENDINGS and path.is_file())
    inside = [path for path in inside if not is_hidden(path.name)]
    found = [path for path in inside if path.stem in NAMES] or [path for path in inside if _fits(path)]
    if len(found) > 1:
        raise ValueError(
            f"{str(root)!r} must have one file of classes and splits, or data.source=folder:PATH must name it. "
            f"Received: {', '.join(path.name for path in found)}"
        )
    if not found and all((root / name).is_dir() for name in ("images", "labels")):
        found = [root / name for name in CLASSES if (root / name).is_file()]
    return found[0] if found else None


def read(file):
    """Reads what `find` returned.

    Args:
        file: A YAML file with `names`, a list or a mapping from 0 on, and splits, such as `train` and `val`; maybe with
            `path`, the folder of these, and `nc`, the number of classes. Or `classes.txt`, one name a line, for the
            splits `all`, the folder `images`, and one for each folder in it.

    Returns:
        A `Dataset`.

    Raises:
        ValueError: If it is no such file, or contradicts itself.
    """
    if file.suffix.lower() not in ENDINGS:
        folder = file.parent if (file.parent / "images").is_dir() else file.parent.parent
        splits = {
            path.name: [f"images/{path.name}"]
            for path in (folder / "images").iterdir()
            if path.is_dir() and not is_hidden(path.name)
        }
        return Dataset(file, folder, _named(file, _lines(file)), {"all": ["images"], **splits})
    found = _parsed(file)
    names = _named(file, found.get("names"))
    count = found.get("nc", str(len(names)))
    if count != str(len(names)):
        raise ValueError(
            f"{str(file)!r} must name as many classes as nc. Received: nc={reprlib.repr(count)}, {len(names)} names"
        )
    if "kpt_shape" in found:
        raise ValueError(
            f"{str(file)!r} is of poses, whose keypoints are not read. Received: {reprlib.repr(found['kpt_shape'])}"
        )
    splits = {key: found[key] for key in found if key in SPLITS and found[key] not in ABSENT}
    splits = {key: value if isinstance(value, list) else [value] for key, value in splits.items()}
    if not splits or not all(isinstance(entry, str) for entries in splits.values() for entry in entries):
        raise ValueError(
            f"{str(file)!r} must have splits, such as train and val: a folder, a list of folders, or a text file of "
            f"paths. Received: {reprlib.repr(splits or list(found))}"
        )
    path = found.get("path", "")
    if not isinstance(path, str):
        raise ValueError(f"{str(file)!r} must name one folder as path. Received: path={reprlib.repr(path)}")
    folder = file.parent if path in ABSENT else file.parent / pathlib.Path(path).expanduser()
    return Dataset(file, folder if folder.is_dir() else file.parent, names, splits)


def images(dataset, split):
    """Returns the paths of the images of a split, each once.

    Raises:
        ValueError: If there is no such split, or what it names does not exist or has no image.
    """
    if split not in dataset.splits:
        known = list(dataset.splits)
        parts = known[:2] if len(known) > 1 else [f"{known[0]}[:90%]", f"{known[0]}[90%:]"]
        raise ValueError(
            f"{str(dataset.file)!r} has no split {split!r}, but {', '.join(known)}. Name them, such as "
            f"data.train={parts[0]} data.validation={parts[1]}. Received: {split!r}"
        )
    every = []
    for entry in dataset.splits[split]:
        place = _place(dataset, split, entry)
        every += _listed(dataset, place) if place.is_file() else _inside(place)
    paths = list(dict.fromkeys(every))
    if len(paths) < len(every):
        left_out(f"{len(every) - len(paths)} images that the split {split!r} names again")
    return paths


def labels_of(paths):
    """Returns the file of labels of each image, or `None`: in `labels` in place of `images`, else next to it.

    Raises:
        ValueError: If no image has one.
    """
    written = Written()
    tried = (map(written.path, _label_files(image)) for image in paths)
    found = [next(filter(os.path.isfile, places), None) for places in tried]
    missing = found.count(None)
    if missing == len(found):
        tried = " or ".join(map(repr, _label_files(paths[0])))
        raise ValueError(
            f"Images must have files of labels. Received: {len(found)} images, and for the first no {tried}"
        )
    if missing:
        warn(f"{missing} of {len(found)} images have no file of labels: they are read as images without objects.")
    return found


def _label_files(image):
    folder, inside, name = f"{os.sep}{image}".rpartition(f"{os.sep}images{os.sep}")
    places = [f"{folder}{os.sep}labels{os.sep}{name}"[len(os.sep) :], image] if inside else [image]
    return [f"{os.path.splitext(place)[0]}.txt" for place in places]


def _parsed(file):
    try:
        found = yaml.load(files.read(file).decode("utf-8-sig"), TextLoader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{str(file)!r} must be a YAML file. Received: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{str(file)!r} must be a YAML file with names and splits. Received: {reprlib.repr(found)}")
    return found


def _fits(file):
    """Returns whether any YAML file is one of classes and splits."""
    try:
        found = _parsed(file)
    except (ValueError, OSError):
        return False
    return "names" in found and bool(SPLITS & set(found))


def _lines(file):
    """Returns the lines of a file of classes, whose numbers are those of the classes."""
    try:
        lines = [line.strip() for line in files.read(file).decode("utf-8-sig").rstrip().splitlines()]
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{str(file)!r} must be UTF-8: save it as that. Received: the byte {error.object[error.start :][:1]!r}"
        ) from None
    if "" in lines:
        raise ValueError(
            f"{str(file)!r} must have a class in each line, for a line's number is that of its class. "
            f"Received: nothing in line {lines.index('') + 1} of {len(lines)}"
        )
    return lines


def _named(file, names):
    """Returns the names of classes, from a list or a mapping."""
    if isinstance(names, dict):
        numbered = {str(int(key)) if key.isdecimal() else key: name for key, name in names.items()}
        missing = [str(i) for i in range(len(names)) if str(i) not in numbered]
        if missing:
            raise ValueError(
                f"{str(file)!r} must number its names from 0 to {len(names) - 1}. "
                f"Received: {', '.join([*names][:10])}, without {', '.join(missing[:10])}"
            )
        names = [numbered[str(i)] for i in range(len(names))]
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(
            f"{str(file)!r} must have names, a list or a mapping from 0 on. Received: names={reprlib.repr(names)}"
        )
    twice = _twice(map(composed, names))
    if twice is not None:
        raise ValueError(f"{str(file)!r} must have different names. Received: {twice!r} twice")
    return tuple(names)


def _twice(texts):
    """Returns the first text that occurs more than once, or `None`."""
    return next((text for text, count in collections.Counter(texts).items() if count > 1), None)


def _place(dataset, split, entry):
    """Returns where a split is: as it is written, or without a first folder that is one level too many.

    That is `..`, or the dataset's own folder, as in files of Roboflow.
    """
    first, *rest = pathlib.PurePath(entry).parts or ("",)
    shorter = [dataset.folder.joinpath(*rest)] if rest and first in ("..", dataset.folder.resolve().name) else []
    written = Written()
    places = [pathlib.Path(written.path(place)) for place in (dataset.folder / entry, *shorter)]
    found = next((place for place in places if place.exists()), None)
    if found is None:
        raise ValueError(
            f"{str(dataset.file)!r} must name folders, or text files of paths, that exist. "
            f"Received: {split}: {entry!r}, and there is no {' or '.join(repr(str(place)) for place in places)}"
        )
    return found


def _inside(folder):
    every = files_in(folder)
    found = [path for path in every if is_image(path)]
    others = [path for path in every if ending(path) not in (*IMAGE_ENDINGS, *BESIDE) and not table_file.is_one(path)]
    if not found:
        raise ValueError(f"{str(folder)!r} must contain images ({', '.join(IMAGE_ENDINGS)}). Received: none")
    if others:
        left_out(f"{len(others)} files without an image extension, such as {others[0]!r}")
    return found


def _listed(dataset, file):
    """Returns the images that a text file names, one a line: below its own folder, or the dataset's."""
    if file.suffix.lower() != ".txt":
        raise ValueError(f"{str(dataset.file)!r} must name folders, or text files of paths. Received: {str(file)!r}")
    text = files.read(file, most=2**30).decode("utf-8-sig", "surrogateescape")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise ValueError(f"{str(file)!r} must name images, one a line. Received: an empty file")
    written = Written()
    folder = next(
        (place for place in (file.parent, dataset.folder) if os.path.isfile(written.path(place / lines[0]))),
        file.parent,
    )
    return [written.path(folder / line) for line in lines]
