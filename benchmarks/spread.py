"""95 % intervals of the scores of shipped weights on few images, by drawing the images again with repetition.

python benchmarks/spread.py superres_x2 nuclei blood_cells --data FOLDER [--draws 400]

The folder has `nuclei`, `blood_cells` and `superres` as the recipes describe them. An interval is from the
2.5th to the 97.5th percentile of the scores of sets as large as the first, each drawn from it with repetition (Efron
1979, "Bootstrap methods"). It tells what other images might give, not what another training might.
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
    """Returns the task of shipped weights, and a pair for each test image: what belongs to it, and the output."""
    found = keras_vit.load_run(name)
    source, pairs = results.source_of(found, None, None), []
    for examples, outputs in evaluation.answered(found.answering(), found.bound, source, found.size):
        for i in range(len(outputs)):
            pairs.append(({key: value[i : i + 1] for key, value in examples.items()}, outputs[i : i + 1]))
    return found.bound.task, pairs


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
        task, pairs = answers(name)
        rng, drawn = np.random.default_rng(0), []
        for _ in range(args.draws):
            drawn.append(scores(task, [pairs[i] for i in rng.integers(len(pairs), size=len(pairs))]))
        measured = {"images": len(pairs), "draws": args.draws, **checkout.about("keras", "tensorflow")}
        for score, value in scores(task, pairs).items():
            low, high = np.nanpercentile([each[score] for each in drawn if score in each], (2.5, 97.5))
            measured[score] = [float(value), float(low), float(high)]
            print(f"{name} {score} {value:.4f}, {low:.4f} to {high:.4f}", flush=True)
        found[name] = measured
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
