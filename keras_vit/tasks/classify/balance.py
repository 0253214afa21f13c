"""Weights of classes that are not equally frequent."""

import numpy as np


def label_weights(source):
    """Returns the class weights of a `Source` with labels, float64 `(classes,)`; see `class_weights`."""
    return class_weights(np.bincount(source.labels, minlength=len(source.class_names)))


def class_weights(counts):
    """Returns a weight per class, float64 `(classes,)`, inverse to its frequency; the mean over the examples is 1.

    A class without examples has the weight 1.

    Args:
        counts: Integers, `(classes,)`: the number of images, or pixels, of each class.
    """
    present = max(np.count_nonzero(counts), 1)
    return np.where(counts, counts.sum() / (present * np.maximum(counts, 1)), 1.0)
