"""Attention to many tokens in blocks of queries, with memory that grows linearly with the tokens."""

import functools

import keras
from keras import ops

from keras_vit.layers.own_gradient import own_gradient
from keras_vit.utils import machine
from keras_vit.utils.keras_private import under_xla

LONG = 1024  # least number of tokens at which blocks are as fast as one matrix of scores
BLOCK = 640  # largest number of queries in a block


def suits(query, bias=None, mask=None):
    """Returns whether to attend in blocks: on CPUs, where heads one by one are as fast as all together.

    Args:
        query: Tensor, `(batch, tokens, heads, head_dim)`.
        bias: Tensor of rank 4, or `None`; its last axes must be `(1, tokens)`.
        mask: Tensor of rank 4, or `None`.
    """
    tokens, dtype = query.shape[1], keras.backend.standardize_dtype(query.dtype)
    one_bias = bias is None or tuple(bias.shape)[-2:] == (1, tokens)
    shaped = tokens is not None and query.shape[0] != 0 and (mask is None or None not in tuple(mask.shape)[-2:])
    return shaped and tokens >= LONG and one_bias and dtype != "float16" and _on_cpu()


@functools.cache
def _on_cpu():
    of_backend = keras.backend.backend() in ("tensorflow", "jax")  # torch has a fused kernel
    return of_backend and not machine.accelerators()


