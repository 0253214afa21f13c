"""Splits the time of `python -m keras_vit predict cifar10_hybrid photo.png` in a fresh process, from start to answer.

python benchmarks/first_prediction.py [--rounds 5]

Prints medians of seconds of the processor, which other work on the machine changes less than those of the clock.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image

STEPS = """
import json, sys, time
steps, before = {}, 0.0
def done(name):
    global before
    now = time.process_time()
    steps[name], before = now - before, now
import keras_vit.__main__
done("Python, the table of commands")
if sys.argv[2] == "lean":
    from keras_vit.commands import lean
    lean.import_keras()
import keras
done("import of TensorFlow and Keras")
from keras_vit.runs import predictions, trained
done("import of this package")
model = trained.load_run("cifar10_hybrid")
done("loading: the recipe, its model, the weights")
pixels = trained.read(model, [sys.argv[1]])
done("reading the photograph")
model.task.listed(model.viewer()(pixels)[0], 3)
done("computing, without a graph")
print(json.dumps(steps))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        photo = pathlib.Path(folder, "photo.png")
        Image.fromarray(np.random.default_rng(0).integers(0, 256, (480, 640, 3)).astype("uint8")).save(photo)
        found = {"lean": [], "with all libraries": []}
        for _ in range(rounds):
            for kind, runs in found.items():
                code = f"import sys; sys.argv[0] = 'keras_vit'\n{STEPS}"  # as the command, which imports no public name
                command = [sys.executable, "-c", code, str(photo), kind]
                runs.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    for kind, runs in found.items():
        print(kind)
        for name in runs[0]:
            print(f"  {statistics.median(run[name] for run in runs):5.2f}  {name}")
        print(f"  {statistics.median(sum(run.values()) for run in runs):5.2f}  all")


if __name__ == "__main__":
    main()
