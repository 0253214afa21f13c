"""Draws images with a trained model of `Generate`, and writes them."""

import pathlib
import re
from collections.abc import Iterator

import numpy as np

from keras_vit.models.outputs import distinct
from keras_vit.models.sampling import check_drawing, labels_of, sample
from keras_vit.runs.trained import Trained
from keras_vit.utils import checks
from keras_vit.utils.files import replacing

BATCH = 64  # images that are drawn before they are written


def draws_images(trained: Trained) -> bool:
    """Returns whether a trained model draws images from noise, and takes none."""
    return "times" in trained.task.inputs


def draw(trained, classes, count, folder, *, steps=None, guidance=None, seed=0) -> Iterator[pathlib.Path]:
    """Draws images of classes and writes them as `CLASS_NUMBER.png`.

    Args:
        trained: A `Trained`.
        classes: Names or indices of classes; all if empty.
        count: Number of images of each.
        folder: Where to write, made if necessary.
        steps: As in `sample`; those of the task if `None`.
        guidance: As in `sample`; that of the task if `None`.
        seed: As in `sample`.

    Yields:
        The path of each image.

    Raises:
        ValueError: As `sample`.
        FileExistsError: If a file to write exists.
    """
    checks.positive(count=count)
    check_drawing(trained.model)
    names = distinct(tuple(trained.class_names))
    wanted = list(classes) or list(range(len(names)))
    wanted = [
        int(each) if isinstance(each, str) and each not in names and each.isdecimal() else each for each in wanted
    ]
    labels = np.repeat(labels_of(trained.model, wanted), count)
    folder = checks.path("to", folder)
    words = [re.sub(r"[^\w.-]+", "_", names[label]) if label < len(names) else "none" for label in labels]
    paths = [folder / f"{word}_{i % count:03d}.png" for i, word in enumerate(words)]
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise ValueError(f"Each class must be named once. Received: two files {twice.name!r}")
    existing = [path for path in paths if path.exists()]
    if existing:
        raise FileExistsError(f"{str(existing[0])!r} exists. Choose another folder.")
    given = {"steps": trained.task.steps if steps is None else steps, "seed": seed}
    given["guidance"] = trained.task.guidance if guidance is None else guidance
    images = sample(trained.model, labels, **given, batch_size=min(BATCH, len(labels)))
    folder.mkdir(parents=True, exist_ok=True)
    for path, image in zip(paths, images):
        with replacing(path) as temporary:
            _write(image, temporary)
        yield path


def _write(image, path):
    from PIL import Image

    Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image).save(path, "PNG")
