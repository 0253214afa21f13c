"""Intermediate features of a model."""

from collections.abc import Sequence

import keras
import numpy as np

from keras_vit.explain import inside
from keras_vit.layers.functional import Model
from keras_vit.models import anatomy
from keras_vit.models.backbone import backbone, input_of
from keras_vit.utils import checks
from keras_vit.utils.keras_private import calls_after

NORMS = (keras.layers.LayerNormalization, keras.layers.RMSNormalization)


def features(
    model: keras.Model, layers: Sequence[int] | None = None, *, reshape: bool = True, norm: bool = False
) -> keras.Model:
    """Builds a Keras model that returns the tokens of some blocks, for linear probes, retrieval and dense heads.

    It shares all layers and weights with `model`, and can be trained, saved and called like any model. Its outputs
    equal timm's `forward_intermediates` for the same weights, with channels last.

    Args:
        model: As in `attention_maps`. Layers before a nested ViT become part of the new model.
        layers: Indices of the blocks, from 0; negative ones count from the last. All blocks if `None`.
        reshape: Whether to return the patches as a feature map; else all tokens, prefix tokens first.
        norm: Whether to apply the model's final norm to each output.

    Returns:
        A `keras.Model` from images to a dictionary. The keys are names of blocks, such as `"block_3"`; the values are
        tensors, `(batch, rows, columns, width)`, or without `reshape` `(batch, tokens, width)`. Call it with
        `training=False` if layers before a nested ViT augment images. To train it, take a model without
        `patch_dropout`, which leaves holes in the maps.

    Raises:
        ValueError: For a block that the model does not have, or for `norm` if the model's norm comes after the pooling.

    Example:

    >>> model = keras_vit.vit("Ti/16", image_size=(224, 320))
    >>> features(model, [2, -1])(images)["block_11"].shape
    (1, 14, 20, 192)
    """
    blocks, vit = anatomy.blocks(model), backbone(model)
    indices = range(len(blocks)) if layers is None else layers
    integers = isinstance(indices, (list, tuple, range)) and all(isinstance(i, (int, np.integer)) for i in indices)
    if not integers or not indices or not set(indices) <= set(range(-len(blocks), len(blocks))):
        raise ValueError(
            f"`layers` must be a list of block indices, which go from 0 to {len(blocks) - 1} in {model.name!r}. "
            f"Received: layers={checks.shown(layers)}"
        )
    last = _norm(vit, blocks[-1]) if norm else None
    if norm and (last is None or len(last.output.shape) != 3):
        raise ValueError(f"{model.name!r} must have a norm before the pooling. Received: norm=True")
    prefix, (*steps, rows, columns) = anatomy.num_prefix(model), anatomy.grid(model)
    if steps and reshape:
        raise ValueError(f"Maps are of images: pass reshape=False. Received: {model.name!r}, which takes clips")
    outputs = {}
    for block in (blocks[i] for i in indices):
        x = inside.after(block) if last is None else last(inside.after(block))
        if reshape:
            x = keras.layers.Cropping1D((prefix, 0), name=f"{block.name}_patches", dtype=x.dtype)(x)
            x = keras.layers.Reshape((rows, columns, x.shape[-1]), name=f"{block.name}_map", dtype=x.dtype)(x)
        outputs[block.name] = x
    result = Model(anatomy.seen(model), outputs, name=f"{model.name}_features")
    for graph, tensor in reversed(inside.entrances(model)):
        result = Model(input_of(graph, [tensor]), result(tensor), name=result.name)
    return result


def _norm(vit, block):
    """Returns the normalization after the last block: that named `"norm"`, else the one that takes its output."""
    named = [layer for layer in vit.layers if layer.name == "norm"]
    after = [node.operation for node in calls_after(block)]
    return next((layer for layer in (*named, *after) if isinstance(layer, NORMS)), None)
