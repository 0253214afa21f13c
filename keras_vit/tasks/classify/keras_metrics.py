"""Metrics of Keras, and the user's own, as text that a recipe's file can hold.

The text is the code that makes the metric: `keras.metrics.F1Score(average="macro")`. A metric of the user is registered
with `keras.saving.register_keras_serializable`, and the text has its registered name: `mine>Recall(threshold=0.7)`.
"""

import ast
import inspect
import re

import keras
import numpy as np

from keras_vit.utils import checks

KERAS = "keras.metrics."
SURE = 0.9999  # probability of a certain prediction
ROWS = 50  # predictions in a batch


def texts(metrics):
    """Returns one or more names or Keras metrics as a tuple of texts; any other value unchanged."""
    if isinstance(metrics, (list, tuple)):
        return tuple(map(_text, metrics))
    return (_text(metrics),) if isinstance(metrics, str) or callable(metrics) else metrics


def _text(metric):
    if not callable(metric):  # metric objects are callable too
        return metric
    is_object = isinstance(metric, keras.metrics.Metric)
    kind = type(metric) if is_object else metric
    name = getattr(kind, "__name__", "")
    if getattr(keras.metrics, name, None) is kind:
        name = KERAS + name
    else:
        name = keras.saving.get_registered_name(kind)
        if keras.saving.get_registered_object(name) is not kind:
            raise ValueError(
                "A metric of your own must be registered, by keras.saving.register_keras_serializable, so that a run's "
                f"files can name it. Received: {checks.shown(metric)}"
            )
    if not is_object:
        return name
    config = {key: value for key, value in metric.get_config().items() if key != "dtype"}
    text = f"{name}({', '.join(f'{key}={value!r}' for key, value in config.items())})"
    try:
        again = _parse(text)[1]
    except ValueError:
        again = None
    if again != config:
        raise ValueError(
            f"A metric must have settings of plain values. "
            f"Received: {checks.shown(metric)}, settings {checks.shown(config):.200}"
        )
    return text


def _parse(text):
    """Returns the name and the settings in the text of a metric; raises ValueError for other text."""
    name, bracket, rest = text.partition("(")
    if not name.strip():
        raise ValueError(f"Metrics must be a tuple of names, such as ('accuracy', 'f1'). Received: the text {text!r}")
    try:
        call = ast.parse(f"dict({rest}" if bracket else "dict()", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or ast.unparse(call.func) != "dict":
            raise ValueError
        return name.strip(), {word.arg: ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError, TypeError):
        raise ValueError(
            f"A metric with settings must be written as keras.metrics.F1Score(average='macro'). Received: {text!r}"
        ) from None


def is_known(text):
    """Returns whether a text names a metric of Keras, or a registered one."""
    return _found(_parse(text)[0]) is not None


def _found(name):
    if not name.startswith(KERAS):
        return keras.saving.get_registered_object(name) if ">" in name else None
    metric = getattr(keras.metrics, name.removeprefix(KERAS), None)
    return metric if callable(metric) else None


class KerasScore:
    """A metric of Keras on class probabilities, batch by batch.

    The metric takes one-hot labels, `(batch, classes)`, or class indices, `(batch,)`, if its name begins with "Sparse"
    or "sparse".

    Args:
        text: Text of the metric, as at the top of this file.
        classes: Names of the classes.

    Raises:
        ValueError: If it is no metric of labels and probabilities, or its result is neither a number nor one per class.
    """

    def __init__(self, text, classes):
        name, settings = _parse(text)
        kind = _found(name)
        self.text = text
        self.classes = classes
        self.sparse = name.removeprefix(KERAS).rpartition(">")[2].lower().startswith("sparse")
        try:
            if inspect.isclass(kind):
                self.metric = kind.from_config(settings)
            else:
                self.metric = keras.metrics.MeanMetricWrapper(kind, **{"name": kind.__name__, **settings})
            self.name = self.metric.name
            if inspect.isclass(kind) and (other := kind.from_config(settings).name) != self.name:
                self.name = re.sub(r"_\d+$", "", other)  # Keras numbers default names: own, own_1, own_2
            parameters = [*inspect.signature(self.metric.update_state).parameters][:2]
            if parameters != ["y_true", "y_pred"]:
                raise ValueError(f"its update_state takes {', '.join(parameters)}")
            if settings.get("from_logits"):
                raise ValueError("from_logits=True is for logits")
            self.add(np.array([0]), np.full((1, len(classes)), 1 / len(classes)))  # before any work
            self.names = tuple(self.result())
            if name.startswith(KERAS) and not self._tells():
                raise ValueError(
                    "it scores right and wrong predictions alike: it is for predicted indices, or for more classes"
                )
            self.metric.reset_state()
        except Exception as error:  # whatever a metric raises
            reason = str(error).strip().splitlines()
            raise ValueError(
                "A metric must compare labels and probabilities, (images, classes), and return a number, or one a "
                f"class. Received: {text!r}: {reason[0] if reason else type(error).__name__:.200}"
            ) from error

    def add(self, labels, probabilities):
        """Counts a batch: labels, integers, `(batch,)`, and probabilities, 0..1, `(batch, classes)`."""
        truth = labels
        if not self.sparse:
            truth = np.zeros(probabilities.shape, "float32")
            truth[np.arange(len(labels)), labels] = 1
        self.metric.update_state(truth, probabilities.astype("float32"))

    def _tells(self):
        """Returns whether certain and right predictions score differently from certain and wrong ones.

        Metrics of class indices, such as `Accuracy`, compare each 0 or 1 with a probability, which is neither.
        """
        count = len(self.classes)
        for first in range(0, count, ROWS):  # the first batch suffices for most metrics
            labels = np.arange(first, min(first + ROWS, count))
            others, results = np.full((2, len(labels), count), (1 - SURE) / count), []
            others[1, np.arange(len(labels)), labels] = 0  # less than any other
            for probabilities, chosen in zip(others, (labels, (labels + 1) % count)):
                probabilities[np.arange(len(labels)), chosen] = SURE
                self.metric.reset_state()
                self.add(labels, probabilities)
                results.append([*self.result().values()])
            if not np.array_equal(*results, equal_nan=True):
                return True
        return False

    def result(self):
        """Returns the score by its name, or a score for each class."""
        values = np.asarray(keras.ops.convert_to_numpy(self.metric.result()), "float64")
        if values.shape == (len(self.classes),):
            return {f"{self.name} {name}": float(value) for name, value in zip(self.classes, values)}
        if values.ndim:
            raise ValueError(f"its result has the shape {values.shape}")
        return {self.name: float(values)}
