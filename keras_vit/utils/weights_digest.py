"""What identifies the weights of a model: of which ones an exported file was made, or a rule was set."""

import hashlib
import math

import keras
import numpy as np

WEIGHTS = "weights_sha256"  # its name in what is written beside an exported file
WHOLE = 2**20  # numbers of a weight that are read, all of them; of a larger one those of its first index


def weights_digest(model):
    """Returns a SHA-256 of a model's weights, 64 hex digits, without states of random seeds.

    The order and the names of the layers do not count, nor the precision in which weights are kept.
    """
    parts = sorted(hashlib.sha256(_numbers(variable)).digest() for variable in model.weights)
    return hashlib.sha256(b"".join(parts)).hexdigest()


def _numbers(variable):
    values = variable.value if math.prod(variable.shape) <= WHOLE else variable.value[0]
    return np.ascontiguousarray(keras.ops.convert_to_numpy(values), "float32")
