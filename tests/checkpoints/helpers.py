"""What the tests of checkpoints share: the golden files, and other files made from them."""

import functools
import importlib
import json
import pathlib
import re
import sys
import types

import keras
import numpy as np
import safetensors.numpy

from keras_vit import from_checkpoint, vit
from keras_vit.checkpoints.files.read import open_checkpoint
from keras_vit.models.options import merged

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "checkpoints"
BENCHMARKS = pathlib.Path(__file__).parents[2] / "benchmarks"
SMALL = dict(variant=None, image_size=24, patch_size=8, width=24, depth=2, num_heads=3, mlp_dim=48, num_classes=7)
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/io.npz"))


def benchmark(name):
    """Returns a script of `benchmarks/` as a module."""
    sys.path.append(str(BENCHMARKS))  # for what it imports
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(BENCHMARKS))


def unexpected(calls):
    """Calls each function that must raise a ValueError; returns the calls that raise none, or another message.

    Args:
        calls: Pairs of a function and the pattern of its message; messages must have one line.
    """
    wrong = []
    for function, pattern in calls:
        try:
            function()
        except ValueError as error:
            if not re.search(pattern, str(error)) or "\n" in str(error) or len(str(error)) > 1500:
                wrong.append(f"{pattern!r}: {error}")
        else:
            wrong.append(f"{pattern!r}: no error")
    return wrong


def filled(**options):
    """Returns a model of images of 32 x 48 with random weights."""
    return randomized(vit(**merged(SMALL, {"image_size": (32, 48), "block": {"gelu": "exact"}}, options)))


def randomized(model):
    """Fills every weight of a model with random numbers."""
    rng = np.random.default_rng(0)
    for variable in model.weights:
        scale = 1 if variable.path.endswith("gamma") else 0
        variable.assign(scale + 0.2 * rng.normal(size=variable.shape))
    return model


def file_of(case):
    return next((GOLDEN / case).glob("checkpoint.*"))


@functools.cache
def original(case):
    """Returns the model of a golden file, for all tests: none may change it."""
    return from_checkpoint(file_of(case), **heads_of(case))


def heads_of(case):
    """Returns the number of heads if the golden file does not show it: no model of its width is published."""
    stated = json.loads((GOLDEN / case / "case.json").read_text())
    return {"num_heads": int(stated["arguments"]["num_heads"])} if stated["source"] == "timm" else {}


def arrays_of(case):
    path = file_of(case)
    return dict(np.load(path)) if path.suffix == ".npz" else safetensors.numpy.load_file(path)


def read_hub(form, case, config=None, processor=None, drop=()):
    """Returns what a format of Hugging Face reads off a golden file without some tensors, with another `config.json`.

    `config` is merged with the file's own, or replaces it if it is empty.
    """
    arrays = {name: a for name, a in arrays_of(case).items() if not name.startswith(tuple(drop) or "-")}
    names = getattr(form, "FORMAT", form).names(arrays)
    shapes = {name: arrays[place].shape for name, place in names.items()}
    own = json.loads((GOLDEN / case / "config.json").read_text())
    config = own if config is None else own | config if config else {}
    return form.architecture(
        shapes, types.SimpleNamespace(config=config, processor=processor or {}, shapes=dict.fromkeys(arrays))
    )


def everything(path):
    """Reads a whole checkpoint."""
    with open_checkpoint(path) as checkpoint:
        return {name: checkpoint.read(name) for name in checkpoint.shapes}


def write(path, arrays):
    """Writes arrays as `.npz` or `.safetensors`, by the name."""
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    else:
        safetensors.numpy.save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, path)
    return path


def io_of(case):
    io = np.load(GOLDEN / case / "io.npz")
    return io["x"], io["logits"]


def logits(model, x):
    """Returns a model's output for images past the rescaling."""
    body = keras.Model(model.get_layer("rescale").output, model.output)
    return keras.ops.convert_to_numpy(body(x, training=False))


def weights(model):
    return {v.path: keras.ops.convert_to_numpy(v) for v in model.weights}


def assert_same_weights(one, other):
    assert one.keys() == other.keys()
    for path, array in one.items():
        np.testing.assert_array_equal(array, other[path], err_msg=path)
