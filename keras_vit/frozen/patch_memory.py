"""A layer that compares patch tokens with remembered ones, and how few of them are chosen."""

import math

import keras
import numpy as np
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.utils import checks

ROWS = 4096  # remembered tokens that are compared at once
TOP = 0.01  # share of an image's patches whose distances are averaged
SKETCH = 128  # channels of a random projection
JOIN = (
    "where tiles overlap, the mean of their distances, weighted by a ramp that rises to 1 over the overlap; a picture "
    "is continued by its last pixels to whole patches"
)


@keras.saving.register_keras_serializable(package="keras_vit")
class PatchMemory(Layer):
    """Cosine distance of each token from the nearest remembered one.

    Args:
        tokens: Number of remembered tokens.
        threshold: Image score above which an image counts as abnormal; it is saved with the layer.
        tiles: For images that are seen in tiles, `(height, width, overlap)` of these; it is saved with the layer.

    Input shape:
        `(batch, rows, columns, width)`.

    Output shape:
        `(batch, rows, columns)`, 0 to 2.
    """

    gives = "distances"

    def __init__(self, tokens, threshold=None, tiles=None, **kwargs):
        super().__init__(**{**kwargs, "trainable": False})
        checks.positive(tokens=tokens)
        self.tokens = tokens
        self.threshold = threshold
        self.tiles = tiles

    def build(self, input_shape):
        shape = (self.tokens, input_shape[-1])
        self.memory = self.add_weight(name="memory", shape=shape, initializer="zeros", trainable=False)

    def call(self, x):
        x = ops.cast(x, self.compute_dtype)
        x = x / ops.maximum(ops.sqrt(ops.sum(x * x, axis=-1, keepdims=True)), 1e-12)
        best = None
        for first in range(0, self.tokens, ROWS):
            near = ops.max(ops.matmul(x, ops.transpose(self.memory[first : first + ROWS])), axis=-1)
            best = near if best is None else ops.maximum(best, near)
        return 1 - best

    def compute_output_shape(self, input_shape):
        return tuple(input_shape[:-1])

    def export_facts(self, output_shape):
        """Returns what a user of an exported detector needs, for JSON: the threshold, and what it is compared with."""
        largest = largest_of(math.prod(output_shape[1:]))
        rule = (
            f"An image's score is the mean of the {largest} largest of its distances"
            if largest > 1
            else "An image's score is the largest of its distances"
        )
        rule += ". It is abnormal if its score is above the threshold."
        facts = {"threshold": self.threshold, "score": {"largest": largest, "rule": rule}}
        if self.tiles is None:
            return facts
        *size, overlap = self.tiles
        step = [side // count for side, count in zip(size, output_shape[1:])]
        return {**facts, "tiles": {"size": size, "overlap": overlap, "step": step, "join": JOIN}}


def largest_of(patches):
    """Returns how many of an image's distances are averaged: the largest hundredth, one at least."""
    return max(round(TOP * patches), 1)


def coreset(tokens, count, seed=0):
    """Chooses tokens so that every other is near a chosen one.

    Roth et al. 2022 (PatchCore, arXiv:2106.08265), section 3.2 and algorithm 1: again and again the token that is
    furthest from the chosen ones, after a random projection.

    Args:
        tokens: Array, `(n, width)`.
        count: Number of tokens to choose, at most n.
        seed: Random seed.

    Returns:
        Positions of the chosen tokens, `(count,)`.
    """
    if count == len(tokens):
        return np.arange(count)
    rng = np.random.default_rng(seed)
    if tokens.shape[1] > SKETCH:
        tokens = tokens @ (rng.normal(size=(tokens.shape[1], SKETCH)) / np.sqrt(SKETCH)).astype("float32")
    squares = np.sum(tokens * tokens, axis=1)
    chosen, nearest = [int(rng.integers(len(tokens)))], np.full(len(tokens), np.inf, "float32")
    while True:
        last = chosen[-1]
        nearest = np.minimum(nearest, squares + squares[last] - 2 * (tokens @ tokens[last]))
        nearest[last] = -1
        if len(chosen) == count:
            return np.array(chosen)
        chosen.append(int(nearest.argmax()))
