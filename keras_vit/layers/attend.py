"""Soft-max attention with its gradient written out."""

from keras import ops


def attend(query, key, value, scale):
    """Attends, for training, and for narrow heads, where the backend has no fused kernel.

    Against what automatic differentiation makes of the formula, it divides by the sum after the values are gathered,
    takes the soft-max' gradient from the output, as FlashAttention does (Dao et al. 2022, arXiv:2205.14135, appendix
    B.2), and lays query, key and value so that each of the six matrix products reads rows as they lie. The soft-max
    is in float32 under any precision.

    Args:
        query, key, value: Tensors, `(batch, tokens, heads, head_dim)`.
        scale: Factor of the scores.

    Returns:
        Tensor, `(batch, tokens, heads, head_dim)`.
    """

    @ops.custom_gradient
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


def _rows(x):
    return ops.transpose(x, (0, 2, 1, 3))  # (batch, heads, tokens, head_dim), or back


def _columns(x):
    return ops.transpose(x, (0, 2, 3, 1))  # (batch, heads, head_dim, tokens)


def _tokens(columns):
    return ops.transpose(columns, (0, 3, 1, 2))  # (batch, tokens, heads, head_dim)
