"""How well models transfer to several data sets with few examples: VTAB's way of measuring."""

import dataclasses
import io
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from keras_vit.config import Classify, Recipe, cookbook, override
from keras_vit.frozen.embedder import Embedder
from keras_vit.frozen.probe import classifier
from keras_vit.utils import checks

EXAMPLES = 1000  # VTAB's
VALIDATION = 0.2  # of them, 200, choose the regularization


def transfer(
    models: Sequence[Any],
    data: Sequence[Any],
    *,
    examples: int | None = EXAMPLES,
    tests: int | None = None,
    epochs: int | None = None,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Measures how well models transfer to data sets, from few examples of each.

    Zhai et al. 2019 (arXiv:1910.04867), VTAB-1k: of each data set 1,000 training images are used, 800 to learn from and
    200 to choose a setting, and then all; the score is top-1 on the test images. Here the setting is the regularization
    of a linear classifier on the frozen model's vectors, as in `probe`. Every model sees the same images.

    Args:
        models: What `from_pretrained` takes, or Keras models: each is used as an encoder.
        data: Recipes with `Classify`, or their names: of each the data and its splits count, and for fine-tuning its
            augmentation and optimizer.
        examples: Training images of each data set, drawn at random; `None` for all.
        tests: Test images of each data set, drawn at random; `None` for all.
        epochs: Epochs of fine-tuning from the same training images, measured after the last; `None` for none. Models
            must then be named.
        seed: Random seed of what is drawn.

    Returns:
        A dictionary for each data set and model: `"data"`, `"model"`, `"examples"` and `"tests"`, counts; `"linear"`,
        top-1 of the linear classifier on the test images, 0 to 1; `"strength"`, the inverse regularization that was
        chosen; with `epochs` also `"finetuned"`, top-1 after fine-tuning.

    Raises:
        ValueError: For a recipe of another task, or data that do not fit into memory; for a
            class with fewer than two images among those drawn.
    """
    return [*measured(models, data, examples=examples, tests=tests, epochs=epochs, seed=seed)]


def measured(models, data, *, examples=EXAMPLES, tests=None, epochs=None, seed=0) -> Iterator[dict[str, Any]]:
    """Yields the rows of `transfer` as they are found."""
    for name, each in {"models": models, "data": data}.items():
        if not isinstance(each, (list, tuple)) or not each:
            raise ValueError(f"`{name}` must be a list of one or more. Received: {checks.shown(each)}")
    for name, number in {"examples": examples, "tests": tests, "epochs": epochs}.items():
        checks.positive(**{name: 1 if number is None else number})
    checks.whole(seed=seed)
    recipes = [each if isinstance(each, Recipe) else cookbook.load_recipe(each) for each in data]
    for recipe in recipes:
        _check(recipe)
    unnamed = [model for model in models if epochs and not isinstance(model, (str, os.PathLike))]
    if unnamed:
        raise ValueError(f"Models to be fine-tuned must be named. Received: {checks.shown(unnamed[0])}")
    embedders = [Embedder(model) for model in models]
    sets = [_sources(recipe, examples, tests, seed) for recipe in recipes]
    for recipe, (train, test) in zip(recipes, sets):
        images = [_images(source) for source in (train, test)]
        for model, embedder in zip(models, embedders):
            vectors = [embedder(each) for each in images]
            found = classifier(vectors[0], train.labels, VALIDATION, seed)
            row = {
                "data": recipe.name,
                "model": embedder.name or embedder.model.name,
                "examples": len(train),
                "tests": len(test),
                "linear": float(found.regression.score(found.scaler.transform(vectors[1]), test.labels)),
                "strength": found.strength,
            }
            yield row | ({"finetuned": _finetuned(recipe, model, embedder, train, test, epochs)} if epochs else {})


def _check(recipe):
    if type(recipe.task) is not Classify or recipe.task.multilabel:
        raise ValueError(
            f"Data must be those of a recipe with Classify, of one label an image. Received: {recipe.name!r}, with "
            f"{type(recipe.task).__name__}"
        )


def _sources(recipe, examples, tests, seed):
    """Returns the training and the test images of a recipe, of each as many as asked for."""
    from keras_vit.data import sources
    from keras_vit.data.memory import Source

    parts = [sources.load(recipe.data, split) for split in (recipe.data.train, recipe.data.test)]
    for part in parts:
        if not isinstance(part, Source):
            raise ValueError(f"Data must fit into memory. Received: {recipe.name!r}, {recipe.data.source!r}")
    train, test = parts[0], sources.aligned(parts[1], parts[0].class_names)
    train, test = (
        part.take(np.random.default_rng(seed).permutation(len(part))[:count])
        for part, count in ((train, examples), (test, tests))
    )
    counts = np.bincount(train.labels, minlength=len(train.class_names))
    if counts.min() < 2:
        raise ValueError(
            f"Each class needs two training images: pass more examples. Received: {counts.min()} of "
            f"{train.class_names[counts.argmin()]!r} in {recipe.name!r}, examples={examples}"
        )
    return train, test


def _images(source):
    """Returns the images of a `Source` as `preprocess` takes them."""
    from PIL import Image

    if source.images.ndim == 4:
        return [*source.images]
    if source.files:
        return [*map(str, source.images)]
    return [Image.open(io.BytesIO(encoded)) for encoded in source.images]


def _finetuned(recipe, model, embedder, train, test, epochs):
    """Returns the top-1 of a model on the test images after fine-tuning by a recipe's options."""
    from keras_vit.training.fit import fit

    arguments = {"weights": model, "image_size": embedder.model.input_shape[1:3], "channels": train.channels[-1]}
    warmup = min(recipe.optim.warmup_epochs, epochs / 5)
    recipe = override(dataclasses.replace(recipe, model=arguments, reached=None, weights=None),
                      {"optim.epochs": epochs, "optim.warmup_epochs": warmup, "optim.patience": None})  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        _, history = fit(recipe, folder, train=train, validation=test, verbose=0)
    return float(history["val_accuracy"][-1])
