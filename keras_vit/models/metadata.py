"""What is saved with a model, such as the names of its classes, and the layer that keeps it."""

import weakref
from collections.abc import Sequence

import keras
import numpy as np

from keras_vit.layers.base import Layer, plain
from keras_vit.models import kinds
from keras_vit.models.backbone import HEADS, keeper, outputs_of
from keras_vit.models.outputs import check_known, check_labels, fitting, num_classes
from keras_vit.utils import checks
from keras_vit.utils.keras_private import call_of, calls_after
from keras_vit.utils.warned import warn

OUTPUT_METADATA = ("labels", "temperature", "thresholds", "unknown")  # of the layers which make the outputs,
ORDERLY = {  # operations after a head that leave each class in its place
    "Softmax", "Sigmoid", "Activation", "Dropout", "Identity", "Cast", "Average", "Add", "Multiply", "Subtract",
    "Divide", "TrueDivide", "Rescaling", "Negative", "LogSoftmax",
    "Resizing", "Resize", "UpSampling1D", "UpSampling2D", "Reshape", "Squeeze", "Cropping1D", "Cropping2D", "Mean",
    "GlobalAveragePooling1D", "GlobalAveragePooling2D", "GlobalMaxPooling1D", "GlobalMaxPooling2D", "Maximum",
}  # fmt: skip
OF = "of"  # the names of these layers, and
OWNERS = weakref.WeakKeyDictionary()  # from a layer that keeps names to the heads in memory that have stated them
OTHERS = "of_others"  # what is kept for a model with other such layers, by their names


def metadata(model):
    """Returns the metadata of a model as a dictionary of plain values, a copy, without what is empty.

    Names of classes and thresholds are left out if they were kept for another head: a new one was put on the model, or
    two models share the layer that keeps them.
    """
    layer = keeper(model)
    return _entries(model, layer, plain(layer.metadata)) if layer else {}


def _entries(model, layer, kept):
    """Returns the `metadata` of a model, of all that its `keeper` has kept."""
    entries = dict(kept)
    of, others = entries.pop(OF, None), entries.pop(OTHERS, {})
    if any(entries.get(name) for name in OUTPUT_METADATA) or others:
        heads = _heads_of(model, layer)
        unmarked = layer.name == "rescale" and not (heads and set(heads) <= set(HEADS))  # of a builder, with a new head
        if heads and (unmarked if of is None else heads != of):
            entries = {name: value for name, value in entries.items() if name not in OUTPUT_METADATA}
            entries |= others.get(" ".join(heads), {})
    return {name: value for name, value in entries.items() if value}


def keep(model, without=(), **values):
    """Adds values to the metadata of a model, and leaves some out; one without a layer of ours keeps nothing."""
    if (layer := keeper(model)) is None:
        return
    heads, before = _heads_of(model, layer), plain(layer.metadata)
    others = {key: value for key, value in before.get(OTHERS, {}).items() if key != " ".join(heads)}
    of, entries_of_others = before.get(OF), {name: before[name] for name in OUTPUT_METADATA if before.get(name)}
    if entries_of_others and of and heads != of:
        others[" ".join(of)] = entries_of_others
    entries = {name: value for name, value in _entries(model, layer, before).items() if name not in without} | values
    OWNERS.setdefault(layer, {}).update({head.name: weakref.ref(head) for head in _heads(model)})
    heads = _heads_of(model, layer)
    marks = ({OF: heads} if set(entries) & set(OUTPUT_METADATA) else {}) | ({OTHERS: others} if others else {})
    layer.metadata = entries | marks


def _heads_of(model, layer):
    """Returns the names of the layers with weights from which a model's outputs come, such as `["head"]`.

    With the names of what may change the order of the outputs after them. A head that is not the one which `layer`, the
    model's `keeper`, has names of is `"another head"`.
    """
    heads = {head.name if _is_owner(layer, head) else f"another {head.name}" for head in _heads(model)}
    return sorted(heads | {layer.name for layer in _ends(model) if not getattr(layer, "weights", None)})


def _heads(model):
    return [layer for layer in _ends(model) if getattr(layer, "weights", None)]


def _ends(model):
    """Returns the last layers with weights, and what comes after them and may change the order of the outputs."""
    layers, waiting, visited = [], list(outputs_of(model)), set()
    while waiting:
        node = call_of(waiting.pop())
        layer = node.operation
        if id(node) in visited:
            continue
        visited.add(id(node))
        if outputs_of(layer):
            waiting += layer.outputs
            continue
        weights = getattr(layer, "weights", None)
        if weights or not (isinstance(layer, Layer) or type(layer).__name__ in ORDERLY):
            layers.append(layer)
        if not weights:
            waiting += node.input_tensors
    return [layer for layer in layers if not isinstance(layer, keras.layers.InputLayer)]


