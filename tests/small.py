"""Recipes made small, to test that they run."""

import dataclasses
import gc
import tracemalloc

import keras_vit
from keras_vit import config

SMALL = {"model.width": 16, "model.depth": 1, "model.mlp_dim": 32, "model.num_heads": 2, "optim.xla": False}


def small():
    """Returns the smallest recipe that trains."""
    return config.override(smoke(keras_vit.load_recipe("digits")), SMALL)


def smoke(recipe):
    """Returns a recipe cut to one block, two steps and four images per step, without weights."""
    short = {
        "optim.epochs": 1,
        "optim.warmup_epochs": 0,
        "optim.image_sizes": (),
        "data.batch_size": 4,
        "data.limit": 8,
        "optim.accumulate": 1,
    }
    model = {name: value for name, value in recipe.model.items() if name not in ("weights", "head")}
    return config.override(dataclasses.replace(recipe, model={**model, "depth": 1}), short)


def peak(function):
    """Returns the bytes that NumPy and Python hold at most at a time while a function runs; not Pillow's images."""
    gc.collect()
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
