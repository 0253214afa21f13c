"""The text tower as a functional Keras model."""

import keras

from keras_vit.layers import EndPool, PaddingMask, TokenPool, TransformerBlock, Words
from keras_vit.layers.blocks.norms import norm
from keras_vit.layers.functional import Model
from keras_vit.models import options
from keras_vit.models.variants import MAX_BLOCKS
from keras_vit.utils import checks
from keras_vit.utils.typed import Positive, Rate, Switch, Whole, among, typed

POOLINGS = ("end", "largest", "last", "first", "none")


@typed
@options.explained
def text_tower(
    *,
    vocabulary: Positive,
    length: Positive,
    width: Positive,
    depth: Positive,
    num_heads: Positive,
    mlp_dim: int | None = None,
    causal: Switch = True,
    pooling: among(POOLINGS) = "end",
    end: int | None = None,
    projection: Positive | None = None,
    projection_bias: Switch = False,
    gelu: str = "tanh",
    epsilon: float = 1e-6,
    masked_id: Whole | None = None,
    dropout: Rate = 0.0,
    metadata: dict | None = None,
    name: str = "text",
    dtype: str | keras.DTypePolicy | None = None,
) -> keras.Model:
    """Builds the Transformer that reads texts for CLIP and SigLIP: ids of words in, one vector a text out.

    With `pooling="none"`, `causal=False` and `masked_id`, it is the encoder of Vaswani et al. 2017 (arXiv:1706.03762),
    section 3.1, with the normalization before each sublayer: `captioner` joins it with a decoder.

    Radford et al. 2021 (arXiv:2103.00020), section 2.4; Zhai et al. 2023 (arXiv:2303.15343). The layers are called
    `texts, words, [mask], block_0, block_1, ..., norm, [pool], [projection]`. Their names and weight paths are
    public.

    Args:
        vocabulary: Number of ids.
        length: Number of ids in every text, padded as its tokenizer does.
        width: Channels of a token.
        depth: Number of blocks.
        num_heads: Number of attention heads, a divisor of the width.
        mlp_dim: Hidden channels of each MLP; four times the width if `None`. Defaults to `None`.
        causal: Whether a word attends only to itself and the words before it, as in CLIP. In SigLIP every word attends
            to all, padding included. Defaults to `True`.
        pooling: Which token stands for the text: `"end"`, the first whose id is `end`; `"largest"`, that of the largest
            id, as in OpenAI's CLIP; `"last"`, as in SigLIP; `"first"`; or `"none"` to return all tokens. Defaults to
            `"end"`.
        end: The id that ends a text, for `pooling="end"`. Defaults to `None`.
        projection: Width of the vector, by a last matrix; `None` for the token itself. Defaults to `None`.
        projection_bias: Whether that matrix has a bias, as in SigLIP. Defaults to `False`.
        gelu: `"tanh"`, `"exact"` or `"quick"`; see `TransformerBlock`. Defaults to `"tanh"`.
        epsilon: Added to the variance in every normalization. Defaults to `1e-6`.
        masked_id: An id that no word attends to, such as that of padding; `None` for none. Defaults to `None`.
        dropout: Dropout rate after attention projections and in the MLPs. Defaults to `0.0`.
        metadata: Dictionary of plain values that is saved with the model; see `Words`. Defaults to `None`.
        name: Name of the model. Defaults to `"text"`.
        dtype: Precision policy of every layer, such as `"mixed_bfloat16"`; `None` for Keras's global policy. Ids are
            int32 and a projected vector is float32 under any. Defaults to `None`.

    Returns:
        A functional `keras.Model` from `(batch, length)` ids, int32, to `(batch, projection)` vectors, not
        normalized, or `(batch, width)` without a projection. With `pooling="none"` to `(batch, length, width)`.

    Raises:
        ValueError: For an argument outside the above.

    Example:

    >>> text_tower(vocabulary=100, length=12, width=64, depth=2, num_heads=4, end=1).output_shape
    (None, 64)
    """
    if depth > MAX_BLOCKS:
        raise ValueError(f"A model must have at most {MAX_BLOCKS} blocks. Received: depth={depth}")
    if pooling == "end" and end is None:
        raise ValueError("pooling='end' needs `end`, the id that ends a text. Received: end=None")
    if end is not None:
        checks.whole(end=end)
        if pooling != "end" or end >= vocabulary:
            raise ValueError(
                f"`end` must be an id of the vocabulary, for pooling='end'. Received: end={end}, "
                f"vocabulary={vocabulary}, pooling={pooling!r}"
            )
    if pooling == "none" and projection is not None:
        raise ValueError(
            f"pooling='none' returns all tokens: leave `projection` out. Received: projection={projection}"
        )
    if masked_id is not None and masked_id >= vocabulary:
        raise ValueError(f"`masked_id` must be below the vocabulary, {vocabulary}. Received: masked_id={masked_id}")
    dtype = keras.dtype_policies.get(dtype)
    block = {"mlp_dim": 4 * width if mlp_dim is None else mlp_dim, "gelu": gelu, "epsilon": epsilon}
    block |= {"dropout": dropout, "dtype": dtype}
    mask = {"use_causal_mask": True} if causal else {}

    ids = keras.Input((length,), dtype="int32", name="texts")
    x = Words(vocabulary, width, length, metadata=metadata, name="words", dtype=dtype)(ids)  # (batch, length, width)
    if masked_id is not None:
        mask["attention_mask"] = PaddingMask(masked_id, name="mask")(ids)  # (batch, 1, 1, length)
    for i in range(depth):
        x = TransformerBlock(num_heads, name=f"block_{i}", **block)(x, **mask)
    x = norm("norm", rms_norm=False, epsilon=epsilon, dtype=dtype)(x)
    if pooling in ("end", "largest"):
        x = EndPool(end, name="pool", dtype=dtype)([x, ids])  # (batch, width)
    elif pooling != "none":
        x = TokenPool(pooling, num_prefix=0, name="pool", dtype=dtype)(x)
    if projection is not None:
        x = keras.layers.Dense(projection, use_bias=projection_bias, name="projection", dtype="float32")(x)
    return Model(ids, x, name=name)
