"""What a model attends to."""

import keras
import numpy as np

from keras_vit.explain import inside, reading, word_maps
from keras_vit.models import anatomy
from keras_vit.utils import checks

FUSIONS = {"mean": np.mean, "max": np.max, "min": np.min}


def attention_maps(model: keras.Model, images) -> np.ndarray:
    """Returns the attention scores of every block and head.

    Args:
        model: A functional Keras model with `TransformerBlock`s, such as one from `keras_vit.vit`, or a model in which
            such a model is nested. Layers before a nested ViT, such as resizing, are applied to the images first. Or a
            model of texts: a `text_tower`, or a language model from `text_decoder`.
        images: Array, `(batch, height, width, channels)`, 0..255. Of texts their ids, integers `(batch, words)`.

    Returns:
        float32 array, `(layers, batch, heads, tokens, tokens)`; each row sums to one. Words that a text's words do not
        attend to, later ones and padding, have 0.

    Raises:
        ValueError: If the model has no `TransformerBlock`, or the images do not fit it.
    """
    if word_maps.reads_words(model):
        return word_maps.attention_of_texts(model, images)
    reading.warn_mixing(model)
    return inside.in_parts(inside.scores, model, images, axis=1)


def attention_rollout(model: keras.Model, images, fusion: str = "mean", discard: float = 0.0) -> np.ndarray:
    """Computes attention rollout: how much attention reads each patch, through all blocks, for whatever prediction.

    Abnar and Zuidema 2020 (arXiv:2005.00928), section 3. The heads are fused, the residual path replaces half of each
    row, and the matrices of all blocks are multiplied. The result is read where the model pools: at the class token
    (both tokens of a distilled model), or as the mean over the patches, weighted by attention pooling if there is one.
    In a factorised encoder of clips, tokens attend to those of their time step only. The product is then the rollout of
    the temporal encoder at a step, times that of the spatial one in it: our composition.

    Args:
        model: As in `attention_maps`.
        images: As in `attention_maps`.
        fusion: `"mean"` of the heads, as in the paper, `"max"` or `"min"`; rows are normalized to sum to one again.
        discard: Share of each block's fused scores, the smallest, that is set to zero; from 0 to below 1.

    Returns:
        float32 array, `(batch, rows, columns)`, 0 to 1, without the prefix tokens; of clips `(batch, steps, rows,
        columns)`.

    Raises:
        ValueError: As `attention_maps`, and for an unknown `fusion` or a `discard` outside [0, 1).
    """
    checks.one_of("fusion", fusion, FUSIONS)
    checks.rate(discard=discard)
    reading.refuse_mixing(model)
    ends = reading.ends_of(model)

    def flow(scores):
        fused = FUSIONS[fusion](scores, axis=1)  # (batch, tokens, tokens)
        if discard:
            least = np.quantile(fused.reshape(len(fused), -1), discard, axis=1, method="lower")
            fused = np.where(fused < least[:, None, None], 0, fused)
        both = fused / np.maximum(fused.sum(-1, keepdims=True), 1e-12) + np.eye(fused.shape[-1], dtype="float32")
        return both / both.sum(-1, keepdims=True)

    def rollout(model, images):
        flows = inside.flows(model, map(flow, inside.each_scores(model, images)))
        return reading.read_patches(model, images, *flows, ends=ends)

    return inside.in_parts(rollout, model, images).reshape(-1, *anatomy.grid(model, factorised=True))


def attention_from(model: keras.Model, images, patch: tuple[int, int] | None = None) -> np.ndarray:
    """Returns the attention of one patch to all patches, in every block and head.

    Args:
        model: As in `attention_maps`.
        images: As in `attention_maps`.
        patch: `(row, column)` of the patch, from 0; of clips `(step, row, column)`. `None` for the token or tokens that
            the model pools, as in `attention_rollout`: the class token, the mean of the patches, or the patches as
            attention pooling weights them.

    Returns:
        float32 array, `(layers, batch, heads, rows, columns)`, without the prefix tokens: a map sums to at most one.
        Of clips the steps come before the rows.

    Raises:
        ValueError: As `attention_maps`, and for a patch outside the grid.
    """
    reading.warn_mixing(model)
    ends = None if patch is not None else reading.ends_of(model)
    prefix, grid = anatomy.num_prefix(model), anatomy.grid(model)
    if patch is not None and patch not in np.ndindex(*grid):
        kind = "(row, column)" if len(grid) == 2 else "(step, row, column)"
        raise ValueError(
            f"`patch` must be {kind} on a grid of {' x '.join(map(str, grid))}, from 0. Received: {checks.shown(patch)}"
        )

    def attended(model, images):
        maps = inside.scores(model, images)[..., prefix:]  # (layers, batch, heads, tokens, patches)
        if patch is not None:
            return maps[:, :, :, prefix + np.ravel_multi_index(patch, grid)]
        return np.einsum("lbhts,bt->lbhs", maps, reading.reading(model, images, ends))

    maps = inside.in_parts(attended, model, images, axis=1)
    return maps.reshape(*maps.shape[:3], *grid)


def attention_distance(model: keras.Model, images) -> np.ndarray:
    """Computes the mean attention distance of each head: between a patch and the patches that it attends to.

    Dosovitskiy et al. 2021 (arXiv:2010.11929), figure 7 right, and appendix D.7. It is similar to a receptive field:
    near 0 for a head that attends to its own patch, about half the image's side for a head that attends everywhere.

    Args:
        model: As in `attention_maps`.
        images: As in `attention_maps`.

    Returns:
        float32 array, `(layers, heads)`: the mean over all images and patches, in pixels of the ViT's input. Attention
        to prefix tokens has no distance and is left out.

    Raises:
        ValueError: As `attention_maps`.
    """
    reading.warn_mixing(model)
    prefix, size = anatomy.num_prefix(model), anatomy.grid(model)
    if len(size) > 2:
        raise ValueError(f"Distances are in pixels of images. Received: {model.name!r}, which takes clips")
    stride = [pixels / patches for pixels, patches in zip(anatomy.seen(model).shape[1:3], size)]
    places = np.stack(np.mgrid[: size[0], : size[1]], axis=-1).reshape(-1, 2) * stride  # (patches, 2)
    apart = np.linalg.norm(places[:, None] - places, axis=-1)  # (patches, patches)

    def distances(model, images):
        maps = inside.scores(model, images)[..., prefix:, prefix:]
        total = np.maximum(maps.sum(-1), 1e-12)
        return np.moveaxis((np.einsum("lbhts,ts->lbht", maps, apart) / total).mean(-1), 1, 0)

    return inside.in_parts(distances, model, images).mean(0).astype("float32")
