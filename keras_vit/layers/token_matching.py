"""Which tokens are alike: the matching of token merging.

Comparisons and matrix products only: no operator sorts or gathers, which accelerators of phones refuse.
"""

import numpy as np
from keras import ops


def targets(keys, merged, num_prefix):
    """Matches similar tokens, and returns the place of each token after merging.

    Bolya et al. 2023 (arXiv:2210.09461), section 3 and appendix D. Every second token, from the first, proposes to the
    token among the others whose key has the largest cosine similarity; the `merged` best proposals are accepted. Prefix
    tokens neither propose nor receive. After them come the remaining tokens of the first kind, then those of the other.

    Args:
        keys: Tensor, `(batch, tokens, width)`.
        merged: Number of tokens to merge, from 1 to half of the tokens that are no prefix.
        num_prefix: Number of prefix tokens.

    Returns:
        Integer tensor, `(batch, tokens)`, from 0 to `tokens - merged - 1`.
    """
    tokens, prefix = keys.shape[1], np.arange(num_prefix)
    first, second = (tokens + 1) // 2, tokens // 2
    kept = first - merged
    keys = ops.cast(keys, "float32")
    keys = keys / ops.sqrt(ops.sum(ops.square(keys), axis=-1, keepdims=True) + 1e-12)
    alike = ops.matmul(keys[:, ::2], ops.swapaxes(keys[:, 1::2], 1, 2))  # (batch, first, second)
    closed = np.zeros((first, second), "float32")
    closed[prefix[::2] // 2], closed[:, prefix[1::2] // 2] = -4, -4  # below any cosine
    alike = alike + closed
    best = ops.max(alike, axis=-1)  # (batch, first)
    less = ops.cast(alike < best[:, :, None], "float32")
    chosen = ops.min(less * second + np.arange(second, dtype="float32"), axis=-1)  # Keras's argmax works on bits

    earlier = np.tri(first, k=-1, dtype="float32")  # of equal proposals the earlier is better
    ahead = ops.cast(best[:, None, :] > best[:, :, None], "float32")
    ahead = ahead + ops.cast(best[:, None, :] == best[:, :, None], "float32") * earlier
    rank = ops.sum(ahead, axis=-1)  # (batch, first), from 0
    accepted = ops.cast(rank < merged, "float32")
    # Without a prefix token the published code leaves the tokens in the order of their proposals.
    place = ops.matmul(1 - accepted, earlier.T) if num_prefix else rank - merged
    odd = len(prefix[1::2])
    place = place + ops.minimum(place, odd)  # prefix tokens of both kinds first
    of_second = np.concatenate([prefix[1::2], np.arange(kept + odd, tokens - merged), [0] * (first - second)])
    place = accepted * (kept + chosen) + (1 - accepted) * place
    both = ops.stack([place, ops.zeros_like(place) + of_second.astype("float32")], axis=-1)  # (batch, first, 2)
    return indices(ops.reshape(both, (-1, 2 * first))[:, :tokens])


def indices(x):
    """Returns the integers nearest to positive floats, which some runtimes compute a little below."""
    return ops.cast(x + 0.5, "int32")


def sizes_of(sources, tokens):
    """Returns the number of patches (or prefix tokens) in each token, float32 `(batch, tokens)`."""
    return ops.sum(ops.one_hot(sources, tokens, dtype="float32"), axis=1)


def whole(x, sources):
    """Returns the values of the token that each patch is in: `(batch, prefix + patches, width)`."""
    return ops.matmul(ops.one_hot(sources, x.shape[1], dtype=x.dtype), x)
