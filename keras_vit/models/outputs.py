"""Class names in a file, one per line, and what a model's outputs are."""

import codecs
import collections
import pathlib
import re

import keras
import numpy as np

from keras_vit.layers import TokenPool
from keras_vit.models.dit import classes_of, is_dit
from keras_vit.models.kinds import KINDS, kind_of
from keras_vit.utils import files
from keras_vit.utils.losses import end_of
from keras_vit.utils.names import composed
from keras_vit.utils.warned import warn

NONE = "none of these"  # the answer for images of none of a classifier's classes


def check_labels(names):
    """Raises ValueError if a class name is not one line of text, as a file with one name per line needs."""
    broken = [name for name in names if re.search("[\n\r\0\ud800-\udc7f\udd00-\udfff]", name)]
    if broken:
        raise ValueError(
            f"A class name must be one line of UTF-8: rename the folder or the class. Received: {broken[0]!r}"
        )


def check_known(names):
    """Raises ValueError if a class is called as the answer for images of none."""
    if NONE in names:
        raise ValueError(
            f"No class may be called {NONE!r}, which says that an image is of none. Received: such a class"
        )


def write_labels(path, names):
    """Writes class names, one per line."""
    check_labels(names)
    with files.replacing(path) as temporary:
        temporary.write_text("".join(f"{name}\n" for name in names), "utf-8", "surrogateescape", "\n")


def read_labels(path):
    """Reads the class names that `write_labels` wrote, in Unicode's form NFC; they may contain any character of a line.

    Raises:
        ValueError: For a file that is not regular, of more than `files.MOST_BYTES`, or with an empty line. An empty
            file has no names.
    """
    lines = files.read(path).removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape").split("\n")
    return tuple(composed(line.removesuffix("\r")) for line in (lines if lines[-1] else lines[:-1]))


def num_classes(model):
    """Returns the number of a model's classes: of its outputs, but for the edges of boxes; those that a DiT draws."""
    if is_dit(model):
        return classes_of(model)
    kind = kind_of(model)
    return kind.classes(model) if kind.classes else model.output_shape[-1] - kind.edges


def ends_in_features(model):
    """Returns whether a model ends before its head, as one with `num_classes=0`."""
    last, norms = last_layer(model), (keras.layers.LayerNormalization, keras.layers.RMSNormalization)
    return isinstance(last, (TokenPool, *norms)) or last.name == "pre_logits"


def last_layer(model):
    """Returns the last layer of a model, also inside a nested one."""
    last = model
    while isinstance(last, keras.Model) and last.layers:
        last = last.layers[-1]
    return last


def ignored(classes):
    """Returns the classes of boxes as those of regions to ignore, and back: c as -2 - c, since -1 is empty.

    What is found of class c inside such a region, a crowd, is neither right nor wrong.
    """
    return -2 - classes


def returns_probabilities(model):
    """Returns whether a model ends in a softmax or sigmoid: as a layer, an activation, or an operation."""
    return end_of(model) is not None


def unbounded(end, outputs):
    """Returns outputs as logits: by the inverse of what the model ends in, `end_of`."""
    if end is None:
        return outputs
    logits = np.log(np.maximum(outputs, 1e-30))
    return logits if end == "softmax" else logits - np.log(np.maximum(1 - outputs, 1e-30))


def probabilities_of(model, outputs):
    """Returns the probabilities of each class: a model's own if it ends in a softmax or sigmoid, else a softmax.

    Args:
        model: As in `logits_of`.
        outputs: As in `logits_of`.

    Returns:
        float64 array, `(batch, classes)`: at least two classes. Those of one sigmoid for each class need not sum to
        one.
    """
    from scipy.special import softmax

    if end_of(model) is None or np.shape(outputs)[-1] == 1:
        return softmax(logits_of(model, outputs), -1)
    return np.asarray(outputs, "float64")


def logits_of(model, outputs):
    """Returns a classifier's outputs as logits of each class.

    A softmax gives their probabilities; a sigmoid does if the model ends in one for each of several classes.

    Args:
        model: The model. One output is the logit, or the probability, of the second of two classes.
        outputs: Array, `(batch, outputs)`.

    Returns:
        float64 array, `(batch, classes)`: at least two classes.
    """
    outputs = np.asarray(outputs, "float64")
    logits = unbounded(end_of(model), outputs)
    return np.concatenate([0 * logits, logits], -1) if logits.shape[-1] == 1 else logits


def logits_by(model):
    """Returns the function from a model's outputs, an array, to logits; of one logit to those of its two classes."""
    if len(model.output_shape) == 2 and model.output_shape[-1] == 1 and kind_of(model) is KINDS["classes"]:
        return lambda outputs: logits_of(model, outputs)
    end = end_of(model)
    return lambda outputs: unbounded(end, outputs)


def count_classes(model):
    """Returns the number of classes of a classifier: two for one output."""
    return max(model.output_shape[-1], 2)


def fitting(names, count):
    """Returns class names as a list if they are `count` strings, else `None`."""
    fit = isinstance(names, (list, tuple)) and len(names) == count and all(isinstance(name, str) for name in names)
    return list(names) if fit else None


def head_of_others(model, names):
    """Returns whether a model was loaded with a head of the same number of classes with other names, and warns of them.

    Only this package's own files are asked: names such as ImageNet's differ from library to library.
    """
    metadata = model.get_layer("rescale").metadata
    labels = list(metadata.get("labels") or ())
    if metadata.get("format") != "keras" or not differ(labels, names):
        return False
    warn(f"The weights are of other classes ({', '.join(labels)[:80]}): the head is new.")
    return True


def differ(names, others):
    """Returns whether the names of as many classes are known for both, other than their numbers, and are not equal."""
    names, others = (list(map(composed, each or ())) for each in (names, others))
    return bool(names and others) and [str(i) for i in range(len(names))] not in (names, others) and names != others


def labels_beside(path):
    """Reads the class names in the file next to a model's file, if there is one.

    `mnist.labels.txt` belongs to `mnist.keras`, and `labels.txt` to all models in the directory of a run.

    Returns:
        A tuple, or `None`.
    """
    path = pathlib.Path(path)
    of_run = [path.with_name("labels.txt")] if path.with_name("recipe.json").is_file() else []
    file = next((file for file in (path.with_suffix(".labels.txt"), *of_run) if file.is_file()), None)
    return file and read_labels(file)


def distinct(names):
    """Returns the names of classes, with their numbers where two are the same, as ImageNet's `"crane (134)"`."""
    while len(count := collections.Counter(names)) < len(names):
        names = tuple(f"{name} ({i})" if count[name] > 1 else name for i, name in enumerate(names))
    return names
