"""What training and validation data say together: classes without images; images and groups that are in both."""

import hashlib

import numpy as np

from keras_vit.utils.warned import quoted, warn

DIGEST = 16  # bytes of the hash of an image, the first of `Source.digests`


def _count(classes, size):
    return np.bincount(classes[(classes >= 0) & (classes < size)], minlength=size)


COUNTED = {  # how often targets of a source have each class of a task; of several labels, `SeveralLabels` warns
    "labels": lambda task, source, size: _count(source.labels, size),
    "bounding_boxes": lambda task, source, size: _count(source.targets["bounding_boxes"][..., 4].astype("int64"), size),
    "segmentation_masks": lambda task, source, size: source.mask_counts.sum(0)[getattr(task, "first", 0) :][:size],
}


def class_counts(task, source):
    """Returns how many labels, boxes or pixels of a source are of each of a task's classes, a vector.

    `None` without classes, and of data that stay in TFRecord files, which would be read whole.
    """
    targets = source.targets if isinstance(source.targets, dict) else {}
    name = next((name for name in COUNTED if task.classes and name in targets and name in task.targets), None)
    return name and COUNTED[name](task, source, len(task.classes))


def warn_of(task, recipe, train, validation):
    """Warns of classes that either split lacks, and of images and groups that both have: no score would say so.

    Args:
        task: The task with its classes.
        recipe: The `Recipe`, whose `data.columns` may name groups.
        train, validation: A `memory.Source` each. Of a `records.Stream` nothing is counted: it would be read whole.
    """
    _of_classes(task.classes, *(class_counts(task, source) for source in (train, validation)))
    warn_of_images(train, validation)
    if "groups" in (recipe.data.columns or {}) or train.given:
        warn_of_groups(train, validation)


def _of_classes(names, train, validation):
    if train is None or validation is None:
        return
    lacking = [name for name, count in zip(names, train) if not count]
    if lacking:
        warn(
            f"No training image is of {len(lacking)} of {len(names)} classes, which the model cannot learn: "
            f"{quoted(lacking)}."
        )
    unseen = [name for name, trained, count in zip(names, train, validation) if trained and not count]
    if unseen:
        warn(
            f"No validation image is of {len(unseen)} of {len(names)} classes, of which the scores say nothing: "
            f"{quoted(unseen)}."
        )


def warn_of_images(train, validation):
    """Warns if validation examples are training examples too: by overlapping parts, copies of files, same arrays.

    Data sets have a few equal pictures, fewer than one in a hundred.
    """
    if not all(isinstance(source.targets, dict) for source in (train, validation)):
        return
    contents = set(_contents(train))
    common = sum(content in contents for content in _contents(validation))
    if common > len(validation) / 100:
        warn(
            f"{common} of {len(validation)} validation examples are training examples too: the scores are of what was "
            "trained on."
        )


def _contents(source):
    """Yields what identifies each image of a source: of files the hash of their bytes."""
    if source.digests is not None:
        yield from map(bytes, source.digests[:, :DIGEST])
    elif not source.files:
        for image in source.images:
            data = image if isinstance(image, bytes) else np.ascontiguousarray(image)
            yield hashlib.blake2b(data, digest_size=DIGEST).digest()


def warn_of_groups(train, measured, what="validation"):
    """Warns if images that are measured are of groups that training images are of.

    Args:
        train, measured: A source each.
        what: Which images are measured.
    """
    train, measured = (getattr(source, "groups", None) for source in (train, measured))
    if train is None or measured is None:
        return
    common, count = len(np.intersect1d(train, measured)), len(np.unique(measured))
    if common:
        warn(
            f"{common} of the {count} groups of the {what} examples are in the training examples too: the scores are "
            "of examples like those that were trained on. Parts of one split, such as 'all[:80%]' and 'all[80%:]', "
            "keep groups together."
        )
