"""Finds the Vision Transformer in a model: the model itself, or one nested in it; fills a copy of a model."""

import keras

from keras_vit.layers import Rescale, TransformerBlock, Words
from keras_vit.layers.base import STATES, Layer
from keras_vit.utils import checks
from keras_vit.utils.keras_private import call_of, kernel_without_lora, sublayers

TOWERS = ("image", "text", "similarity")  # layers of a model of images and texts
NONE = (
    "none. A block holds attention and MLP, keras_vit.TransformerBlock(num_heads, mlp_dim); of a subclassed model, "
    "pass keras.Model(x, model.call(x)) with x = keras.Input(...)"
)
HEADS = ("head", "head_distilled")  # layers that return logits
BEFORE_HEAD = ("pre_logits", "answer", "answer_norm")  # layers before them that only some files have


def fill(copy, values):
    """Sets the weights of a copy of a model, and what its adapted layers compute from them. Returns the copy."""
    copy.set_weights(values)
    for layer in sublayers(copy):
        if hasattr(layer, "finalize_state"):
            layer.finalize_state()
    return copy


def has_towers(model):
    """Returns whether a model has an image tower and a text tower."""
    return set(TOWERS) <= {layer.name for layer in getattr(model, "layers", ())}


def image_tower(model):
    """Returns the image tower of a model of images and texts, or of one that writes texts; any other model itself."""
    names = {layer.name for layer in getattr(model, "layers", ())}
    return model.get_layer(TOWERS[0]) if set(TOWERS[:2]) <= names else model


def keeper(model):
    """Returns the layer that keeps a model's metadata, `None` if there is no layer of ours.

    That is its first `Rescale`, also in a model inside, else the first of our layers; that of words keeps their table.
    """
    inside = sublayers(model)
    own = [layer for layer in inside if isinstance(layer, Layer) and not isinstance(layer, Words)]
    order = [layer for layer in own if isinstance(layer, Rescale)] + [layer for layer in own if layer.metadata] + own
    return next(iter(order), None)


def input_shape_of(model):
    """Returns the shape of a model's input, of what it is about if it reads words too; `None` if it has none."""
    shape = getattr(model, "input_shape", None)  # a subclass of `keras.Model` has none
    named = {x.name: tuple(x.shape) for x in model.inputs} if isinstance(shape, list) else {}
    return named.get("images", named.get("sources", shape))


def has_lora(model):
    """Returns whether a layer of a model has LoRA."""
    return any(getattr(layer, "lora_enabled", False) for layer in sublayers(model))


def variables_of(model):
    """Returns the weights of a functional model by their paths inside it, such as `"block_0/mlp/fc1/kernel"`.

    In a model that was loaded as a part of another, Keras 3.16 begins the paths with the other's name.
    """
    variables = {}
    for layer in model.layers:
        outer = (getattr(layer, "path", None) or layer.name).removesuffix(layer.name)
        variables |= {variable.path.removeprefix(outer): variable for variable in layer.weights}
    return variables


def check_plain(model, what, lora=True):
    """Raises ValueError unless a model's weights are floats, and with `lora=False` without LoRA, as `what` needs."""
    quantized = next((layer for layer in sublayers(model) if layer.quantization_mode is not None), None)
    if quantized is not None:
        raise ValueError(
            f"{what} needs the model as it was before `model.quantize`. "
            f"Received: {model.name!r}, {quantized.path!r} in {quantized.quantization_mode}"
        )
    if not lora and has_lora(model):
        raise ValueError(f"{what} needs a model without LoRA: see `merge_lora`. Received: {model.name!r}")


def merged_values(model):
    """Returns the values of a model's weights, in their order, with LoRA merged into the kernels."""
    layers = [layer for layer in sublayers(model) if getattr(layer, "lora_enabled", False)]
    merged = {}
    for layer in layers:
        kernel = kernel_without_lora(layer)
        if layer.quantization_mode is None:
            merged[id(kernel)] = layer.kernel
            continue
        kind, values = keras.layers.Dense if isinstance(layer, keras.layers.Dense) else type(layer), {}
        kind.save_own_variables(layer, values)  # Keras merges, and quantizes again
        others = [getattr(layer, name, None) for name in ("bias", "kernel_scale", "kernel_zero", "g_idx")]
        variables = [kernel, *(variable for variable in others if variable is not None)]
        merged |= {id(variable): values[str(i)] for i, variable in enumerate(variables)}
    updates = {id(variable) for layer in layers for variable in (layer.lora_kernel_a, layer.lora_kernel_b)}
    return [merged.get(id(v), v.value) for v in model.weights if id(v) not in updates]


def without_lora(config):
    """Returns the configuration of a model or layer without LoRA, and without what `add_lora` froze inside layers."""
    if isinstance(config, (list, tuple)):
        return type(config)(map(without_lora, config))
    if not isinstance(config, dict):
        return config
    plain = {name: without_lora(value) for name, value in config.items() if name not in ("lora_rank", "lora_alpha")}
    parts = config.get("parts")
    if not isinstance(parts, dict) or not all(set(state) <= set(STATES) for state in parts.values()):
        return plain
    quantized = {
        path: {"quantization": state["quantization"]} for path, state in parts.items() if "quantization" in state
    }
    return plain | {"parts": quantized}


