"""What of a model is trained: from a block on, the head alone, or low-rank updates."""

import keras

from keras_vit import checks, distribution, snapshots
from keras_vit.layers import TransformerBlock

HEADS = ("head", "head_distilled")


def freeze(model, upto):
    """Keeps the lower layers of a model as they are; a normalisation by batches keeps its statistics too.

    Args:
        model: A model of `keras_vit.vit`.
        upto: Number of blocks that stay, with all that comes before them; 0 for what comes before them alone; `"all"`
            for a linear probe, which trains the head alone.

    Returns:
        The model.

    Raises:
        ValueError: For more blocks than the model has, or a model without a head to probe.
    """
    depth = len(_blocks(model))
    if upto != "all" and (isinstance(upto, bool) or not isinstance(upto, int) or not 0 <= upto <= depth):
        raise ValueError(f"`upto` is 'all' or a number of blocks from 0 to {depth}. Received: upto={upto!r}")
    if upto == "all" and not any(layer.name in HEADS for layer in model.layers):
        raise ValueError(f"A linear probe needs a head. Received: {model.name!r}, num_classes=0")
    if upto == "all":
        for layer in model.layers:
            layer.trainable = layer.name in HEADS
        return model
    first = next(i for i, layer in enumerate(model.layers) if isinstance(layer, TransformerBlock))
    for layer in model.layers[: first + upto]:
        layer.trainable = False
    return model


def add_lora(model, rank):
    """Adds low-rank updates to the query, key and value of every block, and trains them and the head alone.

    Hu et al. 2022 (arXiv:2106.09685), by Keras's `enable_lora` on the fused projection. They start at zero: the model's
    answers do not change.

    Args:
        model: A model of `keras_vit.vit`.
        rank: Positive integer.

    Returns:
        The model.

    Raises:
        ValueError: For a rank that is not positive, or a model that has them already.
    """
    checks.positive(rank=rank)
    added = set()
    for block in _blocks(model):
        dense = block.attention.qkv
        if dense.lora_enabled:
            raise ValueError(f"{model.name!r} has low-rank updates already; see `merge_lora`.")
        dense.enable_lora(rank)
        added |= {id(dense.lora_kernel_a), id(dense.lora_kernel_b)}
    for layer in model.layers:
        for variable in layer.trainable_variables if layer.name not in HEADS else ():
            variable.trainable = id(variable) in added
    return model


def merge_lora(model):
    """Returns a copy without low-rank updates that computes the same: they are added to the kernels.

    Args:
        model: A model, with low-rank updates or without; it is left as it is.

    Returns:
        A model that was never compiled; what `freeze` froze is frozen in it too.
    """
    return plain_copy(model, merged_values(model))


def merged_values(model):
    """Returns a model's weights by path, as arrays, low-rank updates added to the kernels."""
    merged = {layer._kernel.path: layer.kernel for layer in model._flatten_layers()
              if getattr(layer, "lora_enabled", False)}  # fmt: skip
    return {v.path: snapshots.to_numpy(merged.get(v.path, v.value)) for v in model.weights}


def plain_copy(model, values):
    """Returns a copy of a model with weights of its own, by path; it belongs to this process alone."""
    with distribution.apart():
        copy = type(model).from_config(model.get_config())
        for variable in copy.weights:
            variable.assign(values[variable.path])
    return copy


def rematerialised(depth=200):
    """Returns a scope in which a model is built whose blocks are computed again in the backward pass.

    Between blocks only their inputs are kept: less memory for a third more computation (Chen et al. 2016,
    arXiv:1604.06174).
    """
    return keras.RematScope(mode="list_of_layers", layer_names=[f"block_{i}" for i in range(depth)])


def _blocks(model):
    return [layer for layer in model.layers if isinstance(layer, TransformerBlock)]
