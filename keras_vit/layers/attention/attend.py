"""Attention of queries to keys and values: the backend's kernel, a kernel with a custom gradient, and masks."""

import keras
from keras import ops

from keras_vit.layers.attention import padding
from keras_vit.layers.own_gradient import own_gradient

MASKED = -0.7 * 3.4e38  # a logit; Keras's value: adding two does not overflow


def attend(query, key, value, scale):
    """Computes softmax attention, faster than the plain formula on backends without a fused kernel.

    It differs from automatic differentiation of the formula in three ways. The division by the sum of the softmax comes
    after the product with the values. The gradient of the softmax is computed from the output, as in FlashAttention
    (Dao et al. 2022, arXiv:2205.14135, appendix B.2). Query, key and value are transposed so that each of the six
    matrix products reads contiguous rows. The softmax is computed in float32 under any precision policy.

    Args:
        query: Tensor, `(batch, tokens, heads, head_dim)`.
        key: Tensor like `query`.
        value: Tensor like `query`.
        scale: Factor of the attention logits, a number.

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
    """Computes attention for scaled queries, by the backend's fused kernel if it has one.

    TensorFlow has none. There, the products are written in the form that export runtimes can fuse.

    JAX's kernel for GPUs cannot train with an odd number of tokens, such as 196 patches and a class token: they are
    padded. Where padding does not help, the plain formula is chosen here, since under gradient checkpointing the
    kernel's error comes too late for Keras to fall back.

    Args:
        query: Tensor, `(batch, tokens, heads, head_dim)`, already multiplied by the scale.
        key: Tensor, `(batch, other tokens, heads, head_dim)`.
        value: Tensor like `key`.
        bias: Tensor that is added to the logits; broadcasts to `(batch, heads, tokens, other tokens)`. Or `None`.
        mask: Boolean tensor that broadcasts to `(batch, heads, tokens, other tokens)`; or `None`.
        training: Whether gradients will be computed.

    Returns:
        Tensor like `query`.
    """
    if keras.backend.backend() == "tensorflow":
        return weighted(attention_scores(query, key, bias, mask), value)
    if training and padding.helps(query, key):
        return padding.padded_attention(_kernel, query, key, value, bias, mask)
    refused = keras.backend.backend() == "jax" and training and padding.is_odd(query, key)
    return _kernel(query, key, value, bias, mask, refused)


def _kernel(query, key, value, bias=None, mask=None, refused=False):
    off = refused or keras.config.is_flash_attention_enabled() is False
    flash = False if off else None  # `None`: the backend decides
    return ops.dot_product_attention(query, key, value, bias=bias, mask=mask, scale=1.0, flash_attention=flash)


def attention_scores(query, key, bias=None, mask=None):
    """Computes attention scores, float32 `(batch, heads, tokens, other tokens)`; arguments as in `fused_attention`."""
    logits = ops.cast(ops.matmul(_rows(query), _columns(key)), "float32")
    logits = logits if bias is None else logits + ops.cast(bias, "float32")
    return ops.softmax(logits if mask is None else ops.where(mask, logits, MASKED), axis=-1)


def weighted(scores, value):
    """Sums values, `(batch, other tokens, heads, head_dim)`, by scores, `(batch, heads, tokens, other tokens)`.

    Returns:
        Tensor, `(batch, tokens, heads, head_dim)`, of the dtype of the values.
    """
    return _rows(ops.matmul(ops.cast(scores, value.dtype), _rows(value)))


def check_mask(attention_mask):
    """Raises ValueError for a mask of floats, such as a second tensor of tokens, or a mask that is not of rank 3 or 4.

    A symbolic mask is checked too, so that the error comes when the model is built.

    Args:
        attention_mask: Tensor; boolean or integer `(batch, tokens, tokens)` or `(batch, heads or 1, tokens, tokens)`.
    """
    dtype, shape = keras.backend.standardize_dtype(attention_mask.dtype), tuple(attention_mask.shape)
    if "float" in dtype or len(shape) not in (3, 4):  # (batch, tokens) would broadcast in silence
        raise ValueError(
            "`attention_mask` must be boolean, (batch, tokens, tokens) or (batch, heads or 1, tokens, tokens). "
            f"Received: shape {shape}, {dtype}. If these are tokens: self-attention takes one tensor, "
            "`MultiHeadSelfAttention(num_heads)(x)`, and `CrossAttention(num_heads)(x, context)` two"
        )


def joined_mask(attention_mask, use_causal_mask, rows, columns):
    """Combines an attention mask and a causal mask.

    Args:
        attention_mask: Boolean tensor, `(batch, rows, columns)` or `(batch, heads or 1, rows, columns)`; or `None`.
        use_causal_mask: Whether a row sees only the columns up to its own index.
        rows: Number of queries.
        columns: Number of keys.

    Returns:
        Boolean tensor that broadcasts to `(batch, heads, rows, columns)`; `None` without any mask.

    Raises:
        ValueError: For a mask that `check_mask` refuses.
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
