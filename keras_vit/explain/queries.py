"""What the queries of a model with masks attend to."""

import keras
import numpy as np
from keras import ops

from keras_vit.explain import inside
from keras_vit.layers import QueryMasks, TransformerBlock
from keras_vit.preparing import pixel_range


def has_queries(model):
    """Returns whether a model has a class and a mask for each query, as EoMT."""
    return any(isinstance(layer, QueryMasks) for layer in getattr(model, "layers", ()))


def attention_of_queries(model: keras.Model, images) -> np.ndarray:
    """Returns where each query looks: its attention to the patches in the last block, averaged over heads.

    Args:
        model: A model of `keras_vit.Segment` with `head="queries"`, or an EoMT (Kerssies et al. 2025,
            arXiv:2503.19108).
        images: Array, `(batch, height, width, channels)`, 0..255.

    Returns:
        float32 array, `(batch, queries, rows, columns)`, in the order of the model's queries. A map sums to at most
        one: queries attend to each other too.

    Raises:
        ValueError: If the model has no queries of masks, or the images do not fit it.
    """
    return _looked(model, images)[0]


def where_queries_look(model, images):
    """Returns where the queries of a model look together, `(batch, rows, columns)`.

    It is the mean of `attention_of_queries`, each weighted by the probability that the query is of anything.
    """
    maps, certain = _looked(model, images)
    return (maps * certain[..., None, None]).sum(1) / np.maximum(certain.sum(1), 1e-6)[..., None, None]


def _looked(model, images):
    """Returns the maps of all queries, `(batch, queries, rows, columns)`, and whether each is of anything, 0..1."""
    if not has_queries(model):
        raise ValueError(f"The model must have queries with a mask each, as EoMT. Received: {model.name!r}")
    head = next(layer for layer in model.layers if isinstance(layer, QueryMasks))
    block = [layer for layer in model.layers if isinstance(layer, TransformerBlock)][-1]
    images, tokens = pixel_range.checked(model, images, model.input_shape[1:]), block.input.shape[1]
    step = min(max(inside.SCORES // (block.num_heads * tokens**2), 1), 8)
    parts = [_of_few(model, head, block, images[i : i + step]) for i in range(0, len(images), step)]
    return tuple(map(np.concatenate, zip(*parts)))


def _of_few(model, head, block, images):
    rows, columns = head.grid
    tokens, outputs = inside.run(model, [block.input, head.output], images)
    scores = ops.convert_to_numpy(block(tokens, return_attention_scores=True, training=False)[1])
    scores = scores[:, :, : head.queries, -rows * columns :].mean(1)
    none = ops.convert_to_numpy(ops.softmax(outputs[..., : head.units + 1]))[..., -1]
    return scores.reshape(len(images), head.queries, rows, columns), 1 - none
