"""The text decoder as a functional Keras model."""

from typing import Literal

import keras

from keras_vit.layers import DecoderBlock, Words
from keras_vit.layers.blocks.gelu import BY_NAME
from keras_vit.layers.blocks.norms import norm
from keras_vit.layers.functional import Model
from keras_vit.models import options
from keras_vit.models.variants import MAX_BLOCKS
from keras_vit.utils import checks
from keras_vit.utils.typed import Positive, Switch, Whole, typed


@typed
@options.explained
def text_decoder(
    *,
    vocabulary: Positive,
    length: Positive,
    width: Positive,
    depth: Positive,
    num_heads: Positive,
    mlp_dim: int | None = None,
    context_width: int | None = None,
    project_context: Switch = False,
    mask_context: Switch = False,
    norm_order: str = "pre",
    gelu: str = "tanh",
    epsilon: float = 1e-5,
    positions: str = "learned",
    pad: int | None = None,
    masked_id: Whole | None = None,
    scale_words: bool = False,
    norm_words: Switch = False,
    final_norm: Literal[True, False] | None = None,
    transform: Switch = False,
    tied: Switch = True,
    logit_bias: bool = False,
    dropout: float = 0.0,
    metadata: dict | None = None,
    name: str = "text",
    dtype: str | keras.DTypePolicy | None = None,
) -> keras.Model:
    """Builds the Transformer that writes texts: ids of words in, logits of each next word out.

    Vaswani et al. 2017 (arXiv:1706.03762), section 3.1. A word attends to itself and the words before it, and to all
    tokens of a context, such as an image's. Without a context this is a language model. The defaults are GPT-2's;
    TrOCR and BLIP have `norm_order="post"`. The layers are called `texts, words, [norm_pre], [context,
    project_context], block_0, block_1, ..., [norm], [transform, norm_transform], [head]`. Their names and weight paths
    are public.

    Args:
        vocabulary: Number of ids.
        length: Words of the longest text, which is the number of positions.
        width: Channels of a token.
        depth: Number of blocks.
        num_heads: Number of attention heads, a divisor of the width.
        mlp_dim: Hidden channels of each MLP; four times the width if `None`. Defaults to `None`.
        context_width: Channels of the context's tokens; `None` for a language model. Defaults to `None`.
        project_context: Whether a dense layer first brings the context to the width. Defaults to `False`.
        mask_context: Whether there is an input `context_mask`, `False` for tokens of the context that no word attends
            to, such as padding. Defaults to `False`.
        norm_order: `"pre"` or `"post"`; see `DecoderBlock`. Defaults to `"pre"`.
        gelu: `"tanh"`, `"exact"`, `"quick"` or `"relu"`; see `MLP`. Defaults to `"tanh"`.
        epsilon: Added to the variance in every normalization. Defaults to `1e-5`.
        positions: `"learned"` or `"sinusoidal"`; see `Words`. Defaults to `"learned"`.
        pad: For sinusoidal positions, the id that has none; see `Words`. Defaults to `None`.
        masked_id: An id that no word attends to, such as BLIP's padding. Only the
            logits after it differ. Defaults to `None`.
        scale_words: Whether rows of the table of words are multiplied by the square root of the width. Defaults to
            `False`.
        norm_words: Whether to normalize tokens before the first block. Defaults to `False`.
        final_norm: Whether to normalize tokens after the last block; `None` for yes with `norm_order="pre"`. Defaults
            to `None`.
        transform: Whether a dense layer, an activation and a normalization come before the logits, as in BERT.
            Defaults to `False`.
        tied: Whether the matrix of the logits is the table of words; else a dense layer `head`. Defaults to `True`.
        logit_bias: Whether the logits have a bias. Defaults to `False`.
        dropout: Dropout rate after attention projections and the dense layers of MLPs. Defaults to `0.0`.
        metadata: Dictionary of plain values that is saved with the model; see `Words`. Defaults to `None`.
        name: Name of the model. Defaults to `"text"`.
        dtype: Precision policy of every layer, such as `"mixed_bfloat16"`; `None` for Keras's global policy. Ids are
            int32 and logits float32 under any. Defaults to `None`.

    Returns:
        A functional `keras.Model` from `{"texts": (batch, words), "context": (batch, tokens, context_width)}` to
        logits, `(batch, words, vocabulary)`. Texts are int32, of at most `length` words; a `context_mask` is boolean,
        `(batch, tokens)`, and at least one token of each context is `True`. Without a context its input is the texts
        alone.

    Raises:
        ValueError: For an argument outside the above.

    Example:

    >>> text_decoder(vocabulary=100, length=12, width=64, depth=2, num_heads=4).output_shape
    (None, None, 100)
    """
    if context_width is not None:
        checks.positive(context_width=context_width)
    elif project_context or mask_context:
        option = "project_context" if project_context else "mask_context"
        raise ValueError(f"{option}=True needs `context_width`. Received: context_width=None")
    if depth > MAX_BLOCKS:
        raise ValueError(f"A model must have at most {MAX_BLOCKS} blocks. Received: depth={depth}")
    if width % num_heads:
        raise ValueError(f"A width of {width} cannot be split into {num_heads} heads: it must divide evenly.")
    dtype = keras.dtype_policies.get(dtype)
    norms = {"rms_norm": False, "epsilon": epsilon, "dtype": dtype}
    block = {"norm_order": norm_order, "gelu": gelu, "epsilon": epsilon, "dropout": dropout, "dtype": dtype}
    table = {"positions": positions, "pad": pad, "scaled": scale_words, "logit_bias": logit_bias and tied}
    words = Words(vocabulary, width, length, **table, metadata=metadata, name="words", dtype=dtype)

    inputs = ids = keras.Input((None,), dtype="int32", name="texts")
    x, context, masks = words(ids), (), {}  # (batch, words, width)
    if masked_id is not None:
        masks["attention_mask"] = keras.ops.expand_dims(ids != masked_id, (1, 2))
    x = norm("norm_pre", **norms)(x) if norm_words else x
    if context_width is not None:
        inputs = {"texts": ids, "context": keras.Input((None, context_width), name="context")}
        context = (inputs["context"],)
    if mask_context:
        inputs["context_mask"] = keras.Input((None,), dtype="bool", name="context_mask")
        masks["context_mask"] = keras.ops.expand_dims(inputs["context_mask"], (1, 2))
    if project_context:
        context = (keras.layers.Dense(width, name="project_context", dtype=dtype)(*context),)
    for i in range(depth):
        layer = DecoderBlock(num_heads, 4 * width if mlp_dim is None else mlp_dim, name=f"block_{i}", **block)
        x = layer(x, *context, **masks, use_causal_mask=True)
    if norm_order == "pre" if final_norm is None else final_norm:
        x = norm("norm", **norms)(x)
    if transform:
        x = keras.layers.Dense(width, activation=BY_NAME[gelu], name="transform", dtype=dtype)(x)
        x = norm("norm_transform", **norms)(x)
    if tied:
        x = words(x, to_logits=True)  # (batch, words, vocabulary)
    else:
        x = keras.layers.Dense(vocabulary, use_bias=logit_bias, name="head", dtype="float32")(x)
    return Model(inputs, x, name=name)
