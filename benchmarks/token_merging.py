"""Token merging: speed of Ti, S and B/16 by r, and accuracy of the shipped classifiers by r.

TFDS_DATA_DIR=... python benchmarks/token_merging.py > benchmarks/results/token_merging.json

Speed: models with random weights, in turns, in one process; agreement of random weights would say nothing. Accuracy and
agreement with the model without merging: on the test sets of the shipped weights, in the order of the sets.
"""

import json
import os
import platform
import statistics
import sys
import time

import keras
import numpy as np
import tensorflow as tf
from checkout import commit

import keras_vit
from keras_vit.data import pipeline
from keras_vit.runs import results
from keras_vit.runs.trained import load_run

ROUNDS = 5
SPEED = {  # images at a time, then r
    ("Ti/16", 224): (8, 4, 8, 13, 16),
    ("Ti/16", 384): (4, 8, 24, 40),
    ("S/16", 224): (4, 4, 8, 13, 16),
    ("S/16", 384): (2, 8, 24, 40),
    ("B/16", 224): (2, 4, 8, 13, 16),
    ("B/16", 384): (1, 8, 24, 40),
}
SHIPPED = {"mnist": (2, 4, 6, 8), "cifar10_hybrid": (1, 2, 4)}


def speed(variant, size, batch, counts):
    """Returns, by r, images a second, and speed and multiply-adds relative to the model without merging."""
    model = keras_vit.vit(variant, image_size=size)
    models = {"without": model, **{r: keras_vit.merge_tokens(model, r) for r in counts}}
    images = tf.random.uniform((batch, size, size, 3), 0, 255)
    runs = {
        r: tf.function(lambda x, model=one: model(x, training=False), jit_compile=True) for r, one in models.items()
    }
    seconds = {r: [] for r in runs}
    for turn in range(ROUNDS + 1):  # the first compiles
        for r, run in runs.items():
            start = time.perf_counter()
            run(images).numpy()
            if turn:
                seconds[r].append(time.perf_counter() - start)
    whole = keras_vit.count_macs(model)
    rows = {}
    for r, one in models.items():
        ratios = [a / b for a, b in zip(seconds["without"], seconds[r], strict=True)]
        rows[r] = {
            "images_per_second": round(batch / statistics.median(seconds[r]), 2),
            "speed": round(statistics.median(ratios), 3),
            "speed_of_rounds": [round(min(ratios), 3), round(max(ratios), 3)],
            "speed_of_multiply_adds": round(whole / keras_vit.count_macs(one), 3),
        }
    return {"batch": batch, **rows}


def accuracy(recipe, counts):
    """Returns, by r, the test accuracy of a recipe's weights, and how many images keep their class, in percent."""
    trained = load_run(recipe)
    model, source = trained.model, results.source_of(trained, None, None)
    parts = list(pipeline.evaluation_arrays(source, trained.bound, trained.size))
    labels, before, rows = np.concatenate([part["labels"] for part in parts]), None, {}
    for r in (0, *counts):
        merged = keras_vit.merge_tokens(model, r) if r else model
        chosen = np.concatenate([merged.predict(part["images"], verbose=0).argmax(-1) for part in parts])
        before = chosen if before is None else before
        rows[r] = {
            "accuracy": round(100 * float(np.mean(chosen == labels)), 2),
            "agreement": round(100 * float(np.mean(chosen == before)), 2),
            "speed_of_multiply_adds": round(keras_vit.count_macs(model) / keras_vit.count_macs(merged), 3),
        }
    return {"images": len(labels), **rows}


if __name__ == "__main__":
    rows = {"accuracy": {}, "speed": {}}
    for recipe, counts in SHIPPED.items():
        rows["accuracy"][recipe] = accuracy(recipe, counts)
        print(recipe, rows["accuracy"][recipe], file=sys.stderr, flush=True)
    for (variant, size), (batch, *counts) in SPEED.items():
        keras.backend.clear_session()
        rows["speed"][f"{variant} {size}"] = speed(variant, size, batch, counts)
        print(variant, size, rows["speed"][f"{variant} {size}"], file=sys.stderr, flush=True)
    about = {"commit": commit(), "cores": os.cpu_count(), "machine": platform.processor() or platform.machine()}
    print(json.dumps({**about, "tensorflow": tf.__version__, "keras": keras.__version__, **rows}, indent=1))
