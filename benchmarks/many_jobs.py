"""One model for five jobs of restoration beside five models of one job, of the same CPU time in all.

python benchmarks/many_jobs.py superres > benchmarks/results/many_jobs.json

Data are those of the recipe `superres_x2`. The recipe `restore_jobs` is trained first; each single model then gets a
fifth of the CPU time that its `fit` took: two epochs say what an epoch costs, and thus how many there may be. Single
models have the same blocks, and heads of their own job; those that enlarge compute at the size of the given image.
Times are of the processor, so other work on the machine matters little. Scores are of Set5.
"""

import argparse
import json
import pathlib
import sys
import tempfile
import time

import keras
from checkout import commit

import keras_vit
from keras_vit import config
from keras_vit.tasks.restore.jobs import settings_of
from keras_vit.utils import machine


class Seconds(keras.callbacks.Callback):
    """Notes the CPU seconds of each epoch."""

    def __init__(self):
        super().__init__()
        self.at = []

    def on_epoch_end(self, epoch, logs=None):
        self.at.append(time.process_time())


def trained(recipe, folder, epochs):
    """Trains a recipe, and returns its CPU seconds, and those of its last epoch."""
    began, seconds = time.process_time(), Seconds()
    keras_vit.fit(config.override(recipe, {"optim.epochs": epochs}), folder, callbacks=seconds, verbose=2)
    return time.process_time() - began, seconds.at[-1] - (seconds.at[-2] if epochs > 1 else began)


def single(recipe, job, size):
    settings = settings_of(job)
    changes = {f"task.{name}": value for name, value in settings.items()}
    return config.override(recipe, {"task.jobs": (), **changes, "model.image_size": size // settings.get("scale", 1)})


def main(source, epochs, folder):
    recipe = keras_vit.load_recipe("restore_jobs", {"data.source": f"folder:{source}"})
    total, _ = trained(recipe, folder / "jobs", epochs)
    jobs = recipe.task.jobs
    found = {"jobs": {"cpu minutes": total / 60, "epochs": epochs, **scores(folder / "jobs")}}
    for job in jobs:
        alone = single(recipe, job, recipe.model["image_size"])
        began, an_epoch = trained(alone, folder / f"{job}_trial", 2)
        count = max(1, round((total / len(jobs) - (began - 2 * an_epoch)) / an_epoch))
        took, _ = trained(alone, folder / job, count)
        found[job] = {"cpu minutes": took / 60, "epochs": count, **scores(folder / job)}
        print(job, found[job], file=sys.stderr, flush=True)
    print(json.dumps({**found, "commit": commit(), **machine.describe()}, indent=2))


def scores(run):
    return {name: {key: float(value) for key, value in each.items()} for name, each in keras_vit.evaluate(run).items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", help="a folder of photographs, as for superres_x2")
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--folder", type=pathlib.Path, default=None, help="of the runs; else they are not kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(options.source, options.epochs, options.folder or pathlib.Path(temporary))
