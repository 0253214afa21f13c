"""Checks `.keras` files before Keras fills memory by what they say."""

import contextlib
import io
import json
import math
import os
import zipfile

import keras

from keras_vit.utils.files import regular
from keras_vit.utils.keras_private import shapes_only

FREE = 2**26  # bytes that any file may fill
TIMES = 30  # and this many for each of its own: weights that were packed are hardly smaller
BYTES = 4  # of a number of a weight
CONFIG, WEIGHTS = "config.json", "model.weights.h5"


def check_packed(path):
    """Raises ValueError for a `.keras` file that would fill far more memory than it has bytes.

    Its parts may be packed, their arrays too, and its configuration may describe a model of any size. A file that is
    damaged is left to Keras, which says so.

    Raises:
        FileNotFoundError: If there is no file.
        ValueError: Also for a pipe or a device.
    """
    size = os.stat(regular(path)).st_size
    most = FREE + TIMES * size
    with contextlib.suppress(zipfile.BadZipFile, KeyError, NotImplementedError), zipfile.ZipFile(path) as file:
        unpacked = sum(info.file_size for info in file.infolist())
        if unpacked <= most:
            unpacked = max(_of_model(file.read(CONFIG)), _of_arrays(file))
        if unpacked > most:
            raise ValueError(
                f"{str(path)!r} is packed too tightly to be a model: from {size:,} bytes it would fill "
                f"{unpacked:,.0f}, and at most {most:,} are plausible"
            )


def _of_model(config):
    """Returns the bytes of the weights of the model that a configuration describes; 0 if it describes none."""
    try:
        config = {name: value for name, value in json.loads(config).items() if name != "compile_config"}
        model = shapes_only(lambda: keras.saving.deserialize_keras_object(config))
        return BYTES * sum(math.prod(variable.shape) for variable in model.variables)
    except Exception:  # whatever Keras says of it when it loads the file
        return 0


def _of_arrays(file):
    """Returns the bytes of the arrays in the weights of an open file, by their headers; 0 of large or damaged ones."""
    import h5py

    if file.getinfo(WEIGHTS).file_size > FREE:
        return 0
    sizes = []
    with contextlib.suppress(OSError, RuntimeError, ValueError), h5py.File(io.BytesIO(file.read(WEIGHTS))) as weights:
        weights.visititems(lambda name, item: sizes.append(getattr(item, "nbytes", 0)))
    return sum(sizes)
