"""A model that gives what its blocks give."""

import keras
import numpy as np

from keras_vit.backbone import backbone, input_of
from keras_vit.explain import anatomy


def features(model, layers=None, *, reshape=True, norm=False):
    """Returns a Keras model of intermediate tokens, for linear probes, retrieval and dense heads.

    It shares all layers and weights with the one given, and can be trained, saved and called as any. What it gives
    equals timm's `forward_intermediates` on the same weights, with channels last.

    Args:
        model: As in `attention_maps`; what comes before a nested ViT is a part of what is returned.
        layers: Numbers of the blocks, from 0, negative ones from the last; all if `None`.
        reshape: Whether to give the patches as a map; else all tokens, prefix tokens first.
        norm: Whether the model's final norm is applied to each.

    Returns:
        A `keras.Model` from images to a dictionary: names of the blocks, such as `"block_3"`, to tensors of
        `(batch, rows, columns, width)`, or without `reshape` `(batch, tokens, width)`. Call it with `training=False`
        where layers before a nested ViT augment.

    Raises:
        ValueError: For a block that the model does not have, or `norm` where it stands behind the pooling.

    Example:

    >>> model = keras_vit.vit("Ti/16", image_size=(224, 320), weights=None)
    >>> features(model, [2, -1])(images)["block_11"].shape
    (1, 14, 20, 192)
    """
    blocks, vit = anatomy.blocks(model), backbone(model)
    numbers = range(len(blocks)) if layers is None else layers
    known = isinstance(numbers, (list, tuple, range)) and all(isinstance(n, (int, np.integer)) for n in numbers)
    if not known or not numbers or not set(numbers) <= set(range(-len(blocks), len(blocks))):
        raise ValueError(
            f"`layers` is a list of numbers of blocks, of which {model.name!r} has 0 to {len(blocks) - 1}. "
            f"Received: layers={layers!r}"
        )
    last = vit.get_layer("norm") if norm and any(layer.name == "norm" for layer in vit.layers) else None
    if norm and (last is None or len(last.output.shape) != 3):
        raise ValueError(f"{model.name!r} has no norm of all tokens. Received: norm=True")
    prefix, (rows, columns) = anatomy.num_prefix(model), anatomy.grid(model)
    outputs = {}
    for block in (blocks[number] for number in numbers):
        x = block.output if last is None else last(block.output)
        if reshape:
            x = keras.layers.Cropping1D((prefix, 0), name=f"{block.name}_patches", dtype=x.dtype)(x)
            x = keras.layers.Reshape((rows, columns, x.shape[-1]), name=f"{block.name}_map", dtype=x.dtype)(x)
        outputs[block.name] = x
    found = keras.Model(anatomy.seen(model), outputs, name=f"{model.name}_features")
    for graph, tensor in reversed(anatomy.entrances(model)):
        found = keras.Model(input_of(graph, [tensor]), found(tensor), name=found.name)
    return found
