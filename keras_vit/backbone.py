"""The Vision Transformer in a model: the model itself, or one that is nested in it."""

import keras

from keras_vit.keras_private import call_of, sublayers
from keras_vit.layers import TransformerBlock

HEADS = ("head", "head_distilled")  # layers that return logits


def backbone(model):
    """Returns the functional model that holds the `TransformerBlock`s: the model itself, or the one nested in it.

    Args:
        model: A Keras model, such as one of `keras_vit.vit`, or `keras.Sequential` or a functional or subclassed model
            with such a model in it, at any depth.

    Returns:
        A functional `keras.Model`, or `keras.Sequential` that was built: the same object that the model uses.

    Raises:
        ValueError: If there is no such model in it, or more than one.

    Example:

    >>> vit = keras_vit.vit("Ti/16", num_classes=0)
    >>> backbone(keras.Sequential([vit, keras.layers.Dense(4)])) is vit
    True
    """
    if not isinstance(model, keras.Model):
        raise ValueError(f"A Keras model with `TransformerBlock` layers is needed. Received: {model!r}")
    found = list({id(holder): holder for holder in _holders(model)}.values())
    if len(found) == 1:
        return found[0]
    count = f"{len(found)}: {', '.join(repr(holder.name) for holder in found)}" if found else "none"
    raise ValueError(
        "A model with `TransformerBlock` layers in one functional model is needed. "
        f"Received: {model.name!r}, which has {count}"
    )


def calls(model):
    """Returns the calls that lead from a model to its backbone, outermost first; none for a backbone itself.

    Returns:
        A list of pairs: a model, and the node of its graph in which it calls the next one.

    Raises:
        ValueError: As `backbone`, and if a model on the way calls the next one not exactly once in a graph.
    """
    inner, found = backbone(model), []
    while model is not inner:
        nodes = [node for node in leading_to(outputs_of(model)) if _has(node.operation, inner)]
        if len(nodes) != 1 or not outputs_of(nodes[0].operation):
            raise ValueError(
                f"{model.name!r} does not call its ViT {inner.name!r} once in a graph of layers. Pass the ViT itself, "
                "keras_vit.backbone.backbone(model), and what it is called with."
            )
        found.append((model, nodes[0]))
        model = nodes[0].operation
    return found


def leading_to(tensors, start=()):
    """Returns the nodes by which symbolic tensors are computed from a model's inputs: each call of a layer is one.

    Args:
        tensors: List of symbolic tensors.
        start: Symbolic tensors that are known: how they are computed is left out.
    """
    found, waiting, known = {}, list(tensors), {id(tensor) for tensor in start}
    while waiting:
        tensor = waiting.pop()
        node = call_of(tensor)
        if id(node) not in found and id(tensor) not in known:
            found[id(node)] = node
            waiting += node.input_tensors
    return list(found.values())


def input_of(model, tensors):
    """Returns the one symbolic input of a model that some of its symbolic tensors are computed from.

    Raises:
        ValueError: If they are computed from several.
    """
    used = {id(tensor) for node in leading_to(tensors) for tensor in node.outputs}
    found = [tensor for tensor in model.inputs if id(tensor) in used]
    if len(found) != 1:
        raise ValueError(
            f"What is read from {model.name!r} is computed from one input, the images. Received: {len(found)} inputs. "
            "Pass the part that takes the images alone, such as a nested ViT: keras_vit.backbone.backbone(model)."
        )
    return found[0]


def outputs_of(model):
    """Returns the symbolic outputs of a functional model or a built `Sequential`; of any other layer none."""
    return (getattr(model, "outputs", None) or []) if isinstance(model, keras.Model) else []


def _has(operation, inner):
    return isinstance(operation, keras.Layer) and inner in sublayers(operation)


def _holders(layer):
    inside = sublayers(layer, include_self=False, recursive=False)
    if outputs_of(layer) and any(isinstance(part, TransformerBlock) for part in inside):
        return [layer]
    return [holder for part in inside for holder in _holders(part)]
