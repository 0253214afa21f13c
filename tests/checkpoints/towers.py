"""What the tests of models of images and texts share: the golden files in `tests/golden/towers` and `vilt`."""

import keras
import numpy as np
import safetensors.numpy

from keras_vit import from_checkpoint
from tests.checkpoints.helpers import GOLDEN, benchmark

TOWERS = GOLDEN.parent / "towers"
VILT = GOLDEN.parent / "vilt"
GENERATION = GOLDEN.parent / "generation"


def file_in(case):
    return next((TOWERS / case).glob("checkpoint.*"))


def arrays_in(case):
    path = file_in(case)
    return dict(np.load(path)) if path.suffix == ".npz" else safetensors.numpy.load_file(path)


def io_in(case):
    return dict(np.load(TOWERS / case / "io.npz"))


def both(case, **options):
    """Returns both towers of a golden file."""
    return from_checkpoint(file_in(case), part="both", **options)


def answers(model, io):
    """Returns what two towers answer to the inputs of a golden file, by the names of its answers."""
    found = benchmark("golden_answers").of_towers(model, io)
    return {name: keras.ops.convert_to_numpy(array).astype("float32") for name, array in found.items()}
