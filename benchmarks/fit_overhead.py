"""What the pipeline and the callbacks add to the bare compiled step, on the MNIST recipe's model and augmentation.

python benchmarks/fit_overhead.py > benchmarks/results/fit_overhead.json

Alternates, in one process: 60 steps on one batch in memory, and 60 steps of `fit` from the pipeline.
"""

import json
import os
import platform
import statistics
import subprocess
import time

import keras
import numpy as np
import tensorflow as tf

import keras_vit
from keras_vit import training
from keras_vit.data import pipeline
from keras_vit.data.sources import Source


def main(rounds=7, steps=60):
    recipe = keras_vit.load_recipe("mnist")
    batch = recipe.data.batch_size
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (batch * steps, 28, 28, 1)).astype("uint8")
    source = Source(images, rng.integers(0, 10, batch * steps).astype("int32"), tuple("0123456789"))
    dataset = pipeline.training_batches(source, recipe, (28, 28, 1))
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
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    row = {
        "bare_step_ms": round(1e3 * statistics.median(bare) / steps, 1),
        "fit_over_bare_median": round(statistics.median(ratios), 3),
        "spread": [round(min(ratios), 3), round(max(ratios), 3)],
        "fit_over_bare_fastest": round(min(whole) / min(bare), 3),
        "seconds": {"bare": [round(s, 2) for s in bare], "fit": [round(s, 2) for s in whole]},
        "rounds": rounds,
        "commit": commit,
        "device": f"{os.cpu_count()} cores, {platform.machine()}",
        "keras": keras.__version__,
        "tensorflow": tf.__version__,
    }
    print(json.dumps(row, indent=2))


if __name__ == "__main__":
    main()
