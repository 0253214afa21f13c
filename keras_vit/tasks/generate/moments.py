"""The Fréchet distance of two sets of vectors, taken as samples of normal distributions."""

import numpy as np


class Moments:
    """Accumulates mean and covariance of vectors in float64, in memory that does not grow."""

    def __init__(self):
        self.count = 0
        self.sum = 0.0
        self.products = 0.0

    def add(self, vectors):
        """Counts a batch of vectors, `(batch, channels)`."""
        vectors = np.asarray(vectors, "float64")
        self.count += len(vectors)
        self.sum = self.sum + vectors.sum(0)
        self.products = self.products + vectors.T @ vectors

    @property
    def mean(self):
        """The mean, float64 `(channels,)`."""
        return self.sum / self.count

    @property
    def covariance(self):
        """The unbiased covariance, float64 `(channels, channels)`; zeros for one vector."""
        spread = self.products - self.count * np.outer(self.mean, self.mean)
        return spread / max(self.count - 1, 1)


def frechet(one, other):
    """Returns the Fréchet distance of two normal distributions with these moments.

    `|m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2))` (Dowson and Landau 1982; Heusel et al. 2017, arXiv:1706.08500,
    equation 6). The trace of the root is the sum of the roots of the eigenvalues of `C1^(1/2) C2 C1^(1/2)`.

    Args:
        one: `Moments`.
        other: `Moments` with the same number of channels.
    """
    values, vectors = np.linalg.eigh(one.covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    roots = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ other.covariance @ root), 0))
    traces = np.trace(one.covariance) + np.trace(other.covariance)
    return max(float(np.square(one.mean - other.mean).sum() + traces - 2 * roots.sum()), 0.0)  # but for rounding
