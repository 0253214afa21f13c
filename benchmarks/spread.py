"""95 % intervals of the scores of shipped weights on few images, by drawing the images again with repetition.

python benchmarks/spread.py superres_x2 nuclei blood_cells --data FOLDER [--draws 400]
python benchmarks/spread.py RUN --data FOLDER

The folder has `nuclei`, `blood_cells` and `superres` as the recipes describe them; a run has its own recipe's. An
interval is from the 2.5th to the 97.5th percentile of the scores of sets as large as the first, each drawn from it with
repetition (Efron 1979, "Bootstrap methods"). It tells what other images might give, not what another training might.
Frames of one drive are alike, so those of `camvid` tell less than as many photographs.
"""

import argparse
import json
import os
import pathlib

import checkout
import numpy as np

import keras_vit
from keras_vit.runs import results
from keras_vit.training import evaluation

RESULTS = pathlib.Path(__file__).parent / "results" / "spread.json"


def answers(name):
    """Returns the recipe, the task, and a pair for each test image: what belongs to it, and the output."""
    found = keras_vit.load_run(name)
    source, pairs = results.source_of(found, None, None), []
    for examples, outputs in evaluation.answered(found.answering(), found.bound, source, found.size):
        for i in range(len(outputs)):
            pairs.append(({key: value[i : i + 1] for key, value in examples.items()}, outputs[i : i + 1]))
    return found.recipe.name, found.bound.task, pairs


def scored(task, pairs, draws):
    """Returns the scores of all images, and of each draw: lists of the images' numbers."""
    if not hasattr(task.tally(), "matrix"):
        return scores(task, pairs), [scores(task, [pairs[i] for i in draw]) for draw in draws]
    matrices = []  # of one image each: those of a draw are added, and no image is compared twice
    for pair in pairs:
        tally = task.tally()
        tally.add(*pair)
        matrices.append(tally.matrix)
    found, matrices = [], np.stack(matrices)
    for some in [range(len(pairs)), *draws]:
        tally = task.tally()
        tally.matrix = matrices[list(some)].sum(0)
        found.append(tally.result())
    return found[0], found[1:]


def scores(task, pairs):
    tally = task.tally()
    for examples, outputs in pairs:
        tally.add(examples, outputs)
    return tally.result()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--draws", type=int, default=400)
    args = parser.parse_args()
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    os.chdir(args.data)
    for name in args.names:
        name, task, pairs = answers(name)
        rng = np.random.default_rng(0)
        draws = [rng.integers(len(pairs), size=len(pairs)) for _ in range(args.draws)]
        whole, drawn = scored(task, pairs, draws)
        measured = {"images": len(pairs), "draws": args.draws, **checkout.about("keras", "tensorflow")}
        for score, value in whole.items():
            low, high = np.nanpercentile([each[score] for each in drawn if score in each], (2.5, 97.5))
            measured[score] = [float(value), float(low), float(high)]
            print(f"{name} {score} {value:.4f}, {low:.4f} to {high:.4f}", flush=True)
        found[name] = measured
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
