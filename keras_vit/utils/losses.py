"""Whether a model returns logits, and whether its compiled loss takes probabilities."""

import inspect

import keras


def end_of(model):
    """Returns `"softmax"` or `"sigmoid"` if a model ends in one, as a layer, an activation or an operation."""
    return end_of_layer(_last(model))


def end_of_layer(last):
    """Returns `"softmax"` or `"sigmoid"` of a layer or an operation that is one or has one, else `None`."""
    for end in ("softmax", "sigmoid"):
        if getattr(last, "activation", None) is getattr(keras.activations, end) or type(last).__name__ == end.title():
            return end
    return None


def from_logits(loss):
    """Returns the argument `from_logits` of a loss, given or by default; `None` if it has none."""
    config = loss.get_config() if isinstance(loss, keras.losses.Loss) else getattr(loss, "keywords", {})
    if "from_logits" in config:
        return bool(config["from_logits"])
    parameters = {} if isinstance(loss, keras.losses.Loss) else inspect.signature(loss).parameters
    return bool(parameters["from_logits"].default) if "from_logits" in parameters else None


def loss_of(model):
    """Returns the loss that a model with one output was compiled with, as a function; `None` without one."""
    losses = keras.tree.flatten(model.loss) if getattr(model, "compiled", False) else []
    return keras.losses.get(losses[0]) if len(losses) == 1 and losses[0] is not None else None


LABEL_LOSSES = {"BinaryCrossentropy", "BinaryFocalCrossentropy"}
NUMBER_LOSSES = {
    "MeanSquaredError", "MeanAbsoluteError", "MeanSquaredLogarithmicError", "MeanAbsolutePercentageError", "Huber",
    "LogCosh",
}  # fmt: skip


def kind_of_loss(model):
    """Returns what outputs are by the loss that a model was compiled with: `"labels"`, `"numbers"` or `None`."""
    loss = loss_of(model)
    if loss is None or len(model.output_shape) != 2:
        return None
    name = type(loss).__name__ if isinstance(loss, keras.losses.Loss) else getattr(loss, "__name__", "")
    name = name if isinstance(loss, keras.losses.Loss) else name.title().replace("_", "")
    if name in LABEL_LOSSES and model.output_shape[-1] > 1 and end_of(model) != "softmax":
        return "labels"
    return "numbers" if name in NUMBER_LOSSES and end_of(model) is None else None


def untrainable(model):
    """Returns why a compiled model does not learn: it ends in logits, and its loss takes probabilities; else `None`.

    Keras clips what it takes for probabilities: of logits that begin as zeros, the gradient is zero for ever.
    """
    last, loss = _last(model), loss_of(model)
    of_logits = isinstance(last, keras.layers.Dense) and last.activation is keras.activations.linear
    if loss is None or not of_logits or from_logits(loss) is not False:
        return None
    plain = getattr(loss, "func", loss)  # of a partial
    name = getattr(plain, "name", None) or getattr(plain, "__name__", type(plain).__name__)
    kind = type(loss).__name__ if isinstance(loss, keras.losses.Loss) else name.title().replace("_", "")
    return (
        f"{model.name!r} returns logits, and the loss {name!r} takes probabilities: it may never learn. Compile it "
        f"with keras.losses.{kind}(from_logits=True), or end the model in a softmax or sigmoid."
    )


def _last(model):
    """Returns the last layer or operation of a model, also of one inside."""
    last = model
    while isinstance(last, keras.Model) and last.layers:
        last = getattr(last, "operations", last.layers)[-1]
    return last
