"""Test accuracy of finished runs, with and without pre-training, and a figure of their validation accuracy.

python benchmarks/pretraining.py "pre-trained=runs/finetuned" "from scratch=runs/scratch" --figure curves.png

Minutes are those of training steps, without validation and saving, from the throughput of each epoch.
"""

import argparse
import json
import pathlib

import keras_vit
from keras_vit import machine
from keras_vit.data import pipeline
from keras_vit.plots import plot_history
from keras_vit.runs import sources_of
from keras_vit.training import history, rundir


def measured(run, curves):
    """Returns settings and scores of a run; `curves` is its history."""
    recipe = keras_vit.load_run(run).recipe
    images = pipeline.steps_per_epoch(sources_of(recipe)[0], recipe) * recipe.data.batch_size
    return {
        "train": recipe.data.train,
        "weights": recipe.model.get("weights") and pathlib.Path(recipe.model["weights"]).name,
        "epochs": len(curves["loss"]),
        "minutes": round(sum(images / speed for speed in curves["images_per_second"]) / 60, 1),
        "test_accuracy": keras_vit.evaluate(run)[str(pathlib.Path(run) / rundir.MODEL)]["accuracy"],
        "val_accuracy": [round(value, 4) for value in curves["val_accuracy"]],
    }


def main(runs, figure):
    histories = {name: history.read(run) for name, run in runs.items()}
    found = {name: measured(run, histories[name]) for name, run in runs.items()}
    if figure:
        drawn = ("loss", "val_accuracy")
        plot_history({name: {k: one[k] for k in drawn} for name, one in histories.items()}).savefig(figure)
    print(json.dumps({"runs": found, **machine.describe()}, indent=2))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="NAME=RUN")
    parser.add_argument("--figure", help="a PNG file")
    given = parser.parse_args()
    main(dict(one.split("=", 1) for one in given.runs), given.figure)
