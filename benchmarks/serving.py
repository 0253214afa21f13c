"""Latency and throughput of a served SavedModel by number of images, with and without XLA: in turns, in one process.

python benchmarks/serving.py > benchmarks/results/serving.json

Calls of the signature `serve` on raw pixels, without network and JSON.
"""

import json
import os
import pathlib
import platform
import statistics
import sys
import tempfile
import time

import tensorflow as tf
from checkout import commit

import keras_vit

ROUNDS = 15
CASES = {"mnist": (1, 8, 32), "Ti/16": (1, 4, 16)}  # images at a time


def model_of(case):
    return keras_vit.vit(case) if "/" in case else keras_vit.from_recipe(case, pretrained=True)


def measured(case, batches):
    """Returns, by number of images, the milliseconds of a call and the images a second, plain and under XLA."""
    model, rows = model_of(case), {}
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: pathlib.Path(folder, name) for name in ("plain", "xla")}
        for name, path in paths.items():
            keras_vit.export_saved_model(model, path, xla=name == "xla")
        loaded = {name: tf.saved_model.load(str(path)) for name, path in paths.items()}
        for batch in batches:
            images = tf.random.uniform((batch, *model.input_shape[1:]), 0, 255)
            seconds = {name: [] for name in loaded}
            for turn in range(ROUNDS + 2):  # the first two compile
                for name, one in loaded.items():
                    start = time.perf_counter()
                    one.signatures["serve"](images=images)["logits"].numpy()
                    if turn > 1:
                        seconds[name].append(time.perf_counter() - start)
            medians = {name: statistics.median(column) for name, column in seconds.items()}
            rows[batch] = {
                **{f"{name}_ms": round(1000 * value, 2) for name, value in medians.items()},
                **{f"{name}_images_per_second": round(batch / value, 1) for name, value in medians.items()},
                "speed_of_xla": round(statistics.median(a / b for a, b in zip(seconds["plain"], seconds["xla"])), 2),
            }
    return rows


if __name__ == "__main__":
    rows = {}
    for case, batches in CASES.items():
        rows[case] = measured(case, batches)
        print(case, rows[case], file=sys.stderr, flush=True)
    about = {"commit": commit(), "cores": os.cpu_count(), "machine": platform.processor() or platform.machine()}
    print(json.dumps({**about, "tensorflow": tf.__version__, "cases": rows}, indent=1))