def blockwise_attention(query, key, value, terms=(), dropout=None):
    """Computes softmax attention exactly, one block of the queries of one head at a time.

    Rabe and Staats 2021 (arXiv:2112.05682). The backward pass recomputes the scores from the largest logit and the
    sum of each query, as FlashAttention does (Dao et al. 2022, arXiv:2205.14135, algorithm 4). A block holds whole rows
    of scores, so that no running maximum is needed. In the backward pass keys come before queries: all products then
    read contiguous rows. The softmax is computed in float32 under any precision policy.

    Args:
        query: Tensor, `(batch, tokens, heads, head_dim)`, multiplied by the scale. The number of tokens must be known.
        key: Tensor, `(batch, others, heads, head_dim)`.
        value: Tensor like `key`.
        terms: Masks, biases and relative positions that change the logits, in this order; see `terms.py`.
        dropout: `(rate, seed generator)` for dropout of the scores; `None` for no dropout.

    Returns:
        Tensor like `query`.
    """
    tokens, heads, width = query.shape[1:]
    count = -(-tokens // BLOCK)
    block = -(-tokens // count)
    items = ops.shape(query)[0] * heads
    learned = [term for term in terms if term.tensor is not None]
    masks = [term for term in terms if term.tensor is None]
    for term in terms:
        term.split(count, count * block - tokens)
    places = {"place": ops.arange(items * count)}
    if dropout is not None:
        rate, generator = dropout
        drawn = keras.random.randint((items * count, 2), 0, 2**31 - 1, "int32", generator)
        places["seed"] = ops.cast(drawn, generator.state.dtype)

    def by_head(x):
        """Returns a tensor like `query` as `(batch * heads, tokens, head_dim)`."""
        return ops.reshape(ops.transpose(x, (0, 2, 1, 3)), (-1, x.shape[1], width))

    def in_blocks(x):
        """Returns `(batch * heads * count, block, head_dim)`. Padding has no effect: its gradients are zero."""
        padded = ops.pad(by_head(x), ((0, 0), (0, count * block - tokens), (0, 0)))
        return ops.reshape(padded, (-1, block, width))

    def together(x, length):
        """Inverts `by_head` and `in_blocks`: returns `(batch, length, heads, head_dim)`."""
        return ops.transpose(ops.reshape(x, (-1, heads, length, width)), (0, 2, 1, 3))

    def where(place):
        """Returns the indices of sample, head and block, from the index of a block among all."""
        return place // count // heads, place // count % heads, place % count

    def changed(logits, tensors, place):
        """Returns the logits of a block, `(block, others)`, changed by all terms."""
        for term in terms:
            tensor = tensors[learned.index(term)] if term in learned else None
            logits = term.add(logits, tensor, where(place))
        return logits

    def kept(seed):
        """Returns the dropout factors of a block, float32 `(block, others)`, determined by the seed."""
        noise = keras.random.uniform((block, key.shape[1]), seed=_Drawn(seed))
        return ops.cast(noise >= rate, "float32") / (1 - rate)

    @own_gradient
    def attended(query, key, value, *tensors):
        dtype = value.dtype
        keys, values = by_head(key), by_head(value)

        def forward(part):
            item = part["place"] // count
            logits = ops.cast(ops.matmul(part["output"], _swapped(keys[item])), "float32")
            logits = changed(logits, tensors, part["place"])
            largest = ops.max(logits, axis=-1, keepdims=True)
            weights = ops.exp(logits - largest)
            total = ops.sum(weights, axis=-1, keepdims=True)
            weights = ops.cast(weights * kept(part["seed"]) if dropout else weights, dtype)
            output = ops.matmul(weights, values[item]) / ops.cast(total, dtype)
            return {"output": output, "largest": largest, "total": total}

        queries = in_blocks(query)  # each block is replaced by its output
        sums = {name: ops.cast(queries[..., :1], "float32") for name in ("largest", "total")}
        results = _each(forward, {"output": queries, **sums, **places})

        def gradient(upstream):
            upstream = in_blocks(upstream)
            mean = ops.sum(ops.cast(upstream, "float32") * ops.cast(results["output"], "float32"), axis=-1)
            blocks = {
                "query": queries,  # each block is replaced by its gradient, as are keys and values
                "upstream": upstream,
                "largest": _swapped(results["largest"]),
                "share": 1 / _swapped(results["total"]),
                "mean": mean[:, None],
                **places,
            }
            sums = {str(i): ops.zeros((items, term.size)) for i, term in enumerate(learned)}
            sums |= {"key": keys, "value": values}

            def backward(head):
                def of_block(number, gradients):
                    part = {name: head[name][number] for name in blocks}
                    logits = ops.cast(ops.matmul(head["key"], _swapped(part["query"])), "float32")  # (others, block)
                    if terms:
                        logits = _swapped(changed(_swapped(logits), tensors, part["place"]))
                    weights = dropped = ops.exp(logits - part["largest"]) * part["share"]
                    of_weights = ops.cast(ops.matmul(head["value"], _swapped(part["upstream"])), "float32")
                    if dropout:
                        factors = _swapped(kept(part["seed"]))
                        dropped, of_weights = weights * factors, of_weights * factors
                    of_logits = weights * (of_weights - part["mean"])
                    for mask in masks:
                        of_logits = _swapped(mask.cut(_swapped(of_logits), where(part["place"])))
                    halves = ops.cast(of_logits, dtype)
                    of_terms = [term.of_block(_swapped(of_logits), number) for term in learned]
                    of_query = ops.matmul(_swapped(halves), head["key"])
                    return {
                        "query": _put(gradients["query"], number, of_query),
                        "key": gradients["key"] + ops.matmul(halves, part["query"]),
                        "value": gradients["value"] + ops.matmul(ops.cast(dropped, dtype), part["upstream"]),
                        **{str(i): gradients[str(i)] + of_term for i, of_term in enumerate(of_terms)},
                    }

                start = {name: ops.zeros_like(head[name]) for name in sums}
                start["query"] = head["query"]
                return of_block(0, start) if count == 1 else ops.fori_loop(0, count, of_block, start)

            blocks_of_heads = {name: ops.reshape(x, (-1, count, *x.shape[1:])) for name, x in blocks.items()}
            gradients = _each(backward, {**blocks_of_heads, **sums})
            of_terms = [term.of_heads(gradients[str(i)], heads) for i, term in enumerate(learned)]
            return (
                together(gradients["query"], count * block)[:, :tokens],
                together(gradients["key"], key.shape[1]),
                together(gradients["value"], key.shape[1]),
                *of_terms,
            )

        return together(results["output"], count * block)[:, :tokens], gradient

    return attended(query, key, value, *[term.tensor for term in learned])


def _each(function, parts):
    """Applies a function to each part of a dictionary of tensors, and replaces the entries that it returns.

    XLA replaces them in place. `ops.map` would start from zeros, which XLA allocates for all layers in advance. Outside
    XLA, TensorFlow copies a whole tensor to replace a part of it, but not in `ops.map`.
    """
    if not under_xla():
        return ops.map(function, parts)

    def replaced(i, parts):
        outputs = function({name: x[i] for name, x in parts.items()})
        return {name: _put(x, i, outputs[name]) if name in outputs else x for name, x in parts.items()}

    return ops.fori_loop(0, ops.shape(parts["place"])[0], replaced, parts)


def _put(x, i, part):
    """Returns `x` with `x[i]` replaced by `part`."""
    return ops.scatter_update(x, [[i]], part[None])


class _Drawn(keras.random.SeedGenerator):
    """A fixed seed, from which functions of `keras.random` draw the same noise each time."""

    def __init__(self, seed):
        self.seed = seed

    def next(self, ordered=True):
        return self.seed


def _swapped(x):
    return ops.swapaxes(x, -1, -2)
