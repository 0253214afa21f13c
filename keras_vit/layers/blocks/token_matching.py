"""Token merging: matching of similar tokens, and their means. Bolya et al. 2023 (arXiv:2210.09461).

It uses only comparisons and matrix products of rank 3: accelerators in phones do not support sorting, gathering, or
slices of matrices.
"""

import numpy as np
from keras import ops


def kinds(x, num_prefix):
    """Splits tokens, `(batch, tokens, ...)`, into the prefix, tokens of the first kind, and tokens of the second kind.

    The kinds alternate. As in the published code, they are counted from the first prefix token, so that the number of
    prefix tokens determines the kind of the first patch.
    """
    odd = num_prefix % 2
    return x[:, :num_prefix], x[:, num_prefix + odd :: 2], x[:, num_prefix + 1 - odd :: 2]


def match(keys, merged, num_prefix):
    """Matches similar tokens, and returns the index of each token of the first kind after merging.

    Section 3 and appendix D. Each token of the first kind proposes to the one of the second kind whose key has the
    largest cosine similarity; the `merged` best proposals are accepted. Prefix tokens stay. After them come
    the remaining tokens of the first kind, then the tokens of the second kind.

    Args:
        keys: Tensor of keys, `(batch, tokens, head_dim)`, the mean over the heads.
        merged: Number of tokens to merge, from 1 to half of the patch tokens.
        num_prefix: Number of prefix tokens.

    Returns:
        float32 tensor, `(batch, tokens of the first kind, 1)`: indices after the prefix, from 0.
    """
    _, first, second = kinds(ops.cast(keys, "float32"), num_prefix)
    alike = ops.matmul(first, ops.swapaxes(second, 1, 2)) * _inverse_norm(first)  # (batch, first, second)
    alike = alike * ops.swapaxes(_inverse_norm(second), 1, 2)
    best = ops.max(alike, axis=-1, keepdims=True)  # (batch, first, 1)
    less = ops.cast(alike < best, "float32")
    order = ops.arange(second.shape[1], dtype="float32")
    chosen = ops.min(less * second.shape[1] + order, axis=-1, keepdims=True)  # argmax: Keras computes its own on bits

    earlier = ops.convert_to_tensor(np.tri(first.shape[1], k=-1, dtype="float32"))
    others = ops.swapaxes(best, 1, 2)
    better = ops.cast(others > best, "float32")
    equal = ops.cast(ops.equal(others, best), "float32")
    rank = ops.sum(better + equal * earlier, axis=-1, keepdims=True)  # among equal proposals, the earlier is better
    accepted = ops.cast(rank < merged, "float32")
    # Without a prefix the published code leaves the tokens in the order of their proposals.
    rest = ops.swapaxes(1 - accepted, 1, 2)
    place = ops.sum(rest * earlier, axis=-1, keepdims=True) if num_prefix else rank - merged
    return accepted * (first.shape[1] - merged + chosen) + (1 - accepted) * place


def merge(x, sizes, place, merged, num_prefix):
    """Merges tokens: each new token is the mean over its patches.

    Args:
        x: Tensor of tokens, `(batch, tokens, width)`.
        sizes: float32 number of patches in each token, `(batch, tokens, 1)`.
        place: Result of `match`.
        merged: As in `match`.
        num_prefix: As in `match`.

    Returns:
        Tensor, `(batch, tokens - merged, width)`.
    """
    (prefix, first, second), (_, of_first, of_second) = kinds(x, num_prefix), kinds(sizes, num_prefix)
    count = first.shape[1] - merged
    parts = ops.swapaxes(is_at(place, count + second.shape[1]) * of_first, 1, 2)  # (batch, places, first)
    total = ops.sum(parts, axis=-1, keepdims=True) + ops.pad(of_second, ((0, 0), (count, 0), (0, 0)))
    share = ops.cast(of_second / total[:, count:], x.dtype)
    means = ops.matmul(ops.cast(parts / total, x.dtype), first)
    return ops.concatenate([prefix, means + ops.pad(second * share, ((0, 0), (count, 0), (0, 0)))], axis=1)


def places(place, merged, tokens, num_prefix):
    """Returns the index of each token after merging, float32 `(batch, tokens, 1)`, from the result of `match`."""
    others = tokens - num_prefix - place.shape[1]
    of_second = place.shape[1] - merged + np.arange(others, dtype="float32")
    longer, none = max(place.shape[1], others), ops.zeros_like(place[:, :1])  # (batch, 1, 1)
    both = [
        ops.pad(place, ((0, 0), (0, longer - place.shape[1]), (0, 0))),
        none + ops.convert_to_tensor(np.pad(of_second, (0, longer - others))[:, None]),
    ]
    rest = ops.reshape(ops.concatenate(both[:: -1 if num_prefix % 2 else 1], axis=-1), (-1, 2 * longer, 1))
    prefix = none + ops.expand_dims(ops.arange(num_prefix, dtype="float32"), 1)
    return ops.concatenate([prefix, num_prefix + rest[:, : tokens - num_prefix]], axis=1)


def _inverse_norm(x):
    return ops.rsqrt(ops.sum(ops.square(x), axis=-1, keepdims=True) + 1e-12)


def is_at(place, count, dtype="float32"):
    """Returns one-hot vectors, `(batch, tokens, count)`, from indices, floats or integers, `(batch, tokens, 1)`.

    `ops.one_hot` would need 64-bit integers. Indices may be inexact: some runtimes compute whole numbers a little low.
    """
    near = ops.abs(ops.cast(place, "float32") - ops.arange(count, dtype="float32")) < 0.5
    return ops.cast(near, dtype)


def sizes_of(sources, tokens):
    """Returns the number of patches in each token, float32 `(batch, tokens, 1)`, from `sources` of a `MergingBlock`."""
    counts = ops.sum(is_at(sources, tokens), axis=1, keepdims=True)
    return ops.swapaxes(counts, 1, 2)


def moved(places, sources):
    """Returns the new index of the token of each patch, float32 `(batch, prefix + patches, 1)`.

    It is computed by a sum: some devices round the operands of matrix products, and so indices above 256.

    Args:
        places: New index of each token, float32 `(batch, tokens, 1)`.
        sources: Index of the token of each patch before, `(batch, prefix + patches, 1)`.
    """
    return ops.sum(is_at(sources, places.shape[1]) * ops.swapaxes(places, 1, 2), axis=-1, keepdims=True)


def whole(x, sources):
    """Returns the token of each patch, `(batch, prefix + patches, width)`, from tokens, `(batch, tokens, width)`."""
    return ops.matmul(is_at(sources, x.shape[1], x.dtype), x)
