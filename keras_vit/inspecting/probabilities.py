"""Probabilities of the classes of each picture, from a linear classifier that did not learn from it."""

from typing import Any, NamedTuple

import numpy as np

from keras_vit.frozen.probe import STEPS, classifier
from keras_vit.utils.progress import counted

FOLDS = 5
TUNED, LEARNED = 10_000, 50_000  # pictures, at most, that choose the regularization; that a fold learns from
BLOCK = 8192  # pictures whose probabilities are in memory


class OutOfFold(NamedTuple):
    """A classifier for each fold of the pictures, which learned from the other folds."""

    folds: np.ndarray  # of each picture
    scaler: Any  # scikit-learn's
    regressions: list  # scikit-learn's, one for each fold
    classes: int


def fit(vectors, classes, groups, seed=0):
    """Returns `OutOfFold` classifiers; `None` if one of them would have a single class to learn.

    Args:
        vectors: `(n, width)`.
        classes: Class indices, `(n,)`.
        groups: Number of each picture's group of equal ones, which share a fold: a copy would give the label away.
        seed: Random seed of the folds.
    """
    from sklearn.linear_model import LogisticRegression

    rng, count = np.random.default_rng(seed), int(classes.max()) + 1
    folds = divided(classes, groups, rng)
    some = drawn(np.arange(len(vectors)), classes, TUNED, rng)
    several = some[np.bincount(classes[some], minlength=count)[classes[some]] > 1]  # one alone cannot be held out
    learned = [drawn(np.flatnonzero(folds != fold), classes, LEARNED, rng) for fold in range(FOLDS)]
    if any(len(np.unique(classes[rows])) < 2 for rows in (several, *learned)):
        return None
    tuned = classifier(vectors[several], np.unique(classes[several], return_inverse=True)[1], seed=seed)

    def fitted(rows):
        regression = LogisticRegression(C=tuned.strength, max_iter=STEPS)
        return regression.fit(tuned.scaler.transform(vectors[rows]), classes[rows])

    each = counted(([fitted(rows)] for rows in learned), FOLDS, "learning the labels", after=2.0)
    return OutOfFold(folds, tuned.scaler, [regression for [regression] in each], count)


def drawn(rows, classes, most, rng):
    """Returns at most so many of some positions, sorted: `FOLDS` of each class, if there are, and others at random."""
    rows = rng.permutation(rows)
    order = np.argsort(classes[rows], kind="stable")
    starts = np.flatnonzero(np.diff(classes[rows][order], prepend=-1))
    number = np.empty(len(rows), int)  # of each among those of its class
    number[order] = np.arange(len(rows)) - np.repeat(starts, np.diff(starts, append=len(rows)))
    return np.sort(rows[np.argsort(np.minimum(number, FOLDS), kind="stable")[:most]])


def divided(classes, groups, rng):
    """Returns the fold of each picture: of each class, as many in each, and equal pictures in one."""
    _, first, of = np.unique(groups, return_index=True, return_inverse=True)
    shuffled = rng.permutation(len(first))
    order = shuffled[np.argsort(classes[first][shuffled], kind="stable")]
    folds = np.empty(len(first), int)
    folds[order] = np.arange(len(first)) % FOLDS
    return folds[of]


def blocks(found, vectors):
    """Yields positions of pictures, and their probabilities of the classes, float64 `(rows, classes)`."""
    for first in range(0, len(vectors), BLOCK):
        rows = np.arange(first, min(first + BLOCK, len(vectors)))
        scaled = found.scaler.transform(vectors[rows])
        probabilities = np.zeros((len(rows), found.classes))
        for fold, regression in enumerate(found.regressions):
            here = found.folds[rows] == fold
            if here.any():  # classes that a fold did not see have the probability 0
                probabilities[np.ix_(here, regression.classes_)] = regression.predict_proba(scaled[here])
        yield rows, probabilities
