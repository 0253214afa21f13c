"""Where a model's parts are. All that looks inside is derived from the layers: the trained graph carries none of it."""

import keras
import numpy as np
from keras import ops

from keras_vit import checks
from keras_vit.backbone import backbone, calls, input_of
from keras_vit.keras_private import call_of, calls_of, place_of, sublayers, takes_training
from keras_vit.layers import PatchEncoder, Patches, TokenPool, TransformerBlock

SCORES = 2**26  # held at a time, which is 256 MB


def blocks(model):
    """Returns the `TransformerBlock`s of the model's ViT, from the first to the last.

    Raises:
        ValueError: If there is none, or one is called otherwise than once, with tokens alone.
    """
    found = [layer for layer in backbone(model).layers if isinstance(layer, TransformerBlock)]
    for block in found:
        node, *others = calls_of(block)
        if others or any(name != "training" for name in node.arguments.kwargs):
            raise ValueError(f"Looking inside needs blocks called once, with tokens alone. Received: {block.name!r}")
    return found


def only(model, kind):
    """Returns the model's one layer of a kind, at any depth."""
    if not isinstance(model, keras.Model):
        raise ValueError(f"A Keras model with one {kind.__name__} layer is needed. Received: {model!r}")
    found = [layer for layer in sublayers(model) if isinstance(layer, kind)]
    if len(found) != 1:
        raise ValueError(
            f"A model with one {kind.__name__} layer is needed. Received: {model.name!r}, with {len(found)}"
        )
    return found[0]


def grid(model):
    """Returns `(rows, columns)` of the patches."""
    patches = only(model, Patches)
    return patches.grid(patches.input.shape)


def num_prefix(model):
    """Returns how many tokens stand before the patches."""
    return only(model, PatchEncoder).num_prefix


def seen(model):
    """Returns the symbolic images that the model's ViT itself is given."""
    return input_of(backbone(model), [blocks(model)[0].input])


def run(model, outputs, images):
    """Returns a list of what a model has at some of its symbolic tensors, for images."""
    inputs = input_of(model, outputs)
    found = keras.Model(inputs, outputs)(ops.cast(ops.convert_to_tensor(images), inputs.dtype), training=False)
    return list(found) if isinstance(found, (list, tuple)) else [found]


def entrances(model):
    """Returns what leads from a model's images to those that its ViT is given.

    Returns:
        A list of pairs, outermost model first: a model, and the symbolic tensor in it that it calls the next one with.
        Models that hand on their input as it is are left out.
    """
    steps = []
    for graph, call in calls(model):
        if len(call.input_tensors) != 1:
            raise ValueError(f"A ViT with one input is needed. Received: {call.operation.name!r}")
        if call.input_tensors[0] is not input_of(graph, call.input_tensors):
            steps.append((graph, call.input_tensors[0]))
    return steps


def checked(model, images):
    """Returns a batch of images as an array, once it is found to fit the model.

    Values are checked where the ViT is given the images as they are; else they are the business of what comes before.
    """
    steps = entrances(model)
    if not steps:
        return checks.pixels(images, seen(model).shape[1:])
    return checks.batch(images, input_of(steps[0][0], [steps[0][1]]).shape[1:])


def between(start, end, value):
    """Returns what a model has at the symbolic tensor `end`, for a value at `start`.

    Without a `keras.Model` of that part, which would leave traces in its layers.
    """
    if end is start:
        return value
    node, operation = call_of(end), call_of(end).operation
    if not node.input_tensors:
        raise ValueError("Looking inside needs blocks one behind the other. Received: a path beside them")
    given = {id(tensor): between(start, tensor, value) for tensor in node.input_tensors}
    arguments, settings = node.arguments.fill_in(given)
    if takes_training(operation):
        settings["training"] = False
    return keras.tree.flatten(operation(*arguments, **settings))[place_of(end)]


def scores(model, images):
    """Returns the attention scores of all blocks: float32 array, `(layers, batch, heads, tokens, tokens)`."""
    found = blocks(model)
    tokens = run(model, [block.input for block in found], images)
    each = [block(x, return_attention_scores=True, training=False)[1] for block, x in zip(found, tokens)]
    return np.stack([ops.convert_to_numpy(one) for one in each])


def in_parts(function, model, images, *more, axis=0):
    """Returns a function's arrays of a few images at a time, joined: attention of all at once would fill the memory.

    Args:
        function: From `(vit, images, *more)` to an array: the model's ViT, and the images that it is given.
        model: The model, or one with a ViT nested in it.
        images: Array, `(batch, height, width, channels)`, 0..255; checked here.
        more: Arrays with an entry for each image.
        axis: Of the images in what the function returns.
    """
    images, steps, inner = checked(model, images), entrances(model), backbone(model)

    def enter(images):
        for graph, tensor in steps:
            (images,) = run(graph, [tensor], images)
        return images

    scores = sum(block.num_heads * block.input.shape[1] ** 2 for block in blocks(model))  # of an image
    size = min(max(SCORES // scores, 1), 8)
    parts = [slice(i, i + size) for i in range(0, len(images), size)]
    return np.concatenate([function(inner, enter(images[p]), *(array[p] for array in more)) for p in parts], axis)


def reading(model, images):
    """Returns how much the answer is read from each token: float32 array, `(batch, tokens)`; each row sums to one.

    By the pool's own rule: a token, the mean of the patches, or the mean of the attention pooling's heads. The mean of
    two pools where a model is distilled; that of the patches where another layer pools.
    """
    prefix, tokens, batch = num_prefix(model), blocks(model)[-1].output.shape[1], len(images)
    pools = [layer for layer in model.layers if isinstance(layer, TokenPool)]
    rows = [_weights(model, pool, images, tokens) for pool in pools] or [_even(batch, tokens, prefix)]
    return np.mean(rows, axis=0).astype("float32")


def _even(batch, tokens, prefix):
    return np.tile((np.arange(tokens) >= prefix) / (tokens - prefix), (batch, 1))


def _weights(model, pool, images, tokens):
    single = {"token": 0, "first": pool.num_prefix, "last": tokens - 1}.get(pool.pooling)
    if single is not None:
        return np.tile(np.arange(tokens) == single, (len(images), 1)).astype("float32")
    if pool.pooling != "map":
        return _even(len(images), tokens, pool.num_prefix)
    (tokens,) = run(model, [pool.input], images)
    patches = tokens[:, pool.num_prefix :]
    probe = ops.broadcast_to(ops.cast(pool.probe, patches.dtype), (len(images), 1, patches.shape[-1]))
    _, attended = pool.attention(probe, patches, return_attention_scores=True)  # (batch, heads, 1, patches)
    row = ops.convert_to_numpy(ops.cast(attended, "float32")).mean(axis=(1, 2))
    return np.pad(row / row.sum(-1, keepdims=True), ((0, 0), (pool.num_prefix, 0)))  # bfloat16 rounds