def _is_owner(kept_by, head):
    """Returns whether names that are kept for a head's name are this head's: it has stated them, or was there first.

    Keras counts its own names from 0 in each program: a head put on a loaded model can have the old one's name.
    """
    if kept_by is None:
        return True
    owner = OWNERS.get(kept_by, {}).get(head.name, lambda: None)()
    if owner is not None:
        return owner is head
    waiting, visited = [kept_by], set()
    while waiting:
        layer = waiting.pop()
        if layer.name == head.name and getattr(layer, "weights", None):
            return layer is head
        after = [node.operation for node in reversed(calls_after(layer))]  # the oldest is the next
        waiting += [each for each in after if id(each) not in visited]
        visited |= {id(each) for each in after}
    return True


def class_names(model: keras.Model, names: Sequence[str] | None = None) -> tuple[str, ...]:
    """Returns the names of a model's classes, which its layer `Rescale` keeps; with `names`, stores these first.

    In a model without that layer, the first of this package's layers keeps them.

    Saved models and exports keep them, and predictions, plots and reports show them.

    Args:
        model: A model from `keras_vit.vit`, or around one.
        names: A name for each class, in the order of the model's outputs.

    Raises:
        ValueError: If the model has no names, or `names` are of another number, not strings, or of several lines; if
            the model has no layer of this package, to keep them.
        TypeError: If `model` is not a Keras model, or one whose outputs are not known.

    Example:

    >>> class_names(from_pretrained("cifar10_hybrid"))[:2]
    ('airplane', 'automobile')
    """
    checks.model(model)
    if not isinstance(getattr(model, "output_shape", None), tuple):
        raise TypeError(
            "`model` must be a functional Keras model or a built Sequential, of one output: names are kept by the "
            f"outputs. Pass the model inside. Received: {model.name!r}, {type(model).__name__}"
        )
    if names is not None:
        names, count = names.tolist() if isinstance(names, np.ndarray) else names, _count(model)
        if fitting(names, count) is None:
            raise ValueError(f"`names` must be a string for each of {count} classes. Received: {checks.shown(names)}")
        check_labels(names)
        if metadata(model).get("unknown"):
            check_known(names)
        if keeper(model) is None:
            raise ValueError(
                "Class names are kept by a layer of keras_vit, such as `Rescale` or `Patches`. "
                f"Received: {model.name!r} without one"
            )
        kind = kinds.kind_of_loss(model)
        keep(model, labels=list(names), **{kinds.GIVES: {model.layers[-1].name: kind}} if kind else {})
    if (labels := stated_labels(model)) is None:
        raise ValueError(f"{model.name!r} has no class names. Store them: keras_vit.class_names(model, names)")
    return labels


def _count(model):
    """Returns the number of a model's names: two of one logit, which is that of the second class."""
    count = num_classes(model)
    return 2 if count == 1 and len(model.output_shape) == 2 and kinds.name_of(model) == "classes" else count


def stated_labels(model, count=None):
    """Returns the class names in a model's metadata as a tuple, or `None` if they are not `count`, its outputs."""
    layer = keeper(model)
    labels = _entries(model, layer, plain(layer.metadata)).get("labels") if layer else None
    others = [] if labels or layer is None else list(layer.metadata.get("labels") or ())
    count = count or _count(model)
    if others:
        heads = ", ".join(_heads_of(model, layer))
        warn(
            f"The model's class names are left out: they are of another head than {heads!r}. "
            f"Store its own: keras_vit.class_names(model, names). Received: {others!r:.100}"
        )
    names = fitting(labels, count)
    if labels and names is None:
        warn(
            f"The model's class names are left out: metadata['labels'] of its layer must be a list of {count} "
            f"texts, one for each class. Received: {labels!r:.100}"
        )
    return names and tuple(names)


def stated_thresholds(model):
    """Returns the probabilities from which on the labels of a model of several labels hold, a list in their order.

    `None` for any other model, and for metadata that are not one number from 0 to 1 for each class.
    """
    thresholds = metadata(model).get("thresholds") if kinds.name_of(model) == "labels" else None
    if not isinstance(thresholds, (list, tuple)) or len(thresholds) != num_classes(model):
        return None
    fit = all(isinstance(value, (int, float)) and 0 <= value <= 1 for value in thresholds)
    return [float(value) for value in thresholds] if fit else None
