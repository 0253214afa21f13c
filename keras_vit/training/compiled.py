"""Reads what a model was compiled with: whether its loss and metrics take logits, probabilities or other numbers."""

import inspect
import re

import keras
import numpy as np

from keras_vit.models.outputs import returns_probabilities
from keras_vit.utils.losses import from_logits, loss_of

_OF_SHARES = 'keras.metrics.AUC(curve="PR", from_logits=True)'
SHARES = {"F1Score": _OF_SHARES, "FBetaScore": _OF_SHARES}  # which take probabilities only: what to write instead
BORDER = 0.5  # of probabilities, Keras's default; that of logits is 0


def is_regression(loss, size):
    """Returns whether a loss compares outputs with targets of any size: it is least where they are equal.

    Args:
        loss: As `loss_of` returns it.
        size: Number of the model's outputs.
    """
    target = np.full((1, size), 3.0, "float32")
    below, equal, above = (_value(loss, target, target + step) for step in (-0.5, 0.0, 0.5))
    return equal < min(below, above)


def takes_probabilities(loss, label, size):
    """Returns whether a loss takes probabilities: it says so, or twice a confidently wrong output costs the same.

    Keras clips what it takes for probabilities to between 1e-7 and 1 - 1e-7, for some losses after dividing by the sum.
    A loss of logits grows.

    Args:
        loss: As `loss_of` returns it.
        label: The labels of one image, `(1,)`, `(1, 1)` or `(1, size)`.
        size: Number of the model's outputs.
    """
    logits = from_logits(loss)
    if logits is not None:
        return not logits
    label = np.asarray(label)
    true = label.reshape(1, -1) > BORDER
    if label.size == 1 and size > 1:
        true = np.arange(size)[None] == int(label.flat[0])
    wrong = np.where(true, -0.5, 2.0).astype("float32")
    once, twice = _value(loss, label, wrong), _value(loss, label, 2 * wrong)
    return 1 < once == twice < np.inf or (np.isnan(once) and np.isnan(twice))


def check(model, images, label):
    """Checks the compiled loss and metrics of a classifier.

    Args:
        model: A Keras model with one output, `(batch, classes)`.
        images: Some images.
        label: The labels of one image.

    Raises:
        ValueError: If they take probabilities and the model returns logits, or the other way round.
    """
    size, loss = model.output_shape[-1], loss_of(model)
    if loss is None:
        return
    ends = returns_probabilities(model)
    if takes_probabilities(loss, label, size):
        if not (ends or _sums_to_one(model, images)):
            last = 'Activation("sigmoid")' if size == 1 or _name_of(loss).startswith("binary") else "Softmax()"
            raise ValueError(
                "The compiled loss takes probabilities, but the model returns logits: it would not learn. Compile "
                f"it with loss={_of_logits(loss, label, size)}, or compile "
                f"keras.Sequential([model, keras.layers.{last}]). Received: loss={_shown(loss)} with {model.name!r}"
            )
        return
    if ends and from_logits(loss):
        raise ValueError(
            "The compiled loss takes logits, but the model ends in a softmax or sigmoid: compile it with "
            f"from_logits=False. Received: loss={_shown(loss)} with {model.name!r}"
        )
    misread = [] if ends else _misread(model, size)
    if misread:
        name, right = misread[0]
        raise ValueError(
            "The compiled metric takes probabilities, but the model returns logits, where class 1 begins at "
            f"0: compile it with metrics=[{right}]. Received: metric {name!r} with {model.name!r}"
        )


def check_labels(model, labels):
    """Checks that the compiled loss and metrics of a classifier of several logits take its labels as they are meant.

    Args:
        model: As in `check`.
        labels: Class indices, `(batch,)`; or `(batch, classes)`, 0..1.

    Raises:
        ValueError: For class indices with a binary or categorical loss, which compares them with every logit; for
            several labels an image with the loss or the accuracy of one.
    """
    size, loss = model.output_shape[-1], loss_of(model)
    if loss is None or size == 1:
        return
    name, one_hot = _name_of(loss), np.shape(labels)[1:] == (size,)
    _check_kind(model, size, one_hot)
    if not one_hot:
        if name.startswith(("binary", "categorical")):
            raise ValueError(
                f"A {name.partition('_')[0]} loss takes 0 or 1 for each class, (batch, {size}): of class indices, "
                f"keras.ops.one_hot(labels, {size}). Received: labels of shape {np.shape(labels)}, loss={_shown(loss)}"
            )
        return
    sums = np.sum(labels, axis=-1, dtype="float64")
    if np.allclose(sums, 1, atol=1e-3):
        if name.startswith("sparse"):
            raise ValueError(
                "A sparse loss takes class indices, integers (batch,): of one-hot labels, labels.argmax(-1); or "
                f"compile with {_of_logits(keras.losses.categorical_crossentropy, labels, size)}. "
                f"Received: labels of shape {np.shape(labels)}, loss={_shown(loss)}"
            )
        return
    received = f"Received: labels that sum to {sums.min():g} to {sums.max():g}"
    if name.startswith(("categorical", "sparse")):
        raise ValueError(
            "Several labels an image need a binary loss, such as keras.losses.BinaryCrossentropy(from_logits=True). "
            f"{received}, loss={_shown(loss)}"
        )
    if accuracy := next((metric for metric in _metrics(model) if metric in ("accuracy", "acc")), None):
        border = "" if returns_probabilities(model) else "threshold=0"
        raise ValueError(
            "Keras's 'accuracy' compares one class of each image: of several labels, compile the model with "
            f"metrics=[keras.metrics.BinaryAccuracy({border})]. {received}, metric {accuracy!r}"
        )


