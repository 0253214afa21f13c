"""What a model attends to, as arrays. Derived from the layers: the trained graph carries none of it."""

import keras
import numpy as np
from keras import ops

from keras_vit import checks
from keras_vit.layers import PatchEncoder, Patches, TokenPool, TransformerBlock


def attention_maps(model, images):
    """Returns the attention scores of every block and head.

    Args:
        model: A functional Keras model with `TransformerBlock`s, such as one from `keras_vit.vit`.
        images: Array, `(batch, height, width, channels)`, 0..255.

    Returns:
        float32 array, `(layers, batch, heads, tokens, tokens)`; each row sums to one.

    Raises:
        ValueError: If the model has no `TransformerBlock`, or the images do not fit it.
    """
    blocks = [layer for layer in model.layers if isinstance(layer, TransformerBlock)]
    if not blocks:
        raise ValueError(f"Attention is read off `TransformerBlock` layers. Received: {model.name!r}, which has none")
    for block in blocks:
        node, *others = block._inbound_nodes
        if others or any(name != "training" for name in node.arguments.kwargs):
            raise ValueError(f"Attention is read off blocks called once, with tokens alone. Received: {block.name!r}")
    images = checks.pixels(images, model.input_shape[1:])
    inputs = keras.Model(model.inputs, [block.input for block in blocks])
    tokens = inputs(ops.cast(ops.convert_to_tensor(images), "float32"), training=False)
    scores = [block(x, return_attention_scores=True, training=False)[1] for block, x in zip(blocks, _list(tokens))]
    return np.stack([ops.convert_to_numpy(s) for s in scores])


def attention_rollout(model, images):
    """Returns how much each patch flows into the model's output, through all blocks.

    Abnar and Zuidema 2020 (arXiv:2005.00928), section 3: the mean of the heads, half of it replaced by
    the residual path, multiplied from block to block. Read at the token by which the model pools (both, where it is
    distilled), else as the mean over the patches.

    Args:
        model: As in `attention_maps`.
        images: As in `attention_maps`.

    Returns:
        float32 array, `(batch, grid_height, grid_width)`; what flows from prefix tokens is left out.
    """
    maps = attention_maps(model, images).mean(axis=2)  # (layers, batch, tokens, tokens)
    residual = np.eye(maps.shape[-1], dtype="float32")
    rollout = residual
    for scores in maps:
        rollout = (0.5 * scores + 0.5 * residual) @ rollout  # (batch, tokens, tokens)
    prefix = only(model, PatchEncoder).num_prefix
    pools = [layer for layer in model.layers if isinstance(layer, TokenPool)]
    rows = [{"token": 0, "first": pool.num_prefix, "last": -1}.get(pool.pooling) for pool in pools] or [None]
    read = np.mean([rollout[:, prefix:].mean(1) if row is None else rollout[:, row] for row in rows], axis=0)
    return read[:, prefix:].reshape(-1, *grid(model))  # (batch, grid_height, grid_width)


def grid(model):
    """Returns `(rows, columns)` of the patches."""
    patches = only(model, Patches)
    return patches.grid(patches.input.shape)


def only(model, kind):
    """Returns the model's one layer of a kind."""
    found = [layer for layer in model.layers if isinstance(layer, kind)]
    if len(found) != 1:
        raise ValueError(
            f"A model with one {kind.__name__} layer is needed. Received: {model.name!r}, with {len(found)}"
        )
    return found[0]


def _list(values):
    return values if isinstance(values, (list, tuple)) else [values]
