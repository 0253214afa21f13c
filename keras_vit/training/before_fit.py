"""`keras_vit.check_data`: a model, what it was compiled with, and its data, before your own `model.fit`."""

import itertools
from typing import Any

import keras
import numpy as np

from keras_vit.preparing.pixel_range import checked, range_of, refuse_binary
from keras_vit.training import compiled
from keras_vit.utils import checks
from keras_vit.utils.checks import rows, shown, targets
from keras_vit.utils.losses import loss_of
from keras_vit.utils.warned import warn

BATCHES = 4  # of a dataset that are checked
ENOUGH, FEW = 16, 0.2  # labels, and share of the classes expected in them, below which a word is said


def check_data(model: keras.Model, images: Any, labels: Any = None) -> None:
    """Checks data and the compiled loss before `model.fit`: some mistakes are silent.

    Under XLA a label outside the classes makes the loss NaN. A loss by its name, such as
    `"sparse_categorical_crossentropy"`, takes probabilities: with logits the model never learns. The metric
    `"accuracy"` of one logit counts from 0.5 on, not from 0. A loss that compares outputs with targets of any size,
    such as `"mse"`, is that of a regression: its targets may be any numbers. Several labels an image need a binary
    loss: one of one label counts them as shares, and `"accuracy"` compares one class.

    Args:
        model: A functional Keras model from pixels to one vector for each image: logits, probabilities if it ends in a
            softmax or sigmoid, or the numbers of a regression. Compile it first: only then its loss and metrics are
            checked.
        images: Array, `(batch, height, width, channels)`, in the model's range; or a `tf.data.Dataset`, a
            `keras.utils.PyDataset` or a list of batches `(images, labels)`, weighted or not: the first four count.
        labels: Class indices, `(batch,)` or `(batch, 1)`, integers; or `(batch, classes)` of one-hot, multi-label or
            soft labels, 0..1. For a model with one logit `(batch,)` or `(batch, 1)`, 0..1. For a regression numbers,
            `(batch, outputs)`. `None` for a dataset.

    Raises:
        TypeError: If `model` is not a functional model, or the data are neither arrays nor a dataset.
        ValueError: If the data do not have the shape, type or range that the model takes; if the compiled loss or a
            metric takes probabilities and the model returns logits, or the other way round; if they take one label an
            image and the labels are several, or the other way round.
    """
    try:
        shape, outputs = model.input_shape, model.output_shape
    except AttributeError:
        raise TypeError(
            f"`model` must be a functional Keras model or a built Sequential. Received: {shown(model)}"
        ) from None
    if not (isinstance(shape, tuple) and len(shape) == 4 and isinstance(outputs, tuple) and len(outputs) == 2):
        raise ValueError(
            "`model` must take images and return one vector of logits for each. "
            f"Received: {shown(getattr(model, 'name', model))}, input shape {shape}, output shape {outputs}"
        )
    loss = loss_of(model)
    regression = loss is not None and compiled.is_regression(loss, outputs[-1])
    check, value_range = numbers if regression else targets, range_of(model)
    if labels is not None:
        if isinstance(images, (list, tuple)):  # `fit` takes a list as one array for each of several inputs
            raise TypeError(f"`images` must be one array. Received: a {_kind(images)} of {len(images)}")
        images = checked(model, images, shape[1:], known=value_range)
        _warn_if_empty(images)
        refuse_binary(images, value_range)
        labels = check(labels, outputs[-1], len(images))
        if not regression:
            compiled.check(model, images, labels[:1])
            compiled.check_labels(model, labels)
            warn_of_classes(model, labels)
        return
    batches, classes = _batches(images), []
    for item in batches:
        if not isinstance(item, (tuple, list)) or len(item) not in (2, 3):
            keys = [*item] if isinstance(item, dict) else []
            pick = ", ".join(f"d[{key!r}]" for key in keys[:2])
            more = f" of {checks.shown(keys)}: data.map(lambda d: ({pick}))" if len(keys) > 1 else ""
            raise TypeError(
                f"A dataset must yield batches (images, labels). Received: a batch of type {_kind(item)}{more}"
            )
        if np.ndim(item[0]) == 3:
            raise ValueError(
                f"A dataset must yield batches: call `.batch(size)`. Received: images of shape {np.shape(item[0])}"
            )
        labels = check(item[1], outputs[-1], len(checked(model, item[0], shape[1:], known=value_range)))
        classes.append(labels)
    images = np.concatenate([np.asarray(item[0]) for item in batches])
    _warn_if_empty(images)
    refuse_binary(images, value_range)
    if not regression:
        compiled.check(model, batches[-1][0], labels[:1])
        compiled.check_labels(model, labels)
        warn_of_classes(model, np.concatenate(classes))


def warn_of_classes(model, labels):
    """Warns if far fewer classes occur in labels than in a sample of the same size from all outputs."""
    size, indices = model.output_shape[-1], labels if labels.ndim == 1 else labels.argmax(-1)
    seen, expected = len(np.unique(indices)), size * (1 - (1 - 1 / size) ** len(indices))
    if size > 2 and len(indices) >= ENOUGH and seen < FEW * expected:
        warn(
            f"{model.name!r} has {size} outputs, and {seen} classes occur in the first {len(indices)} labels: pass "
            f"num_classes={int(indices.max()) + 1}, if these are all, or shuffle data that are sorted by class."
        )


def _warn_if_empty(images):
    if len(images) and images.min() == images.max():
        warn(f"All pixels of `images` are the same: were they read? Received: {images.shape}, all {images.max():g}")


def _batches(dataset):
    """Returns the first batches of a dataset."""
    if hasattr(dataset, "dtype") or isinstance(dataset, (str, bytes, dict)):
        raise TypeError(f"`labels` are required with an array of images. Received: images of type {_kind(dataset)}")
    if hasattr(dataset, "__next__"):
        raise TypeError(
            "`images` must not be a generator, which would lose the batches that are checked: pass a dataset. "
            f"Received: {_kind(dataset)}"
        )
    if not hasattr(dataset, "__iter__") and not hasattr(dataset, "__getitem__"):
        raise TypeError(f"`images` must be an array or a dataset of batches. Received: {_kind(dataset)}")
    count = getattr(dataset, "num_batches", None) or BATCHES  # a PyDataset may never end
    batches = list(itertools.islice(dataset, min(count, BATCHES)))
    if not batches:
        raise ValueError(f"A dataset must yield one batch or more. Received: {_kind(dataset)}, which yields none")
    return batches


def _kind(value):
    return type(value).__name__


def numbers(values, size, count=None, name="labels"):
    """Checks the targets of a regression: finite numbers, as many as the outputs.

    Args:
        values: Array, `(batch, size)`; or `(batch,)` for one output.
        size: Number of the model's outputs.
        count: The number of images, if known.
        name: The argument's name, for error messages.

    Returns:
        `values` as a NumPy array.

    Raises:
        ValueError: For a wrong shape or type, or numbers that are not finite.
    """
    shape = f"(batch, {size})" if size > 1 else "(batch,) or (batch, 1)"
    rule = f"be numbers of shape {shape}, as the outputs: the compiled loss is that of a regression"
    array = rows(values, size, count, name, rule)
    if not np.isfinite(array).all():
        raise ValueError(f"`{name}` must be finite numbers. Received: {np.sum(~np.isfinite(array))} that are not")
    return array
