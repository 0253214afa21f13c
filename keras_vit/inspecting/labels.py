"""Labels that are likely wrong: confident learning (Northcutt et al. 2019, arXiv:1911.00068), and the neighbors."""

import numpy as np

from keras_vit.inspecting import findings, probabilities
from keras_vit.inspecting.pictures import NONE
from keras_vit.tasks.pretrain.neighbors import votes

FEWEST = 2 * probabilities.FOLDS  # different pictures of a class whose labels are judged


def find(pictures, vectors, graph, rows, groups):
    """Returns a `Finding` of each label that the classifier and the neighbors contradict, and a remark on both.

    Args:
        pictures: `Pictures` with labels.
        vectors: Of all pictures.
        graph: The `Graph` of the vectors of `rows`.
        rows: Positions of different pictures.
        groups: `exact.Groups` of all pictures.
    """
    labels = pictures.labels[rows]
    known = np.flatnonzero(labels != NONE)
    places, classes = np.unique(labels[known], return_inverse=True)  # classes without a picture here are none
    found = probabilities.fit(vectors[rows[known]], classes, groups.of[rows[known]])
    if found is None:
        return [], "Labels: they need two classes, each of two different pictures"
    suggested, margins, accuracy = contradicted(found, vectors[rows[known]], classes)
    most = np.bincount(classes).max() / len(classes)
    if accuracy <= most:
        return [], (
            f"Labels: from these vectors a classifier predicts {accuracy:.1%} of them, and the most frequent class is "
            f"{most:.1%}; it cannot judge"
        )
    numbers = np.full(len(rows), NONE)
    numbers[known] = classes
    judged, listed = np.isin(labels[known], trusted(labels[known])), []
    for i in np.flatnonzero((suggested != NONE) & judged):
        row, said = known[i], shares(numbers, graph, known[i], len(places))
        if said.argmax() != classes[i] or not said.any():
            score = float(margins[i] * (1 - said[classes[i]]))
            name = pictures.class_names[places[suggested[i]]]
            listed.append(findings.single("label", pictures, rows[row], score, "classifier and neighbors", name))
    return listed, (
        f"Labels: the classifier predicts {accuracy:.1%} of the labels that it did not see. Many of those listed are "
        "its own mistakes, the more, the lower this is"
    )


def trusted(labels):
    """Returns the classes that have enough pictures."""
    classes, counts = np.unique(labels, return_counts=True)
    return classes[counts >= FEWEST]


def contradicted(found, vectors, classes):
    """Returns the class that confident learning suggests for each picture, `NONE` for its own, and how sure it is.

    A class is likely for a picture if its probability is at least the mean probability of this class over the pictures
    that have its label. The likeliest of these is suggested.

    Args:
        found: `OutOfFold` classifiers.
        vectors: `(n, width)`.
        classes: Class indices, `(n,)`.

    Returns:
        int `(n,)`; float `(n,)`, the probability of the suggested class without that of the label; and the share of the
        labels that are the likeliest class.
    """
    own = np.concatenate(
        [each[np.arange(len(rows)), classes[rows]] for rows, each in probabilities.blocks(found, vectors)]
    )
    sums = np.bincount(classes, own, found.classes)
    means = sums / np.maximum(np.bincount(classes, minlength=found.classes), 1)
    suggested, margins, right = np.full(len(classes), NONE), np.zeros(len(classes)), 0
    for rows, each in probabilities.blocks(found, vectors):
        likely = np.where(each >= means, each, -1.0)
        best = likely.argmax(1)
        highest = likely[np.arange(len(rows)), best]
        other = (best != classes[rows]) & (highest > own[rows])
        suggested[rows[other]] = best[other]
        margins[rows] = highest - own[rows]
        right += int((each.argmax(1) == classes[rows]).sum())
    return suggested, margins, right / len(classes)


def shares(classes, graph, row, count):
    """Returns the share of each class in the votes of a picture's neighbors, `(count,)`; zeros if none has a label.

    Args:
        classes: Class of each picture of the graph, or `NONE`.
        graph: The `Graph`.
        row: Position of the picture.
        count: Number of classes.
    """
    near = graph.neighbors[row]
    voting = classes[near] != NONE
    if not voting.any():
        return np.zeros(count)
    sums = votes(1 - graph.distances[row][None, voting], classes[near][None, voting], count)[0]
    return sums / sums.sum()
