"""Pictures unlike all others, by the distance to their last neighbor."""

import numpy as np

from keras_vit.inspecting import findings

FAR = 3.0  # interquartile ranges above the third quartile: Tukey's "far out" (1977)
FEWEST = 30  # pictures, fewer have no quartiles to trust
SHARE, MOST = 0.01, 10  # of the pictures, at most, or so many: a classifier's vectors have long tails


def find(pictures, graph, rows):
    """Yields the `Finding` of each picture that is far from its neighbors, the farthest first.

    Args:
        pictures: `Pictures`.
        graph: The `Graph` of vectors.
        rows: Positions of their pictures.
    """
    distances = graph.distances[:, -1]
    low, middle, high = np.quantile(distances, (0.25, 0.5, 0.75))
    farthest = np.argsort(-distances, kind="stable")[: max(round(SHARE * len(distances)), MOST)]
    for i in farthest[distances[farthest] > high + FAR * (high - low)]:
        times = float(distances[i] / max(middle, 1e-12))
        yield findings.single("outlier", pictures, rows[i], times, f"{times:.1f} times the usual distance")
