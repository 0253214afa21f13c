"""What the pipeline and the callbacks add to the bare compiled step, on recipes' models and augmentation.

python benchmarks/fit_overhead.py mnist cifar10_hybrid > benchmarks/results/fit_overhead.json

Alternates, in one process: 60 steps on one batch in memory, and 60 steps of `fit` from the pipeline.
"""

import json
import statistics
import subprocess
import sys
import time

import numpy as np

import keras_vit
from keras_vit import machine, training
from keras_vit.data import pipeline
from keras_vit.data.sources import Source


def measure(name, rounds=7, steps=60):
    recipe = keras_vit.load_recipe(name)
    batch = recipe.data.batch_size
    size = (recipe.model["image_size"], recipe.model["image_size"], recipe.model.get("channels", 3))
    classes = recipe.model["num_classes"]
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (batch * steps, *size)).astype("uint8")
    source = Source(images, rng.integers(0, classes, batch * steps).astype("int32"), tuple(map(str, range(classes))))
    dataset = pipeline.training_batches(source, recipe, size)
    model = training.compile_model(keras_vit.from_recipe(recipe), recipe, steps)
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
        "bare_step_ms": round(1e3 * statistics.median(bare) / steps, 1),
        "fit_over_bare_median": round(statistics.median(ratios), 3),
        "spread": [round(min(ratios), 3), round(max(ratios), 3)],
        "fit_over_bare_fastest": round(min(whole) / min(bare), 3),
        "rounds": rounds,
    }


def main(names):
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    print(json.dumps({"rows": [measure(name) for name in names], "commit": commit, **machine.describe()}, indent=2))


if __name__ == "__main__":
    main(sys.argv[1:] or ["mnist", "cifar10_hybrid"])
