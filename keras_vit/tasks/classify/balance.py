"""Weights of classes that are not equally frequent."""

import numpy as np


def label_weights(source):
    """Returns the weights of the classes of a source's labels; see `class_weights`."""
    return class_weights(np.bincount(source.labels, minlength=len(source.class_names)))


def class_weights(counts):
    """Returns a weight per class, inverse to its share of the examples; the mean over the examples is 1.

    A class without examples has the weight 1.

    Args:
        counts: Number of examples of each class, `(classes,)`: images, or pixels.
    """
    present = max(np.count_nonzero(counts), 1)
    return np.where(counts, counts.sum() / (present * np.maximum(counts, 1)), 1.0)
