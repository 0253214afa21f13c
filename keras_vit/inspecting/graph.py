"""The nearest neighbors of each vector among the others: exact, in blocks."""

from typing import NamedTuple

import numpy as np

from keras_vit.explain.embedding import unit
from keras_vit.utils.progress import counted

NEIGHBORS = 10
BLOCK = 2048  # vectors whose neighbors are searched at once


class Graph(NamedTuple):
    """The neighbors of each vector, the nearest first."""

    neighbors: np.ndarray  # positions, (vectors, neighbors)
    distances: np.ndarray  # 1 - cosine similarity, float32


def graph(vectors, count=NEIGHBORS):
    """Returns the `Graph` of vectors, `(n, width)`, with `count` neighbors of each, or all others if there are fewer.

    Every pair is compared: twice the vectors gives four times the work. Memory holds the vectors twice, and a few
    blocks.
    """
    from sklearn.neighbors import NearestNeighbors

    vectors, count = unit(vectors), min(count, len(vectors) - 1)
    finder = NearestNeighbors(n_neighbors=count + 1, algorithm="brute").fit(vectors)
    neighbors, distances = np.empty((len(vectors), count), "int64"), np.empty((len(vectors), count), "float32")
    blocks = (np.arange(first, min(first + BLOCK, len(vectors))) for first in range(0, len(vectors), BLOCK))
    for rows in counted(blocks, len(vectors), "comparing vectors", after=2.0):
        lengths, found = finder.kneighbors(vectors[rows])
        kept = _others(found, rows)
        neighbors[rows] = found[kept].reshape(len(rows), count)
        distances[rows] = lengths[kept].reshape(len(rows), count) ** 2 / 2  # the vectors have length 1
    return Graph(neighbors, distances)


def _others(found, rows):
    """Returns which neighbors are others than the vector itself, one fewer in each row: booleans."""
    own = found == rows[:, None]
    own[~own.any(1), -1] = True  # more equal vectors than neighbors
    return ~own
