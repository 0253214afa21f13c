"""Draws images with a trained model of `Generate`, and writes them."""

import itertools
import pathlib
import re
from collections.abc import Iterator

import numpy as np

from keras_vit.generation.asked import labels_of, texts_of
from keras_vit.generation.sampling import check_drawing, drawn_in_parts
from keras_vit.models.dit import classes_of, reads_texts
from keras_vit.models.outputs import distinct
from keras_vit.runs.trained import Trained
from keras_vit.utils import checks
from keras_vit.utils.files import replacing

LONGEST = 60  # letters of a class, or a text, in the name of a file


def draws_images(trained: Trained) -> bool:
    """Returns whether a trained model draws images from noise, and takes none."""
    return "times" in trained.task.inputs


def draw(
    trained, classes=(), count=1, folder=None, *, texts=(), steps=None, guidance=None, seed=0
) -> Iterator[pathlib.Path]:
    """Draws images of classes, or texts, and writes each as `CLASS_NUMBER.png`, in batches: what is drawn stays.

    Args:
        trained: A `Trained`.
        classes: Names or indices of classes; all if empty. `"none"` is no class, unless one has that name.
        count: Number of images of each.
        texts: Of a model that draws texts: what to draw, in place of classes.
        folder: Where to write, made if necessary.
        steps: As in `sample`; those of the task if `None`.
        guidance: As in `sample`; that of the task if `None`.
        seed: As in `sample`.

    Yields:
        The path of each image.

    Raises:
        ValueError: As `sample`; for a path that is no folder.
        FileExistsError: If a file to write exists.
    """
    checks.positive(count=count)
    check_drawing(trained.model)
    folder = checks.path("to", folder)
    asked, words = (_of_texts if reads_texts(trained.model) else _of_classes)(trained, classes, texts)
    settings = {"steps": trained.task.steps if steps is None else steps, "seed": seed}
    settings["guidance"] = trained.task.guidance if guidance is None else guidance
    parts = drawn_in_parts(trained.model, np.repeat(asked, count, axis=0), **settings)
    paths = [folder / f"{word}_{i:03d}.png" for word in words for i in range(count)]
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"`to` must be a folder. Received: to={str(folder)!r}")
    if existing := next((path for path in paths if path.exists()), None):
        raise FileExistsError(f"{str(existing)!r} exists. Choose another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    for path, image in zip(paths, itertools.chain.from_iterable(parts)):
        with replacing(path) as temporary:
            _write(image, temporary)
        yield path


def _of_classes(trained, classes, texts):
    """Returns the labels of classes, and a word for each; errors as of `draw`."""
    if texts:
        raise ValueError(f"{trained.model.name!r} draws classes: leave texts out. Received: {checks.shown(texts):.100}")
    names = distinct(tuple(trained.class_names))
    labels = labels_of(trained.model, [_class(each, names) for each in classes or range(len(names) or 1)]).tolist()
    if len({*labels}) < len(labels):
        raise ValueError(f"Each class must be named once. Received: {checks.shown([*classes]):.100}")
    return labels, _words(labels, [*names, *["none"] * (classes_of(trained.model) + 1 - len(names))])


def _of_texts(trained, classes, texts):
    """Returns the ids of texts, and a word for each; errors as of `draw`."""
    if classes or not texts:
        raise ValueError(
            f"{trained.model.name!r} draws texts, not classes: say what to draw. "
            f"Received: {f'classes={checks.shown([*classes]):.100}' if classes else 'no text'}"
        )
    if len({*texts}) < len(texts):
        raise ValueError(f"Each text must be named once. Received: {checks.shown([*texts]):.100}")
    return texts_of(trained.model, texts), _words(range(len(texts)), texts)


def _class(name, names):
    """Returns a class as `sample` takes it: a number in words is an index, unless a class has that name."""
    if not isinstance(name, str) or name in names:
        return name
    return None if name == "none" else int(name) if name.isdecimal() else name


def _words(labels, names):
    """Returns a word for each class, for names of files: with its index if two would have the same."""
    words = [re.sub(r"[^\w.-]+", "_", names[label])[:LONGEST] for label in labels]
    alike = len({word.casefold() for word in words}) < len(words) or not all(words)
    return [f"{label:04d}_{word}" for label, word in zip(labels, words)] if alike else words


def _write(image, path):
    from PIL import Image

    Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image).save(path, "PNG")
