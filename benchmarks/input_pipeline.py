"""Images a second out of the training pipeline, beside decoding alone: photographs at 224, and 32 x 32 in memory.

KERAS_VIT_IMAGES=FOLDER python benchmarks/input_pipeline.py > benchmarks/results/input_pipeline.json

FOLDER holds class folders of JPEGs. Alternates, in one process: `tf.io.decode_jpeg` of the whole images in a parallel
map, and the pipeline with an inception crop and a flip, as it is and with one augmentation more. All on as many threads
as there are cores; the files lie in memory. What an image costs beside its decoding is told by the ratios.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import platform
import statistics
import time

import keras
import numpy as np
import tensorflow as tf
from checkout import commit

from keras_vit.config import LEVELS, Augment, Data, Optim, Recipe
from keras_vit.data import pipeline, sources

CROP = {"crop": "inception", "flip": True}
PHOTOGRAPHS = {
    "crop": CROP,
    "jitter 0.4": {**CROP, "jitter": 0.4},
    "randaugment 2 x 10": {**CROP, "randaugment": 2, "magnitude": 10.0},
    "randaugment 2 x 15": {**CROP, "randaugment": 2, "magnitude": 15.0},
    "mixup 0.2": {**CROP, "mixup": 0.2},
    "cutmix 1.0": {**CROP, "cutmix": 1.0},
    "erase 0.25": {**CROP, "erase": 0.25},
}
SHIFT = {"crop": "padded", "flip": True}
SMALL = {
    "shift": SHIFT,
    "shift, randaugment 2 x 10": {**SHIFT, "randaugment": 2, "magnitude": 10.0},
    "shift, randaugment 2 x 10, mixup or cutmix, erase": {
        **SHIFT, "randaugment": 2, "magnitude": 10.0, "mixup": 0.8, "cutmix": 1.0, "erase": 0.25,
    },
}  # fmt: skip


def decode_only(paths, passes):
    """Returns a function that decodes all files so many times, and how many images those are."""
    files = tf.data.Dataset.from_tensor_slices([pathlib.Path(path).read_bytes() for path in paths]).cache()
    options = tf.data.Options()
    options.autotune.enabled = False  # as in the pipeline
    images = files.repeat(passes).map(
        lambda file: tf.io.decode_jpeg(file, channels=3), num_parallel_calls=os.cpu_count(), deterministic=True
    )
    images = images.prefetch(64).with_options(options)
    return lambda: images.reduce(0, lambda count, _: count + 1), passes * len(paths)


def ours(source, size, batch, passes, settings):
    """Returns a function that makes so many epochs of batches, and how many images those are."""
    recipe = Recipe(name="x", model={}, data=Data(batch_size=batch), augment=settings, optim=Optim(epochs=passes))
    recipe = dataclasses.replace(recipe, task=recipe.task.on(source))
    dataset = pipeline.training_batches(source, recipe, size, first_epoch=0)
    return lambda: [None for _ in dataset], passes * (len(source) // batch * batch)


def measure(cases, rounds):
    """Returns two lists of each case, a value a round: images a second, and milliseconds of the processor an image."""
    rates, costs = {name: [] for name in cases}, {name: [] for name in cases}
    for run, _ in cases.values():  # traced, and files read
        run()
    for _ in range(rounds):
        for name, (run, count) in cases.items():
            start, busy = time.perf_counter(), time.process_time()
            run()
            costs[name].append(1e3 * (time.process_time() - busy) / count)
            rates[name].append(count / (time.perf_counter() - start))
    return rates, costs


def table(measured, base):
    """Returns medians, and the median and the spread of the ratios to `base`, round by round."""
    (rates, costs), rows = measured, {}
    for name, values in rates.items():
        ratios = sorted(value / other for value, other in zip(values, rates[base]))
        rows[name] = {
            "images_per_second": round(statistics.median(values), 1),
            "cpu_ms_per_image": round(statistics.median(costs[name]), 3),
            f"over_{base.replace(' ', '_')}": round(statistics.median(ratios), 3),
            "spread": [round(ratios[0], 3), round(ratios[-1], 3)],
        }
    return rows


def main(rounds=7, photographs=200, passes=5, size=224, only=None):
    folder = os.environ["KERAS_VIT_IMAGES"]
    source = sources.load(Data(source=f"folder:{folder}", limit=photographs), "all")
    photos = {"decode only": decode_only(source.images, passes)}
    variants = {name: Augment(**values) for name, values in PHOTOGRAPHS.items()}
    variants |= {f"level {name}": Augment.level(name, **CROP) for name in LEVELS if name != "none"}
    for name, settings in variants.items():
        if only is None or name in only:
            photos[name] = ours(source, (size, size, 3), min(50, len(source)), passes, settings)
    pixels = np.random.default_rng(0).integers(0, 256, (12_800, 32, 32, 3)).astype("uint8")
    small = sources.from_arrays((pixels, np.arange(len(pixels)) % 10), ("labels",), (32, 32, 3), tuple("0123456789"))
    held = {
        name: ours(small, (32, 32, 3), 128, 1, Augment(**values))
        for name, values in SMALL.items()
        if only is None or name in only
    }
    row = {
        "photographs": table(measure(photos, rounds), "decode only"),
        "in_memory_32": table(measure(held, rounds), "shift") if held else {},
        "size": size,
        "rounds": rounds,
        "photographs_a_round": passes * len(source),
        "commit": commit(),
        "device": f"{os.cpu_count()} cores, {platform.machine()}",
        "keras": keras.__version__,
        "tensorflow": tf.__version__,
    }
    print(json.dumps(row, indent=2))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--photographs", type=int, default=200)
    parser.add_argument("--only", nargs="*", help="names of the cases to measure; all if not given")
    arguments = parser.parse_args()
    main(arguments.rounds, arguments.photographs, only=arguments.only)