def backbone(model: keras.Model) -> keras.Model:
    """Returns the functional model that contains the `TransformerBlock`s: the model itself, or one nested in it.

    Args:
        model: A Keras model, such as one from `keras_vit.vit`. Or a `keras.Sequential`, functional or subclassed model
            with such a model nested in it, at any depth.

    Returns:
        A functional `keras.Model`, or a built `keras.Sequential`: the object itself, not a copy.

    Raises:
        ValueError: If the model contains no such model, or more than one.

    Example:

    >>> vit = keras_vit.vit("Ti/16", num_classes=0)
    >>> backbone(keras.Sequential([vit, keras.layers.Dense(4)])) is vit
    True
    """
    if not isinstance(model, keras.Model):
        raise ValueError(
            f"The model must be a Keras model with `TransformerBlock` layers. Received: {checks.shown(model)}"
        )
    holders = list({id(holder): holder for holder in _holders(model)}.values())
    if len(holders) == 1:
        return holders[0]
    count = f"{len(holders)}: {', '.join(repr(holder.name) for holder in holders)}" if holders else NONE
    raise ValueError(
        "The model must contain exactly one functional model with `TransformerBlock` layers. "
        f"Received: {model.name!r}, which has {count}"
    )


def calls(model):
    """Returns the calls that lead from a model to its backbone, outermost first; an empty list for a backbone.

    Returns:
        A list of pairs: a model, and the node of its graph that calls the next model.

    Raises:
        ValueError: As `backbone`, and if one of these models does not call the next exactly once in its graph.
    """
    inner, steps = backbone(model), []
    while model is not inner:
        nodes = [node for node in leading_to(outputs_of(model)) if _has(node.operation, inner)]
        if len(nodes) != 1 or not outputs_of(nodes[0].operation):
            raise ValueError(
                f"{model.name!r} does not call its ViT {inner.name!r} exactly once in a graph of layers. Pass the ViT "
                "itself, keras_vit.models.backbone.backbone(model), and the images that it is called with."
            )
        steps.append((model, nodes[0]))
        model = nodes[0].operation
    return steps


def around(model):
    """Returns the layers outside a model's ViT: those before it, and the rest."""
    try:
        steps = calls(model)
    except ValueError:  # a subclass has no graph
        inner = backbone(model)
        return [], [layer for layer in model.layers if inner not in sublayers(layer)]
    before = [layer for _, call in steps for layer in layers_leading_to(call.input_tensors)]
    ids = {id(layer) for layer in [*before, *(call.operation for _, call in steps)]}
    return before, [layer for graph, _ in steps for layer in graph.layers if id(layer) not in ids]


def leading_to(tensors, start=()):
    """Returns the nodes (calls of layers) that compute symbolic tensors from a model's inputs.

    Args:
        tensors: List of symbolic tensors.
        start: Symbolic tensors at which to stop; the nodes before them are left out.
    """
    nodes, waiting, ends = {}, list(tensors), {id(tensor) for tensor in start}
    while waiting:
        tensor = waiting.pop()
        node = call_of(tensor)
        if id(node) not in nodes and id(tensor) not in ends:
            nodes[id(node)] = node
            waiting += node.input_tensors
    return list(nodes.values())


def layers_leading_to(tensors):
    """Returns the layers that compute symbolic tensors from a model's inputs."""
    return [node.operation for node in leading_to(tensors) if isinstance(node.operation, keras.Layer)]


def input_of(model, tensors):
    """Returns the one symbolic input of a model from which some of its symbolic tensors are computed.

    Raises:
        ValueError: If they are computed from several inputs.
    """
    used = {id(tensor) for node in leading_to(tensors) for tensor in node.outputs}
    inputs = [tensor for tensor in model.inputs if id(tensor) in used]
    if len(inputs) != 1:
        raise ValueError(
            f"{model.name!r} must compute this from one input, the images. Received: {len(inputs)} inputs. "
            "Pass the part that takes only the images, such as a nested ViT, or "
            "keras.Model(image_input, what_is_computed_from_it)."
        )
    return inputs[0]


def outputs_of(model):
    """Returns the symbolic outputs of a functional model or a built `Sequential`; `[]` for any other layer."""
    return (getattr(model, "outputs", None) or []) if isinstance(model, keras.Model) else []


def _has(operation, inner):
    return isinstance(operation, keras.Layer) and inner in sublayers(operation)


def _holders(layer):
    inside = sublayers(layer, include_self=False, recursive=False)
    if outputs_of(layer) and any(isinstance(part, TransformerBlock) for part in inside):
        return [layer]
    return [holder for part in inside for holder in _holders(part)]
