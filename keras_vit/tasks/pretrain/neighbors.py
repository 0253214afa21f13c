"""Accuracy of nearest neighbors, which measures embeddings of self-supervised models."""

import numpy as np

from keras_vit.utils import checks

TEMPERATURE = 0.07


def knn_accuracy(vectors: np.ndarray, labels: np.ndarray, neighbors: int = 20) -> float:
    """Classifies each vector by its nearest neighbors among the others, and returns the accuracy, 0..1.

    Each neighbor votes for its class with the weight `exp(cosine similarity / 0.07)`. Wu et al. 2018
    (arXiv:1805.01978), section 3.4, with the 20 neighbors of DINO (Caron et al. 2021, arXiv:2104.14294).

    Args:
        vectors: Array, `(n, width)`, at least two vectors.
        labels: Class indices, integers, `(n,)`.
        neighbors: Number of neighbors that vote; all other vectors if there are fewer.

    Raises:
        ValueError: For arrays of another shape, or numbers that are not finite.
    """
    from sklearn.neighbors import NearestNeighbors

    checks.positive(neighbors=neighbors)
    vectors, labels = np.asarray(vectors, "float32"), np.asarray(labels)
    if vectors.ndim != 2 or len(vectors) < 2 or labels.shape != vectors.shape[:1] or not np.isfinite(vectors).all():
        raise ValueError(
            "`vectors` must be (n, width), at least two and finite, with one label each. "
            f"Received: vectors of shape {vectors.shape}, labels of shape {labels.shape}"
        )
    labels = checks.class_indices(labels, labels.max() + 1)
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    finder = NearestNeighbors(n_neighbors=min(neighbors, len(unit) - 1), algorithm="brute").fit(unit)
    distances, indices = finder.kneighbors()  # (n, neighbors) each; no vector is its own neighbor
    similarities = 1 - distances**2 / 2  # the vectors have length 1
    return float(np.mean(votes(similarities, labels[indices], labels.max() + 1).argmax(1) == labels))


def votes(similarities, classes, count):
    """Returns the votes for each class, float64 `(n, count)`, relative to the vote of the nearest neighbor.

    Args:
        similarities: Cosine similarity of each neighbor, `(n, neighbors)`, -1..1.
        classes: Class index of each neighbor, `(n, neighbors)`.
        count: Number of classes.
    """
    sums = np.zeros((len(classes), count))
    weights = np.exp((similarities - similarities.max(1, keepdims=True)) / TEMPERATURE)
    np.add.at(sums, (np.arange(len(classes))[:, None], classes), weights)
    return sums
