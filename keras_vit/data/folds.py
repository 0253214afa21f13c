"""Folds of cross-validation: the training and validation images of a recipe together, divided by scikit-learn."""

import dataclasses
import warnings

import numpy as np

from keras_vit.data.memory import Source
from keras_vit.data.readers.box_arrays import padded
from keras_vit.utils.warned import quoted, warn

SEED = 0  # a fold does not depend on the recipe's seed
SPLITTERS = {  # by whether there are labels to stratify by, and groups to keep together
    (False, False): "KFold",
    (True, False): "StratifiedKFold",
    (False, True): "GroupKFold",
    (True, True): "StratifiedGroupKFold",
}


def fold(train, validation, which, targets):
    """Returns the training and the validation `Source` of one fold; see `divided`.

    Args:
        train, validation: The sources that are divided together.
        which: `(number, count)`, such as `(2, 5)`, the second of five: its images are for validation.
        targets: As in `divided`.
    """
    number, count = which
    whole = joined(train, validation)
    return tuple(map(whole.take, divided(whole, count, targets)[number - 1]))


def divided(whole, count, targets):
    """Returns the positions of the training and of the validation images of each fold, a list of pairs.

    Each class has its share in each fold; of several labels, images with and without any. Images of a group are in one
    fold. Warns of labels that no training image of a fold has.

    Args:
        whole: A `Source`.
        count: Number of folds.
        targets: Names of the targets that the task asks for; folds are stratified by `"labels"` or `"multilabels"`.

    Raises:
        ValueError: For more folds than images, groups, images of a class or images with a label; for a class that is
            missing in the training images of a fold; for a fold without any label.
    """
    from sklearn import model_selection

    labels = whole.labels if "labels" in targets else None
    several = whole.targets["multilabels"] == 1 if "multilabels" in targets else None
    strata = labels if several is None else several.any(axis=1)
    _check_enough(whole, strata, count)
    kind = SPLITTERS[strata is not None, whole.groups is not None]
    splitter = getattr(model_selection, kind)(count, shuffle=True, random_state=SEED)
    with warnings.catch_warnings(action="ignore"):  # of rare classes, which are counted here
        parts = list(splitter.split(np.zeros(len(whole)), strata, whole.groups))
    if several is not None:
        _check_several(several, whole.class_names, parts)
    for train, _ in parts if labels is not None else ():
        lacking = np.setdiff1d(labels, labels[train])
        if len(lacking):
            raise ValueError(
                f"Each class must be in two groups or more, and better in {count}. Received: "
                f"{whole.class_names[lacking[0]]!r}, whose images are all in one of {count} folds"
            )
    return parts


def _check_enough(whole, strata, count):
    if whole.groups is not None:
        most, what = len(np.unique(whole.groups)), "the groups"
    elif strata is not None and strata.dtype == bool:
        most, what = strata.sum(), "the images with a label"
    elif strata is not None:
        values, counts = np.unique(strata, return_counts=True)
        most, what = counts.min(), f"the images of {whole.class_names[values[counts.argmin()]]!r}"
    else:
        most, what = len(whole), "the images"
    if count > most:
        raise ValueError(f"There must be at most as many folds as {what}, {most}. Received: {count} folds")


def _check_several(several, class_names, parts):
    """Raises ValueError for a fold without any label; warns of classes that no training image of a fold has."""
    empty = [i for i, pair in enumerate(parts, 1) if not all(several[part].any() for part in pair)]
    if empty:
        raise ValueError(
            "The training and the validation images of each fold must have a label, so two groups or more. Received: "
            f"fold {empty[0]} of {len(parts)} with images without any"
        )
    everywhere = np.all([several[train].any(axis=0) for train, _ in parts], axis=0)
    lost = [class_names[i] for i in np.flatnonzero(several.any(axis=0) & ~everywhere)]
    if lost:
        warn(
            f"All images with {quoted(lost)} are in one of {len(parts)} folds: "
            "its model cannot learn what it is validated on."
        )


def joined(first, second):
    """Returns two sources as one.

    Raises:
        ValueError: If images are in both, or they are of different classes, targets or shapes.
    """
    for source in (first, second):
        if not isinstance(source, Source):
            raise ValueError("Folds are for data that fit into memory, and for folders. Received: TFRecord files")
    _check_apart(first, second)
    facts = [(s.class_names, s.stuff, *sorted(s.targets), s.groups is None) for s in (first, second)]
    if facts[0] != facts[1]:
        raise ValueError(
            "For folds, training and validation data must have the same classes, targets and groups. Received: "
            f"{facts[0]!s:.200} and {facts[1]!s:.200}"
        )
    targets = {name: _rows(name, values, second.targets[name]) for name, values in first.targets.items()}
    both = {name: [getattr(first, name), getattr(second, name)] for name in ("groups", "digests")}
    more = {name: None if pair[0] is None or pair[1] is None else np.concatenate(pair) for name, pair in both.items()}
    images = _rows("images", first.images, second.images)
    return dataclasses.replace(first, images=images, targets=targets, **more)


def _rows(name, first, second):
    if name == "bounding_boxes":  # as many rows as the image with the most
        return padded([*first, *second])
    if first.shape[1:] != second.shape[1:] or first.ndim != second.ndim:
        raise ValueError(
            f"For folds, training and validation {name} must have one shape. Received: {first.shape} and {second.shape}"
        )
    return np.concatenate([first, second])


def _check_apart(first, second):
    """Raises ValueError if two sources are parts of the data that overlap: an image would be on both sides of a fold.

    A few equal pictures are no overlap: data sets have them, but less than one in a hundred. Overlapping parts such as
    `"all[:80%]"` and `"all[79%:]"` have more in common.
    """
    hashes, others = ({hash(_bytes(item)) for item in source.images} for source in (first, second))
    common = len(hashes & others)
    if common > (0 if first.files else min(len(hashes), len(others)) / 100):
        raise ValueError(
            "For folds, data.train and data.validation must have no image in common: they are divided together. "
            f"Received: {common} of {len(others)} validation examples are training examples too"
        )


def _bytes(item):
    return item.tobytes() if isinstance(item, np.ndarray) else item
