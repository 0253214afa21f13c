"""What of a model is trained: from a block on, the head alone, or low-rank updates."""

import keras

from keras_vit import checks
from keras_vit.backbone import backbone, calls, leading_to
from keras_vit.keras_private import calls_of, kernel_without_lora, sublayers
from keras_vit.layers import TransformerBlock
from keras_vit.training import devices, state

HEADS = ("head", "head_distilled")
ENCODER = ("norm", "pool", "pool_distilled", "pre_logits")  # behind the blocks, and no head


def freeze(model, upto):
    """Freezes the lower layers of a model and thaws all others, whatever was frozen before.

    A frozen batch normalisation keeps its statistics too. Compile the model after it: Keras trains what was trainable
    when it was compiled.

    Args:
        model: A model of `keras_vit.vit`, or one with such a model nested in it. The layers behind a nested ViT are
            then the head, where they have weights; those that lead to it are frozen with its patches.
        upto: `None` to train everything. A number of blocks that are frozen, with everything before them; 0 for what
            comes before the first block alone. `"all"` for a linear probe, which trains the head alone.

    Returns:
        The model.

    Raises:
        ValueError: For more blocks than the model has, a model without a head to probe, or one with LoRA, which
            decides itself what is trained.

    Example:

    >>> freeze(model, "all")  # train the head first
    >>> freeze(model, None)  # then everything
    """
    check(model, upto)
    below = [] if upto is None else _others(model) if upto == "all" else _leading(model, upto)
    for layer in sublayers(model):  # each one: TensorFlow ignores `trainable = True` where it is True already
        layer.trainable = False
        layer.trainable = True
    for layer in below:
        layer.trainable = False
    return model


def check(model, upto, rank=None):
    """Raises ValueError where `freeze(model, upto)`, or `add_lora(model, rank)` after it, would; changes nothing."""
    depth = len(_blocks(model))
    if upto not in (None, "all") and (isinstance(upto, bool) or not isinstance(upto, int) or not 0 <= upto <= depth):
        raise ValueError(f"`upto` is None, 'all' or a number of blocks from 0 to {depth}. Received: upto={upto!r}")
    if any(getattr(layer, "lora_enabled", False) for layer in sublayers(model)):
        raise ValueError(
            f"{model.name!r} has LoRA, which trains its updates and the head alone. Call `merge_lora` first, "
            "or `freeze` before `add_lora`."
        )
    if upto == "all" and not _head(model):
        raise ValueError(f"A linear probe needs a head. Received: {model.name!r}, num_classes=0")
    if rank is not None and upto in ("all", depth):
        raise ValueError(f"LoRA trains blocks, and {upto!r} freezes them all. Received: freeze={upto!r}, lora={rank}")


def add_lora(model, rank):
    """Adds low-rank updates to the query, key and value of every block, and trains them and the head alone.

    Hu et al. 2022 (arXiv:2106.09685), by Keras's `enable_lora` on the fused projection. They start at zero: the model's
    answers do not change. Blocks that `freeze` froze stay frozen, updates included.

    Args:
        model: As in `freeze`.
        rank: Positive integer.

    Returns:
        The model.

    Raises:
        ValueError: For a rank that is not positive, or a model that has them already, or whose blocks are all frozen.
    """
    checks.positive(rank=rank)
    layers = [block.attention.qkv for block in _blocks(model)]
    if any(dense.lora_enabled for dense in layers):
        raise ValueError(f"{model.name!r} has low-rank updates already; see `merge_lora`.")
    if not any(dense.trainable for dense in layers):
        raise ValueError(
            f"Every block of {model.name!r} is frozen, and LoRA would not be trained: freeze(model, None)."
        )
    added = set()
    for dense in layers:
        dense.enable_lora(rank)
        added |= {id(dense.lora_kernel_a), id(dense.lora_kernel_b)}
    for layer in _others(model):
        for variable in layer.trainable_variables:
            variable.trainable = id(variable) in added
    return model


def merge_lora(model):
    """Returns a copy without low-rank updates that computes the same: they are added to the kernels.

    Args:
        model: A model, with low-rank updates or without; it is left as it is.

    Returns:
        A model that was never compiled; what `freeze` froze is frozen in it too.
    """
    checks.model(model)
    return plain_copy(model, merged_values(model))


def merged_values(model):
    """Returns a model's weights as arrays, in their order: LoRA's updates are added to the kernels, and left out."""
    layers = [layer for layer in sublayers(model) if getattr(layer, "lora_enabled", False)]
    merged = {id(kernel_without_lora(layer)): layer.kernel for layer in layers}
    updates = {id(variable) for layer in layers for variable in (layer.lora_kernel_a, layer.lora_kernel_b)}
    return [state.to_numpy(merged.get(id(v), v.value)) for v in model.weights if id(v) not in updates]


def plain_copy(model, values):
    """Returns a copy of a model with these weights, as `merged_values` gives them; it belongs to this process alone."""
    with devices.apart():
        copy = type(model).from_config(model.get_config())
        for variable, value in zip(copy.weights, values, strict=True):
            variable.assign(value)
    return copy


def _blocks(model):
    return [layer for layer in backbone(model).layers if isinstance(layer, TransformerBlock)]


def _around(model):
    """Returns the layers outside a model's ViT: those that lead to it, and the rest."""
    try:
        steps = calls(model)
    except ValueError:  # a subclass has no graph
        inner = backbone(model)
        return [], [layer for layer in model.layers if inner not in sublayers(layer)]
    before = [layer for _, call in steps for layer in _layers_of(leading_to(call.input_tensors))]
    known = {id(layer) for layer in [*before, *(call.operation for _, call in steps)]}
    return before, [layer for graph, _ in steps for layer in graph.layers if id(layer) not in known]


def _head(model):
    """Returns the layers that a linear probe trains: those with weights behind a nested ViT, else behind its blocks."""
    behind = [layer for layer in _around(model)[1] if layer.weights]
    layers = backbone(model).layers
    last = max(i for i, layer in enumerate(layers) if isinstance(layer, TransformerBlock))
    return behind or [layer for layer in layers[last + 1 :] if layer.weights and layer.name not in ENCODER]


def _others(model):
    """Returns all layers but the head."""
    head = {id(layer) for layer in _head(model)}
    return [layer for layer in [*_around(model)[0], *backbone(model).layers] if id(layer) not in head]


def _leading(model, upto):
    """Returns the layers before a block, or before what follows the last one."""
    call = calls_of(_blocks(model)[max(upto - 1, 0)])[0]
    inside = leading_to(call.outputs if upto else call.input_tensors)
    return [*_around(model)[0], *_layers_of(inside)]


def _layers_of(nodes):
    return [node.operation for node in nodes if isinstance(node.operation, keras.Layer)]
