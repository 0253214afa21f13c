"""What the pipeline and `fit` add to the bare compiled step, on recipes' models and augmentation.

KERAS_VIT_IMAGES=FOLDER python benchmarks/fit_overhead.py mnist cifar10_hybrid photographs > results.json

Alternates, in one process: steps on one batch in memory, and as many steps of `fit` from the pipeline. `photographs` is
Ti/16 at 224 on FOLDER's JPEGs (folders of classes), with an Inception crop and a flip.
"""

import dataclasses
import json
import os
import statistics
import sys
import time

import numpy as np
from checkout import commit

import keras_vit
from keras_vit.config import Augment, Data, Recipe
from keras_vit.data import pipeline, sources
from keras_vit.training.compiling import compile_model
from keras_vit.utils import machine


def photographs():
    data = Data(source=f"folder:{os.environ['KERAS_VIT_IMAGES']}", batch_size=16)
    source = sources.load(data, "all")
    model = dict(variant="Ti/16", image_size=224, num_classes=len(source.class_names))
    return Recipe(name="photographs", model=model, data=data, augment=Augment(crop="inception", flip=True)), source


def pixels(name, steps=60):
    recipe = keras_vit.load_recipe(name)
    size, classes, count = recipe.model["image_size"], recipe.model["num_classes"], steps * recipe.data.batch_size
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (count, size, size, recipe.model.get("channels", 3))).astype("uint8")
    labels = rng.integers(0, classes, count).astype("int32")
    return recipe, sources.Source(images, {"labels": labels}, tuple(map(str, range(classes))))


def measure(name, rounds=7):
    recipe, source = photographs() if name == "photographs" else pixels(name)
    recipe = dataclasses.replace(recipe, task=recipe.task.on(source))
    steps, model = len(source) // recipe.data.batch_size, keras_vit.from_recipe(recipe)
    dataset = pipeline.training_batches(source, recipe, model.input_shape[1:])
    compile_model(model, recipe.optim, steps, recipe.task.compiled(source), jit_compile=recipe.optim.xla)
    x, y = next(iter(dataset))
    model.fit(dataset, verbose=0)
    model.train_on_batch(x, y)  # compiled anew
    bare, whole = [], []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(steps):
            model.train_on_batch(x, y)
        bare.append(time.perf_counter() - start)
        start = time.perf_counter()
        model.fit(dataset, verbose=0)
        whole.append(time.perf_counter() - start)
    ratios = [w / b for w, b in zip(whole, bare)]
    return {
        "recipe": name,
        "batch_size": recipe.data.batch_size,
        "steps": steps,
        "bare_step_ms": round(1e3 * statistics.median(bare) / steps, 1),
        "fit_over_bare_median": round(statistics.median(ratios), 3),
        "spread": [round(min(ratios), 3), round(max(ratios), 3)],
        "fit_over_bare_fastest": round(min(whole) / min(bare), 3),
        "rounds": rounds,
    }


def main(names):
    if "photographs" in names and "KERAS_VIT_IMAGES" not in os.environ:
        sys.exit("photographs are found by KERAS_VIT_IMAGES, a folder of classes, which is not set.")
    print(json.dumps({"rows": [measure(name) for name in names], "commit": commit(), **machine.describe()}, indent=2))


if __name__ == "__main__":
    main(sys.argv[1:] or ["mnist", "cifar10_hybrid", "photographs"])
