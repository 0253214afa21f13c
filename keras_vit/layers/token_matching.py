"""Token merging: which tokens are alike, and their means. Bolya et al. 2023 (arXiv:2210.09461).

Comparisons and matrix products only: no operator sorts or gathers, which accelerators of phones refuse. Indices are
floats until they are used.
"""

import numpy as np
from keras import ops


def kinds(x, num_prefix):
    """Splits tokens, `(batch, tokens, ...)`, into the prefix, every second token from the first, and the others.

    The published code counts from the first prefix token, so it decides of which kind the first patch is.
    """
    odd = num_prefix % 2
    return x[:, :num_prefix], x[:, num_prefix + odd :: 2], x[:, num_prefix + 1 - odd :: 2]


def match(keys, merged, num_prefix):
    """Matches similar tokens, and returns where the tokens of the first kind are after merging.

    Section 3 and appendix D. Each token of the first kind proposes to the one of the second kind whose key has the
    largest cosine similarity; the `merged` best proposals are accepted. Prefix tokens stay. After them come
    the remaining tokens of the first kind, then those of the second.

    Args:
        keys: Tensor, `(batch, tokens, width)`.
        merged: Number of tokens to merge, from 1 to half of the tokens that are no prefix.
        num_prefix: Number of prefix tokens.

    Returns:
        float32 tensor, `(batch, tokens of the first kind)`: places after the prefix, from 0.
    """
    lengths = lambda x: ops.sqrt(ops.sum(ops.square(x), axis=-1, keepdims=True) + 1e-12)  # noqa: E731
    _, first, second = kinds(ops.cast(keys, "float32"), num_prefix)
    alike = ops.matmul(first / lengths(first), ops.swapaxes(second / lengths(second), 1, 2))  # (batch, first, second)
    best = ops.max(alike, axis=-1)  # (batch, first)
    less = ops.cast(alike < best[:, :, None], "float32")
    order = np.arange(second.shape[1], dtype="float32")
    chosen = ops.min(less * len(order) + order, axis=-1)  # as argmax, which Keras computes on bits

    earlier = np.tri(first.shape[1], k=-1, dtype="float32")  # of equal proposals the earlier is better
    better = ops.cast(best[:, None, :] > best[:, :, None], "float32")
    equal = ops.cast(best[:, None, :] == best[:, :, None], "float32")
    rank = ops.sum(better + equal * earlier, axis=-1)
    accepted = ops.cast(rank < merged, "float32")
    # Without a prefix the published code leaves the tokens in the order of their proposals.
    place = ops.matmul(1 - accepted, earlier.T) if num_prefix else rank - merged
    return accepted * (first.shape[1] - merged + chosen) + (1 - accepted) * place


def merge(x, sizes, place, merged, num_prefix):
    """Returns the tokens after merging: means over the patches that they hold.

    Args:
        x: Tensor of tokens, `(batch, tokens, width)`.
        sizes: Number of patches in each token, `(batch, tokens)`.
        place: From `match`.
        merged: As in `match`.
        num_prefix: As in `match`.
    """
    (prefix, first, second), (_, of_first, of_second) = kinds(x, num_prefix), kinds(sizes, num_prefix)
    kept = first.shape[1] - merged
    parts = ops.one_hot(indices(place), kept + second.shape[1], dtype="float32") * of_first[:, :, None]
    total = ops.sum(parts, axis=1) + ops.pad(of_second, ((0, 0), (kept, 0)))  # (batch, places)
    share = ops.cast(of_second / total[:, kept:], x.dtype)[:, :, None]
    means = ops.matmul(ops.cast(ops.swapaxes(parts / total[:, None, :], 1, 2), x.dtype), first)
    return ops.concatenate([prefix, means + ops.pad(second * share, ((0, 0), (kept, 0), (0, 0)))], axis=1)


def places(place, merged, tokens, num_prefix):
    """Returns where all tokens are after merging: float32, `(batch, tokens)`."""
    others = tokens - num_prefix - place.shape[1]
    of_second = place.shape[1] - merged + np.arange(others, dtype="float32")
    longer = max(place.shape[1], others)
    both = [
        ops.pad(place, ((0, 0), (0, longer - place.shape[1]))),
        ops.zeros_like(place[:, :1]) + np.pad(of_second, (0, longer - others)),
    ]
    rest = ops.reshape(ops.stack(both[:: -1 if num_prefix % 2 else 1], axis=-1), (-1, 2 * longer))
    prefix = ops.zeros_like(place[:, :1]) + np.arange(num_prefix, dtype="float32")
    return ops.concatenate([prefix, num_prefix + rest[:, : tokens - num_prefix]], axis=1)


def indices(x):
    """Returns the integers nearest to positive floats, which some runtimes compute a little below."""
    return ops.cast(x + 0.5, "int32")


def sizes_of(sources, tokens):
    """Returns the number of patches (or prefix tokens) in each token, float32 `(batch, tokens)`."""
    return ops.sum(ops.one_hot(sources, tokens, dtype="float32"), axis=1)


def whole(x, sources):
    """Returns the values of the token that each patch is in: `(batch, prefix + patches, width)`."""
    return ops.matmul(ops.one_hot(sources, x.shape[1], dtype=x.dtype), x)
