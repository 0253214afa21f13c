"""Seconds of training until the test set is classified right to some accuracies, by recipe and seed.

python benchmarks/time_to_accuracy.py mnist_quick --goals 0.97 0.98 0.993 > benchmarks/results/time_to_accuracy.json
python benchmarks/time_to_accuracy.py cifar10_quick optim.epochs=7 --goals 0.8 0.86 0.9 --seeds 0 > result.json

Words after the recipe's name change its settings, such as `optim.epochs=7`.

The clock runs from the start of training, compiling and saving included, and stands still while the test set is looked
at, after each epoch. Nothing is chosen by what is seen there: the schedule is the recipe's. Memory is TensorFlow's
pool, as in `fit`.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

import keras
from checkout import commit

import keras_vit
from keras_vit import config
from keras_vit.__main__ import MEMORY
from keras_vit.training.fit import on_data
from keras_vit.training.loop import Run, run_epochs
from keras_vit.utils import machine


class Clock(keras.callbacks.Callback):
    """The seconds of training at the end of each epoch, and the accuracy there."""

    def __init__(self):
        super().__init__()
        self.spent, self.since, self.seen = 0.0, time.perf_counter(), []

    def on_test_begin(self, logs=None):
        self.spent += time.perf_counter() - self.since

    def on_test_end(self, logs=None):
        self.since = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.seen.append((self.spent, float(logs["val_accuracy"])))


def main(name, changes, goals, seeds):
    os.environ.update(MEMORY)
    runs = []
    for seed in seeds:
        recipe = keras_vit.load_recipe(name, {**changes, "seed": seed})
        recipe = config.override(recipe, {"data.validation": recipe.data.test})
        with tempfile.TemporaryDirectory() as folder:
            recipe, *sources = on_data(recipe)
            model = keras_vit.from_recipe(recipe)
            clock = Clock()
            run_epochs(Run(recipe, model, *sources, pathlib.Path(folder)), 0, extra=[clock])
        reached = {
            f"{100 * goal:g}%": next((round(seconds, 1) for seconds, accuracy in clock.seen if accuracy >= goal), None)
            for goal in goals
        }
        last = {"seconds": round(clock.spent, 1), "test_accuracy": round(clock.seen[-1][1], 4)}
        runs.append({"seed": seed, "seconds_to": reached, **last})
        print(runs[-1], file=sys.stderr)
    report = {"recipe": name, "changes": changes, "runs": runs, "commit": commit(), **machine.describe()}
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("changes", nargs="*", help="such as optim.epochs=7")
    parser.add_argument("--goals", nargs="*", type=float, required=True, help="shares of the test set")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    given = parser.parse_args()
    main(given.recipe, config.parse(given.changes), given.goals, given.seeds)
