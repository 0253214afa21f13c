"""Token merging: a trained model that computes fewer tokens from block to block."""

from collections.abc import Sequence

import keras

from keras_vit.layers import MergingBlock, Positions, Unmerge
from keras_vit.models import anatomy
from keras_vit.models.backbone import backbone, fill, has_lora
from keras_vit.utils import checks
from keras_vit.utils.keras_private import sublayers


def merge_tokens(model: keras.Model, r: int | Sequence[int]) -> keras.Model:
    """Returns a copy of a model that merges similar tokens in each block, which makes it faster without training.

    Token merging, Bolya et al. 2023 (arXiv:2210.09461). The weights are the same. Class, distillation and register
    tokens are never merged. What reads tokens after the blocks, such as pooling or a segmentation head, gets each
    patch's token: as many as before. Attention maps are of the patches, too.

    Args:
        model: A model from `keras_vit.vit`, or one with such a model nested in it; it is not changed.
        r: Number of tokens that each block merges, or a list with one number for each block, 0 for those after its end.
            A block merges at most half of the patches' tokens that it receives.

    Returns:
        A `keras.Model` with `MergingBlock`s, which is saved, exported and trained like any other.

    Raises:
        ValueError: For an `r` that is no such number; a model without a `PatchEncoder` or `TransformerBlock`s, or whose
            blocks take more than tokens, such as a mask; or one with positions in attention (`rotary`, or
            `position="relative"`) or before each block (`block_positions`), windows, LoRA, or merging already.

    Example:

    >>> fast = merge_tokens(keras_vit.vit("B/16"), 13)
    """
    inner = backbone(model)
    blocks, num_prefix = anatomy.blocks(model), anatomy.num_prefix(model)
    schedule = _schedule(r, len(blocks))
    if any(isinstance(block, MergingBlock) for block in blocks):
        raise ValueError(f"The model must be one without merging. Received: {model.name!r}, which merges tokens")
    if has_lora(model):
        raise ValueError(f"{model.name!r} has LoRA. Call `merge_lora` first.")
    if any(isinstance(layer, Positions) for layer in inner.layers):
        raise ValueError(f"Merged tokens have no position. Received: {model.name!r}, with block_positions=True")
    if any(block.windows for block in blocks):
        raise ValueError(f"Merged tokens leave their window. Received: {model.name!r}, with windows")
    counts = {block.name: count for block, count in zip(blocks, schedule)}
    plain = keras.Model(inner.inputs, inner.outputs, name=inner.name) if isinstance(inner, keras.Sequential) else inner
    merged = _merged(plain, counts, num_prefix)

    def rebuilt(layer):
        if layer is inner:
            return merged
        if isinstance(layer, keras.Model) and inner in sublayers(layer):
            return keras.models.clone_model(layer, clone_function=rebuilt)
        return layer.from_config(layer.get_config())

    return fill(rebuilt(model), model.get_weights())


def _schedule(r, depth):
    rows = list(r) if isinstance(r, Sequence) and not isinstance(r, (str, bytes)) else [r] * depth
    if len(rows) > depth or any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in rows):
        raise ValueError(
            f"`r` must be a number of tokens from 0, or a list of at most {depth} of them. "
            f"Received: r={checks.shown(r)}"
        )
    return rows + [0] * (depth - len(rows))


def _merged(inner, counts, num_prefix):
    """Returns a copy of a ViT without its weights, whose blocks merge tokens."""
    tokens_of = {}  # from the id of all patches' tokens after a block to these, and to (tokens, sources)

    def clone(layer):
        if layer.name not in counts:
            return layer.from_config(layer.get_config())
        return MergingBlock(**{**layer.get_config(), "merged": counts[layer.name], "num_prefix": num_prefix})

    def call(layer, *args, **kwargs):
        if not isinstance(layer, MergingBlock):
            return layer(*args, **kwargs)
        _, inputs = tokens_of.get(id(args[0]), (None, args))
        x, sources = layer(*inputs, **kwargs)
        every = Unmerge(name=f"{layer.name}_unmerge", dtype=layer.dtype_policy)(x, sources)
        tokens_of[id(every)] = every, (x, sources)
        return every

    return keras.models.clone_model(inner, clone_function=clone, call_function=call)
