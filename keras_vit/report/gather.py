"""The contents of a report as plain values and arrays."""

import itertools
import json
import math
import pathlib
from typing import NamedTuple

import keras
import numpy as np

from keras_vit import checks, explain, results, trained
from keras_vit.training import rundir
from keras_vit.training.devices import need_tensorflow

SHOWN = 8  # images in the gallery, and in each of best and worst
PLACED, VALUES = 1000, 2**26  # images on the map of embeddings, and pixel values of all of them, at most


class Facts(NamedTuple):
    """Everything on the page except its figures."""

    name: str
    model: keras.Model
    recipe: object  # `None` for a `.keras` file outside a run
    class_names: tuple
    split: str  # of the data that were measured
    whole: bool  # whether all of the split was measured
    labels: np.ndarray  # (images,)
    probabilities: np.ndarray  # (images, classes)
    shown: np.ndarray  # (SHOWN, height, width, channels), the first images
    best: tuple  # (indices, images)
    worst: tuple  # (indices, images)
    points: np.ndarray  # (up to PLACED, 2), of the first images
    history: dict  # of a run, else empty
    machine: dict  # on which a run was trained, else empty
    shipped: bool  # whether the weights come with the package
    exports: list  # of dictionaries, from the JSON files next to the exported files
    home: pathlib.Path  # the folder for the model's reports and exports


def gather(target, arrays=None, most=10_000):
    """Measures a trained model.

    Args:
        target: As in `keras_vit.load_run`.
        arrays: `(images, labels)` to measure on instead of the recipe's test split. A run on arrays, and a `.keras`
            file outside a run, need them.
        most: Number of images to measure on, the first of the split.

    Returns:
        `Facts`.

    Raises:
        ValueError, FileNotFoundError: As `keras_vit.evaluate`, and for `most` below 1.
    """
    need_tensorflow("A report")
    checks.positive(most=most)
    from keras_vit.training import evaluation, history

    found = trained.find(target)
    (model, known, class_names), recipe = found.trained, found.recipe
    source = results.source_of(found, None, arrays)
    some = source.take(slice(most))
    size = model.input_shape[1:]
    logits, labels = evaluation.logits_of(evaluation.predictor(model), recipe, some, size)
    probabilities = trained.probabilities(model, logits)
    right = np.flatnonzero(probabilities.argmax(-1) == labels)
    best = right[np.argsort(-probabilities[right].max(-1), kind="stable")][:SHOWN]
    worst = explain.worst(labels, probabilities, SHOWN)
    placed = np.empty((min(PLACED, len(labels), max(VALUES // math.prod(size), SHOWN)), *size), "float32")
    examples, images = {*best, *worst}, {}
    for i, image in _images(some, recipe, size, 1 + max(len(placed) - 1, *examples)):
        if i < len(placed):
            placed[i] = image
        if i in examples:
            images[i] = image
    return Facts(
        name=recipe.name,
        model=model,
        recipe=known,
        class_names=class_names,
        split="images from arrays" if arrays is not None else recipe.data.test,
        whole=len(some) == len(source),
        labels=labels,
        probabilities=probabilities,
        shown=placed[:SHOWN],
        best=(best, [images[i] for i in best]),
        worst=(worst, [images[i] for i in worst]),
        points=explain.project(explain.embed(model, placed), "tsne") if len(placed) > 3 else np.empty((0, 2)),
        history=history.read(found.run) if found.run and (found.run / rundir.HISTORY).exists() else {},
        machine=rundir.trained_on(found.run) if found.run else {},
        shipped=found.shipped,
        exports=_exports(found.home),
        home=found.home,
    )


def _images(source, recipe, size, count):
    """Yields `(index, pixels)` of a source's first images, prepared as for evaluation."""
    from keras_vit.data import pipeline

    batches = pipeline.evaluation_arrays(source, recipe, size)
    return itertools.islice(enumerate(image for images, _ in batches for image in images), count)


def _exports(folder):
    """Returns what the JSON file of each export in a folder says, and its `"file"`."""
    paths = {rundir.SAVED_MODEL: folder / rundir.SAVED_MODEL / "assets.extra" / "keras_vit.json"}
    paths |= {path.stem: path for path in sorted(folder.glob("model*.json"))}
    return [{"file": name, **json.loads(path.read_text())} for name, path in paths.items() if path.is_file()]
