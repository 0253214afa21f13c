"""Attention of queries to keys and values: the backend's kernel, one with a gradient of its own, and their masks."""

import keras
from keras import ops

from keras_vit.layers.own_gradient import own_gradient

MASKED = -0.7 * 3.4e38  # a logit; Keras's value: adding two does not overflow


def attend(query, key, value, scale):
    """Computes softmax attention, faster than the plain formula on a backend without a fused kernel.

    Three things differ from what automatic differentiation makes of the formula. The division by the softmax's sum
    comes after the product with the values. The softmax's gradient is computed from the output, as in FlashAttention
    (Dao et al. 2022, arXiv:2205.14135, appendix B.2). Query, key and value are transposed so that each of the six
    matrix products reads contiguous rows. The softmax is in float32 under any precision.

    Args:
        query: Tensor, `(batch, tokens, heads, head_dim)`.
        key: Tensor like `query`.
        value: Tensor like `query`.
        scale: Factor of the logits of the softmax.

    Returns:
        Tensor, `(batch, tokens, heads, head_dim)`.
    """

    @own_gradient
    def attended(query, key, value):
        dtype = value.dtype
        query = query * scale
        scores = ops.cast(ops.matmul(_rows(key), _columns(query)), "float32")  # (batch, heads, keys, queries)
        weights = ops.exp(scores - ops.max(scores, axis=-2, keepdims=True))
        share = ops.cast(1 / ops.sum(weights, axis=-2, keepdims=True), dtype)  # (batch, heads, 1, queries)
        weights = ops.cast(weights, dtype)
        output = ops.matmul(_columns(value), weights) * share  # (batch, heads, head_dim, queries)

        def gradient(upstream):
            by_columns = _columns(upstream) * share
            by_rows = _rows(upstream) * ops.swapaxes(share, -1, -2)
            of_value = ops.matmul(weights, by_rows)  # (batch, heads, keys, head_dim)
            mean = ops.sum(ops.cast(by_columns, "float32") * ops.cast(output, "float32"), axis=-2, keepdims=True)
            of_weights = ops.cast(ops.matmul(_rows(value), by_columns), "float32")  # (batch, heads, keys, queries)
            of_scores = ops.cast(ops.cast(weights, "float32") * (of_weights - mean), dtype)
            of_query = ops.matmul(_columns(key), of_scores) * scale  # (batch, heads, head_dim, queries)
            of_key = ops.matmul(of_scores, _rows(query))  # (batch, heads, keys, head_dim)
            return _tokens(of_query), _rows(of_key), _rows(of_value)

        return _tokens(output), gradient

    return attended(query, key, value)


def fused_attention(query, key, value, bias=None, mask=None, training=False):
    """Computes attention with logits that are scaled already, by the backend's fused kernel if it has one.

    TensorFlow has none. Its products are written over heads and tokens, as the runtimes of exports fuse them.

    JAX's kernel for GPUs does not train on an odd number of tokens, such as 196 patches and a class token. It says so
    too late for Keras to take another under gradient checkpointing: then the plain formula is chosen here.

    Args:
        query: Tensor, `(batch, tokens, heads, head_dim)`.
        key: Tensor, `(batch, other tokens, heads, head_dim)`.
        value: Tensor like `key`.
        bias: What is added to the logits, or `None`; broadcasts to `(batch, heads, tokens, other tokens)`.
        mask: Booleans of that shape, or `None`.
        training: Whether a gradient will be taken.

    Returns:
        Tensor like `query`.
    """
    if keras.backend.backend() == "tensorflow":
        return weighted(attention_scores(query, key, bias, mask), value)
    odd = any(count is None or count % 2 for count in (query.shape[1], key.shape[1]))
    refused = keras.backend.backend() == "jax" and training and odd
    off = refused or keras.config.is_flash_attention_enabled() is False
    flash = False if off else None  # `None`: if the backend can
    return ops.dot_product_attention(query, key, value, bias=bias, mask=mask, scale=1.0, flash_attention=flash)


def attention_scores(query, key, bias=None, mask=None):
    """Computes the softmax of logits that are scaled already, float32, `(batch, heads, tokens, other tokens)`."""
    logits = ops.cast(ops.matmul(_rows(query), _columns(key)), "float32")
    logits = logits if bias is None else logits + ops.cast(bias, "float32")
    return ops.softmax(logits if mask is None else ops.where(mask, logits, MASKED), axis=-1)


def weighted(scores, value):
    """Computes the sum of values by their scores, `(batch, tokens, heads, head_dim)`, in the values' precision."""
    return _rows(ops.matmul(ops.cast(scores, value.dtype), _rows(value)))


def check_mask(attention_mask):
    """Raises ValueError for a mask of floats, such as a second tensor of tokens or terms of the logits, or of rank 2.

    Also for a symbolic one, so that a model with it is refused when it is put together.
    """
    dtype, shape = keras.backend.standardize_dtype(attention_mask.dtype), tuple(attention_mask.shape)
    if "float" in dtype or len(shape) not in (3, 4):  # (batch, tokens) would broadcast in silence
        raise ValueError(
            "`attention_mask` must be boolean, (batch, tokens, tokens) or (batch, heads or 1, tokens, tokens). "
            f"Received: shape {shape}, {dtype}. If these are tokens: self-attention takes one tensor, "
            "`MultiHeadSelfAttention(num_heads)(x)`, and `CrossAttention(num_heads)(x, context)` two"
        )


def joined_mask(attention_mask, use_causal_mask, rows, columns):
    """Joins both masks into one that broadcasts to (batch, heads, rows, columns); `None` without any.

    Raises:
        ValueError: As `check_mask`.
    """
    mask = None
    if attention_mask is not None:
        check_mask(attention_mask)
        mask = ops.cast(attention_mask, "bool")
        mask = ops.expand_dims(mask, 1) if len(mask.shape) == 3 else mask
    if use_causal_mask:
        causal = ops.tril(ops.ones((1, 1, rows, columns), dtype="bool"))
        mask = causal if mask is None else ops.logical_and(mask, causal)
    return mask


def _rows(x):
    return ops.transpose(x, (0, 2, 1, 3))  # (batch, heads, tokens, head_dim), or back


def _columns(x):
    return ops.transpose(x, (0, 2, 3, 1))  # (batch, heads, head_dim, tokens)


def _tokens(columns):
    return ops.transpose(columns, (0, 3, 1, 2))  # (batch, tokens, heads, head_dim)
