"""What identifies the weights of a model: which ones an exported file was made of."""

import hashlib

import keras
import numpy as np

WEIGHTS = "weights_sha256"  # its name in what is written beside an exported file


def weights_digest(model):
    """Returns the SHA-256 of a model's weights with their shapes, 64 hex digits, without states of random seeds."""
    digest = hashlib.sha256()
    for weight in model.weights:
        values = keras.ops.convert_to_numpy(weight.value)
        digest.update(f"{values.shape} {values.dtype}".encode())
        digest.update(np.ascontiguousarray(values).view("uint8").reshape(-1).data)
    return digest.hexdigest()
