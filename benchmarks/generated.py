"""Scores images that a model draws with several guidances, and for comparison real, blurred and noisy images.

python benchmarks/generated.py mnist_dit --guidance 1 1.5 2 3 --pictures docs/images

Of each row: the share of images that the recipe's judge, a classifier that was not used in training, reads as their
class; the Fréchet distance of its features to those of 20,000 training images; and the median distance of an image to
the nearest of them, root mean square of 255: below that of test images, images are copied. The results are written to
benchmarks/results/generated.json. With --pictures, rows of classes, and one of each from noise to image, are drawn.
"""

import argparse
import json
import pathlib
import time

import numpy as np
import scipy.ndimage
from checkout import commit

import keras_vit
from keras_vit.plots import plot_pictures
from keras_vit.runs.results import some_images
from keras_vit.tasks.generate.moments import Moments, frechet
from keras_vit.tasks.generate.sample_tally import judge_of
from keras_vit.utils import machine

RESULTS = pathlib.Path(__file__).parent / "results" / "generated.json"
REFERENCE, MOST, NEAREST, SAMPLES, CLASSES, SEEDS = 20_000, 10_000, 300, 1000, 10, 8
SPOILED = {
    "test images": lambda images, rng: images,
    "blurred": lambda images, rng: scipy.ndimage.gaussian_filter(images, (0, 1, 1, 0)),
    "noise of 20": lambda images, rng: images + rng.normal(0, 20, images.shape),
    "noise of 40": lambda images, rng: images + rng.normal(0, 40, images.shape),
    "noise alone": lambda images, rng: rng.uniform(0, 255, images.shape),
}


def scored(images, labels, judge, reference):
    """Returns the scores of images, 0 to 255."""
    images = np.clip(np.rint(images), 0, 255).astype("float32")
    features, logits = judge(images)
    moments = Moments()
    moments.add(features)
    flat, rows = (
        reference["images"].reshape(len(reference["images"]), -1),
        images[:NEAREST].reshape(len(images[:NEAREST]), -1),
    )
    squares = (rows**2).sum(1)[:, None] + (flat**2).sum(1) - 2 * rows @ flat.T
    return {
        "accuracy": round(float((logits.argmax(-1) == labels).mean()), 4),
        "frechet": round(frechet(moments, reference["moments"]), 4),
        "nearest": round(float(np.median(np.sqrt(squares.min(1).clip(0) / flat.shape[1]))), 1),
    }


def main(name, guidances, steps, count, pictures):
    trained = keras_vit.load_run(name)
    task, data = trained.task, trained.recipe.data
    judge, rng = judge_of(task.judge), np.random.default_rng(0)
    train = some_images(trained, data.train, REFERENCE)["originals"]
    reference = {"images": train, "moments": Moments()}
    reference["moments"].add(judge(train)[0])
    test = some_images(trained, data.test, MOST)
    chosen = rng.permutation(len(test["labels"]))[:count]  # a test set may begin with its easier half, as MNIST's
    test = {name: values[chosen] for name, values in test.items()}
    rows = {}
    for what, spoil in SPOILED.items():
        rows[what] = scored(spoil(test["originals"], rng), test["labels"], judge, reference)
    labels = np.arange(count) % len(trained.class_names)
    for guidance in guidances:
        keras_vit.sample(trained.model, labels[:64], guidance=guidance, steps=steps)  # compiles
        start = time.perf_counter()
        images = keras_vit.sample(trained.model, labels, guidance=guidance, steps=steps)
        seconds = (time.perf_counter() - start) / count
        row = scored(images.astype("float32"), labels, judge, reference)
        rows[f"drawn, guidance {guidance:g}"] = row | {"milliseconds": round(1000 * seconds, 1)}
    for what, row in rows.items():
        print(what, row)
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    about = {"judge": task.judge, "images": count, "steps": steps, "seed": 0, "commit": commit()}
    found[str(name)] = {**about, "machine": machine.describe(), "rows": rows}
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")
    if pictures:
        draw(trained, pathlib.Path(pictures), steps)


def draw(trained, folder, steps):
    """Draws a row for each class, and the way from noise to an image of each."""
    names = trained.class_names[:CLASSES]
    labels = np.repeat(np.arange(len(names)), SEEDS)
    images = keras_vit.sample(trained.model, labels, guidance=trained.task.guidance, steps=steps)
    plot_pictures(images, across=SEEDS).savefig(folder / "drawn.png")
    path = keras_vit.sample(
        trained.model, np.arange(min(len(names), 4)), guidance=trained.task.guidance, steps=steps, path=True
    )
    chosen = np.linspace(0, steps, SEEDS).round().astype(int)
    plot_pictures(path[:, chosen].reshape(-1, *path.shape[2:]), across=SEEDS).savefig(folder / "from_noise.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="a run, or a recipe with trained weights")
    parser.add_argument("--guidance", type=float, nargs="+", default=[1.0, 1.5, 2.0, 3.0])
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--count", type=int, default=SAMPLES)
    parser.add_argument("--pictures", help="a folder")
    given = parser.parse_args()
    main(given.run, given.guidance, given.steps, given.count, given.pictures)
