"""How tokens change from block to block."""

import keras
import numpy as np
from keras import ops

from keras_vit.explain import inside
from keras_vit.models import anatomy


def token_similarity(model: keras.Model, images) -> np.ndarray:
    """Computes the mean cosine similarity between the patches of an image, before and after each block.

    Near one, all patches have become the same (over-smoothing; Gong et al. 2021, arXiv:2104.12753).

    Args:
        model: As in `attention_maps`.
        images: Array, `(batch, height, width, channels)`, 0..255.

    Returns:
        float32 array, `(layers + 1, batch)`, -1 to 1: before the first block, then after each block.

    Raises:
        ValueError: As `attention_maps`, and for a model of a single patch.
    """
    anatomy.blocks(model)
    count = int(np.prod(anatomy.grid(model)))
    if count < 2:
        raise ValueError(f"The model must have at least two patches. Received: {model.name!r}, with a single one")
    prefix = anatomy.num_prefix(model)

    def similarity(model, images):
        patches = _states(model, images)[:, :, prefix:]  # (layers + 1, batch, patches, width)
        ends = patches / np.maximum(np.linalg.norm(patches, axis=-1, keepdims=True), 1e-12)
        # |sum of n unit vectors|^2 is the sum of all n^2 cosines, n of which are of a vector with itself.
        return ((ends.sum(2) ** 2).sum(-1) - count) / (count * (count - 1))

    return inside.in_parts(similarity, model, images, axis=1)


def token_norms(model: keras.Model, images) -> np.ndarray:
    """Computes the norm of each token, before and after each block.

    Large models have a few background patches with a very large norm: they store global information there (Darcet et
    al. 2024, arXiv:2309.16588, section 2). With registers they do not.

    Args:
        model: As in `attention_maps`.
        images: Array, `(batch, height, width, channels)`, 0..255.

    Returns:
        float32 array, `(layers + 1, batch, tokens)`, prefix tokens first.

    Raises:
        ValueError: As `attention_maps`.
    """
    return inside.in_parts(lambda *inputs: np.linalg.norm(_states(*inputs), axis=-1), model, images, axis=1)


def _states(model, images):
    """Returns the tokens before and after each block: float32 array, `(layers + 1, batch, tokens, width)`."""
    blocks = anatomy.blocks(model)
    states = inside.run(model, [blocks[0].input, *map(inside.after, blocks)], images)
    return np.stack([ops.convert_to_numpy(ops.cast(tokens, "float32")) for tokens in states])
