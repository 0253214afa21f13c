"""Recipes made small, to test that they run."""

import dataclasses
import gc
import tracemalloc

import keras
import numpy as np

import keras_vit
from keras_vit import config
from keras_vit.models.inputs import image_shape

SMALL = {"model.width": 16, "model.depth": 1, "model.mlp_dim": 32, "model.num_heads": 2, "optim.xla": False}


class Around(keras.Model):
    """A subclassed model around another one: Keras does not know what it computes."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def call(self, x):
        return self.inner(x)


def small():
    """Returns the smallest recipe that trains."""
    return config.override(smoke(keras_vit.load_recipe("digits")), SMALL)


def smoke(recipe):
    """Returns a recipe cut to one block, two steps and four images per step, without weights, and judges of texts."""
    short = {
        "optim.epochs": 1,
        "optim.warmup_epochs": 0,
        "data.batch_size": 4,
        "data.limit": 8,
        "optim.accumulate": 1,
    }
    if getattr(recipe.task, "text", False) and getattr(recipe.task, "judge", None):
        short["task.judge"] = None  # it would have to know the words of `arrays`
    model = {name: value for name, value in recipe.model.items() if name not in ("weights", "head")}
    return config.override(dataclasses.replace(recipe, model={**model, "depth": 1}), short)


def arrays(recipe, planned, count=8):
    """Returns arrays to train a recipe on: images, clips or texts, and its task's targets.

    Args:
        recipe: A `Recipe`, with the number of classes if it has any.
        planned: Its model.
        count: Number of images.
    """
    random, task = np.random.default_rng(0), recipe.task
    shape = image_shape(planned) if task.clips else task.data_shape(image_shape(planned))
    shape = (1, 1, 1) if task.of_texts else shape
    images = random.integers(0, 256, (count, *shape)).astype("uint8")
    yes_or_no = 2 if getattr(task, "text", False) else 1  # of the pixels that a sentence means
    labels = np.arange(count) % max(len(task.classes_for(recipe.model)), yes_or_no)
    boxes = np.concatenate([np.tile([0.2, 0.3, 0.6, 0.8], (count, 1)), labels[:, None]], axis=1)[:, None]
    targets = {
        "labels": labels,
        "segmentation_masks": np.broadcast_to(getattr(task, "first", 0) + labels[:, None, None], images.shape[:3]),
        "bounding_boxes": boxes,
        "depths": random.uniform(1, 9, images.shape[:3]),
        "texts": [f"{'no' if i % 2 else 'one'} word {i}" for i in range(count)],
    }
    if task.of_texts:
        images = [f"{'kein' if i % 2 else 'ein'} Wort {i}" for i in range(count)]
    return (images, *(targets[name] for name in task.targets))


def drawn(model, count=2):
    """Returns random inputs of a model: pixels, and ids of words or classes; five words where it takes any number."""
    random, made = np.random.default_rng(0), {}
    for x in model.inputs:
        shape = (count, *(size or 5 for size in x.shape[1:]))
        made[x.name] = random.integers(0, 256 if len(shape) > 3 else 3, shape).astype(x.dtype)
    return made if len(made) > 1 else next(iter(made.values()))


def peak(function):
    """Returns the bytes that NumPy and Python hold at most at a time while a function runs; not Pillow's images."""
    gc.collect()
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