def _check_kind(model, size, one_hot):
    """Raises ValueError for a metric of one-hot labels where class indices are given, or the other way round."""
    for metric in _metrics(model):
        name = _name_of(metric if isinstance(metric, str) else metric.get("class_name") or "")
        sparse, plain = (name.startswith((f"{kind}categorical", f"{kind}top_k")) for kind in ("sparse_", ""))
        if (sparse and one_hot) or (plain and not one_hot):
            form, other = (
                ("class indices, integers (batch,)", "categorical")
                if sparse
                else (f"0 or 1 for each class, (batch, {size})", "sparse_categorical")
            )
            raise ValueError(
                f"The compiled metric takes {form}: compile with metrics=['accuracy'], which takes both, or that of "
                f"{other} labels. Received: metric {name!r}"
            )


def _name_of(loss):
    """Returns a loss's name in Keras's spelling of functions, such as `"binary_crossentropy"`."""
    name = loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _value(loss, labels, outputs):
    """Returns the mean loss of an array of outputs; infinite where the loss does not take such labels."""
    try:
        with np.errstate(all="ignore"):
            return float(np.mean(keras.ops.convert_to_numpy(loss(labels, outputs))))
    except Exception:  # a loss of the user's own may raise anything
        return np.inf


def _sums_to_one(model, images):
    """Returns whether some outputs are shares of one, as of a mean of several softmaxes."""
    outputs = keras.ops.convert_to_numpy(model(np.asarray(images)[:2].astype("float32"), training=False))
    return outputs.shape[-1] > 1 and outputs.min() >= 0 and np.allclose(outputs.sum(-1), 1, atol=1e-3)


def _shown(loss):
    """Returns a loss as a user writes it."""
    if isinstance(loss, keras.losses.Loss):
        return f"{type(loss).__name__}({_arguments(type(loss), loss.get_config())})"
    return repr(getattr(loss, "__name__", str(loss)))


def _arguments(kind, config):
    """Returns the arguments of a config that are not the defaults, as a user writes them."""
    parameters = inspect.signature(kind).parameters
    arguments = {k: v for k, v in config.items() if k in parameters and k not in ("name", "dtype")}
    return ", ".join(f"{k}={v!r}" for k, v in arguments.items() if v != parameters[k].default)


def _of_logits(loss, label, size):
    """Returns the loss of logits to compile with in place of one of probabilities, as a user writes it."""
    name = getattr(loss, "__name__", type(loss).__name__)
    name = name if name[:1].isupper() else "".join(word.title() for word in name.split("_"))
    kind = getattr(keras.losses, name, None)
    if kind is None or "from_logits" not in inspect.signature(kind).parameters:
        name = "SparseCategoricalCrossentropy" if np.size(label) == 1 < size else "CategoricalCrossentropy"
        kind = keras.losses.BinaryCrossentropy if size == 1 else getattr(keras.losses, name)
    config = loss.get_config() if isinstance(loss, kind) else {}
    return f"keras.losses.{kind.__name__}({_arguments(kind, {**config, 'from_logits': True})})"


def _misread(model, size):
    """Returns pairs of a compiled metric that takes probabilities, and what to write instead."""
    misread = []
    for metric in _metrics(model):
        name = metric if isinstance(metric, str) else metric.get("class_name")
        try:
            metric = keras.metrics.get(metric)
            settings = metric.get_config() if isinstance(metric, keras.Metric) else {}
        except (ValueError, TypeError):
            settings = {}
        if (size == 1 and name in ("accuracy", "acc", "binary_accuracy")) or settings.get("threshold") == BORDER:
            kind = name if settings.get("threshold") == BORDER and name[:1].isupper() else "BinaryAccuracy"
            misread.append((name, SHARES.get(name, f"keras.metrics.{kind}(threshold=0)")))
        elif settings.get("from_logits") is False:
            misread.append((name, f"keras.metrics.{type(metric).__name__}(from_logits=True)"))
        elif (
            "thresholds" in settings
            and settings["thresholds"] in (None, BORDER, [BORDER])
            and not settings.get("top_k")
        ):
            misread.append((name, f"keras.metrics.{type(metric).__name__}(thresholds=0)"))
    return misread


def _metrics(model):
    """Returns what a model was compiled with as metrics: names, and configs of objects."""
    try:
        config = model.get_compile_config()
    except Exception:  # what cannot be serialized is a metric of the user's own
        return []
    return _leaves([config.get("metrics"), config.get("weighted_metrics")])


def _leaves(value):
    """Returns the metrics of a compiled model's config: names, and configs of objects."""
    if isinstance(value, dict) and "class_name" not in value:
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in _leaves(part)]
    return [] if value is None else [value]
