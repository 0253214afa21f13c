"""Applies a trained model to image files."""

import collections
import math
import os
import pathlib
from collections.abc import Sequence
from csv import DictWriter
from json import dumps

import numpy as np

from keras_vit.models.kinds import KINDS
from keras_vit.runs.trained import load_run, read
from keras_vit.utils import checks
from keras_vit.utils.files import replacing
from keras_vit.utils.folders import in_folder
from keras_vit.utils.images import read_pixels

IMAGES, VALUES = 64, 2**24  # files per batch, and pixel values per batch, at most


def predict(
    target: os.PathLike | str,
    images: Sequence[os.PathLike | str],
    top: int = 3,
    to: os.PathLike | str | None = None,
    *,
    json: os.PathLike | str | None = None,
    csv: os.PathLike | str | None = None,
) -> list[list[tuple[str, float]]]:
    """Applies a trained model to image files, in batches.

    Args:
        target: As in `keras_vit.load_run`.
        images: Paths of images, and of folders, which are searched with all their subfolders; or a single path.
        top: How many answers to return for an image, at most; of several labels all that hold are returned.
        to: Folder for files, for tasks that make them: `STEM.png` of each image. Of `Segment`, masks of class indices
            at the image's own size; of `Restore`, the restored image, with the alpha channel, the color profile and
            the EXIF data of its file; of `Detect` `STEM.txt`, YOLO's labels: a row for each object with its class's
            index, its center x, center y, width and height as shares of the upright image, and its score.
        json: JSON file for all answers, a list of dictionaries. For tasks that find objects, COCO's results with the
            image's file name as `"image_id"` and the class's name as `"category"`; `"bbox"` is x, y, width, height in
            pixels of the upright image. For all others `"image_id"`, the path as it was given, `"name"` and `"value"`;
            of several labels also the class's `"threshold"`.
        csv: CSV file for the same rows, in UTF-8; the columns of a box are `x`, `y`, `width` and `height`.

    Returns:
        A list of `(name, value)` per image, most likely first, such as classes and their probabilities; of several
        labels first those that reach their thresholds.

    Raises:
        ValueError: As `load_run`; for a file that cannot be read, or a folder without images; with `to`, for a task
            without files; for two images with one name where names tell them apart.
        FileNotFoundError: As `load_run`, and for a file that does not exist.
        FileExistsError: If a file to write exists.
    """
    images = [images] if isinstance(images, (str, os.PathLike)) else checks.sequence("images", images)
    files, found = image_files([checks.path("images", image) for image in images]), []
    for _, answer, error in predictions(target, files, top, to, json=json, csv=csv):
        if error:
            raise error
        found.append(answer)
    return found


def predictions(target, files, top=3, to=None, *, json=None, csv=None):
    """Yields the predictions of `predict` image by image, and goes past unreadable files.

    Args:
        target: As in `load_run`.
        files: Paths of images.
        top: As in `predict`.
        to: As in `predict`.
        json: As in `predict`; written after the last image.
        csv: As in `predict`; written after the last image.

    Yields:
        The path, its list of `(name, value)` and `None`; or the path, `None` and the reading error.
    """
    checks.positive(top=top)
    trained = load_run(target)
    task, kind = trained.task, KINDS[trained.task.gives]
    files = [pathlib.Path(file) for file in files]
    tables = {name: checks.path(name, path) for name, path in (("json", json), ("csv", csv)) if path is not None}
    for name, path in tables.items():
        _check_table(name, path, files, kind)
    places = _places(task, kind, files, checks.path("to", to)) if to is not None else {}
    rows = []
    run = trained.viewer(finish=task.image if kind.pixels and task.whole else None)
    count = 1 if task.whole else max(min(IMAGES, VALUES // math.prod(trained.size)), 1)
    for first in range(0, len(files), count):
        images, errors, outputs = {}, {}, {}  # the last batch's outputs are let go first
        for path in files[first : first + count]:
            try:
                images[path] = read_pixels(path, trained.size[2]) if task.whole else read(trained, [path])[0]
            except (ValueError, OSError) as error:
                errors[path] = error
        if images:
            outputs = dict(zip(images, run(_batch([*images.values()]))))
            images.clear()
        for path in files[first : first + count]:
            if path in errors:
                yield path, None, errors[path]
                continue
            if places:
                with replacing(places[path]) as temporary:
                    kind.save(task, outputs[path], path, temporary)
            answer = task.listed(outputs[path], top)
            rows += kind.entries(task, outputs[path], path, answer) if tables else []
            yield path, answer, None
    for name, path in tables.items():
        with replacing(path) as temporary:
            WRITE[name](temporary, rows, kind.columns)


def _write_json(path, rows, _):
    path.write_text(dumps(rows, indent=1) + "\n", encoding="utf-8")


def _write_csv(path, rows, columns):
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        table = DictWriter(file, columns)
        table.writeheader()
        for row in rows:
            box = dict(zip(("x", "y", "width", "height"), row.get("bbox", ())))
            table.writerow({name: value for name, value in {**row, **box}.items() if name != "bbox"})


WRITE = {"json": _write_json, "csv": _write_csv}


def _check_table(name, path, files, kind):
    """Raises ValueError or FileExistsError unless the answers of files can be written to a path, as JSON or CSV."""
    if kind.by_name:
        _check_different([file.name for file in files], "for one file of objects")
    if path.suffix != f".{name}":
        raise ValueError(f"`{name}` must end in .{name}. Received: {name}={str(path)!r}")
    if path.exists():
        raise FileExistsError(f"{str(path)!r} exists. Choose another file.")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"The folder of `{name}` must exist. Received: {name}={str(path)!r}")


def _check_different(names, why):
    twice = [name for name, count in collections.Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"Images must have different names, {why}. Received: two of {twice[0]!r}")


def _places(task, kind, files, folder):
    """Returns where to write what is made of each file, in a folder that is made if necessary.

    Arguments are as in `predict`.
    """
    if kind.save is None:
        name = type(task).__name__
        raise ValueError(
            "`to` is for tasks that make files, such as Segment, Detect and Restore. "
            f"Received: to={str(folder)!r} with {name}"
        )
    places = {path: folder / f"{path.stem}{kind.ending}" for path in files}
    _check_different([file.name for file in places.values()], "for files in one folder")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"`to` must be a folder. Received: to={str(folder)!r}")
    existing = [file for file in places.values() if file.exists()]
    if existing:
        raise FileExistsError(f"{str(existing[0])!r} exists. Choose another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    return places


def _batch(images):
    return images[0][None] if len(images) == 1 else np.stack(images)  # a single one may be large: not copied


def image_files(paths):
    """Returns a list of files: those among the paths, and the images inside the folders among them.

    Raises:
        FileNotFoundError: For a path that does not exist.
        ValueError: For a folder without images, or no path.
    """
    files = []
    for path in map(pathlib.Path, paths):
        if not path.exists():
            raise FileNotFoundError(f"There is no file {str(path)!r}.")
        files += in_folder(path) if path.is_dir() else [path]
    if not files:
        raise ValueError("At least one image file is needed. Received: none")
    return files
