"""Test accuracy of finished runs, with and without pre-training, and a figure of their validation accuracy.

python benchmarks/pretraining.py "pre-trained=runs/finetuned" "from scratch=runs/scratch" --figure curves.png

Rows of other runs stay in benchmarks/results/pretraining.json. Minutes are those of training steps, without validation
and saving, from the throughput of each epoch.
"""

import argparse
import json
import pathlib

from checkout import commit

import keras_vit
from keras_vit.data import pipeline
from keras_vit.plots import plot_history
from keras_vit.training import history, rundir
from keras_vit.training.fit import sources_of

RESULTS = pathlib.Path(__file__).parent / "results" / "pretraining.json"


def measured(run):
    """Returns settings, scores and curves of a run."""
    recipe, curves = keras_vit.load_run(run).recipe, history.read(run)
    images = pipeline.steps_per_epoch(sources_of(recipe)[0], recipe) * recipe.data.batch_size
    return {
        "train": recipe.data.train,
        "weights": recipe.model.get("weights") and pathlib.Path(recipe.model["weights"]).name,
        "epochs": len(curves["loss"]),
        "minutes": round(sum(images / speed for speed in curves["images_per_second"]) / 60, 1),
        "test_accuracy": keras_vit.evaluate(run)[str(pathlib.Path(run) / rundir.MODEL)]["accuracy"],
        "loss": [round(value, 4) for value in curves["loss"]],
        "val_accuracy": [round(value, 4) for value in curves["val_accuracy"]],
        "commit": commit(),
        "machine": rundir.trained_on(run),
    }


def main(runs, figure):
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    found |= {name: measured(run) for name, run in runs.items()}
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")
    if figure:
        drawn = ("loss", "val_accuracy")
        plot_history({name: {k: found[name][k] for k in drawn} for name in runs}).savefig(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="NAME=RUN")
    parser.add_argument("--figure", help="a PNG file")
    given = parser.parse_args()
    main(dict(one.split("=", 1) for one in given.runs), given.figure)
