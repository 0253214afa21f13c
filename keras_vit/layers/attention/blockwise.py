"""Attention to many tokens, in blocks of queries: memory grows with the tokens, not with their square."""

import functools

import keras
from keras import ops

from keras_vit.utils.keras_private import under_xla

LONG = 512  # tokens from which on blocks are as fast as all scores at once
BLOCK = 1024  # queries at once


def suits(query, bias=None):
    """Returns whether to attend in blocks: on CPUs, which compute one head after the other as fast as all at once."""
    tokens, dtype = query.shape[1], keras.backend.standardize_dtype(query.dtype)
    one_bias = bias is None or bias.shape[2] == 1
    return tokens is not None and tokens >= LONG and one_bias and dtype != "float16" and _on_cpu()


@functools.cache
def _on_cpu():
    of_backend = keras.backend.backend() in ("tensorflow", "jax")  # torch has a fused kernel of its own
    return of_backend and all(name.startswith("cpu") for name in keras.distribution.list_devices())


def blockwise_attention(query, key, value, terms=(), dropout=None):
    """Computes softmax attention exactly, one block of the queries of one head at a time.

    Rabe and Staats 2021 (arXiv:2112.05682). The gradient computes the scores again, from the logarithm of each query's
    sum of exponentials, as FlashAttention-2 does (Dao 2023, arXiv:2307.08691, algorithm 2). A block holds whole rows of
    scores, so that no running maximum is needed. In the gradient keys come before queries: all products then read
    contiguous rows. The softmax is in float32 under any precision.

    Args:
        query: Tensor, `(batch, tokens, heads, head_dim)`, of a known number of tokens; times the scale of the logits.
        key: Tensor, `(batch, others, heads, head_dim)`.
        value: Tensor like `key`.
        terms: What changes the logits, in this order; see `terms.py`.
        dropout: `(rate, seed generator)` for the dropout of the scores; `None` for no dropout.

    Returns:
        Tensor like `query`.
    """
    tokens, heads, width = query.shape[1:]
    count = -(-tokens // BLOCK)
    block = -(-tokens // count)
    items = ops.shape(query)[0] * heads
    learned = [term for term in terms if term.tensor is not None]
    for term in terms:
        term.split(count, count * block - tokens)
    places = {"item": ops.arange(items)}
    if dropout is not None:
        rate, generator = dropout
        drawn = keras.random.randint((items, count, 2), 0, 2**31 - 1, "int32", generator)
        places["seed"] = ops.cast(drawn, generator.state.dtype)

    def by_head(x):
        """Returns `(batch * heads, tokens, width)` of a tensor like `query`."""
        return ops.reshape(ops.transpose(x, (0, 2, 1, 3)), (-1, x.shape[1], width))

    def in_blocks(x):
        """Returns `(batch * heads, count, block, width)`. What is padded has no effect: its gradients are zero."""
        padded = ops.pad(by_head(x), ((0, 0), (0, count * block - tokens), (0, 0)))
        return ops.reshape(padded, (-1, count, block, width))

    def together(x, length):
        """Returns the inverse of `by_head`, and of `in_blocks`, for this number of tokens."""
        return ops.transpose(ops.reshape(x, (-1, heads, length, width)), (0, 2, 1, 3))

    def over_blocks(function, start):
        return function(0, start) if count == 1 else ops.fori_loop(0, count, function, start)

    def changed(logits, given, item, number):
        """Returns the logits of a block, `(block, others)`, with all terms."""
        for term in terms:
            tensor = given[learned.index(term)] if term in learned else None
            logits = term.add(logits, tensor, (item // heads, item % heads, number))
        return logits

    def kept(seed):
        """Returns the factors by which dropout multiplies scores, the same for the same seed."""
        noise = keras.random.uniform((block, key.shape[1]), seed=_Drawn(seed))
        return ops.cast(noise >= rate, "float32") / (1 - rate)

    @ops.custom_gradient
    def attended(query, key, value, *given):
        dtype = value.dtype

        def forward(head):
            def of_block(number, made):
                logits = ops.cast(ops.matmul(made["output"][number], head["key"]), "float32")
                logits = changed(logits, given, head["item"], number)
                largest = ops.max(logits, axis=-1, keepdims=True)
                weights = ops.exp(logits - largest)
                total = ops.sum(weights, axis=-1, keepdims=True)
                weights = ops.cast(weights * kept(head["seed"][number]) if dropout else weights, dtype)
                output = ops.matmul(weights, head["value"]) / ops.cast(total, dtype)
                log_sum = largest + ops.log(total)
                return {"output": _put(made["output"], number, output), "log_sum": _put(made["log_sum"], number, log_sum)}

            return over_blocks(of_block, {name: head[name] for name in ("output", "log_sum")})

        start = {"output": in_blocks(query), "log_sum": ops.cast(in_blocks(query)[..., :1], "float32")}
        made = _each(forward, {**start, "key": _swapped(by_head(key)), "value": by_head(value), **places})

        def gradient(upstream):
            upstream = in_blocks(upstream)
            mean = ops.sum(ops.cast(upstream, "float32") * ops.cast(made["output"], "float32"), axis=-1)

            def backward(head):
                columns = _swapped(head["key"])

                def of_block(number, sums):
                    part = {name: head[name][number] for name in parts}
                    logits = ops.cast(ops.matmul(head["key"], part["query_columns"]), "float32")  # (others, block)
                    if terms:
                        logits = _swapped(changed(_swapped(logits), given, head["item"], number))
                    weights = dropped = ops.exp(logits - part["log_sum"])
                    of_weights = ops.cast(ops.matmul(head["value"], part["upstream_columns"]), "float32")
                    if dropout:
                        factors = _swapped(kept(head["seed"][number]))
                        dropped, of_weights = weights * factors, of_weights * factors
                    of_logits = weights * (of_weights - part["mean"])
                    halves = ops.cast(of_logits, dtype)
                    of_terms = [term.of_block(_swapped(of_logits), number) for term in learned]
                    return {
                        "query_columns": _put(sums["query_columns"], number, ops.matmul(columns, halves)),
                        "key": sums["key"] + ops.matmul(halves, part["query"]),
                        "value": sums["value"] + ops.matmul(ops.cast(dropped, dtype), part["upstream"]),
                        **{str(i): sums[str(i)] + found for i, found in enumerate(of_terms)},
                    }

                zeros = {name: ops.zeros_like(head[name]) for name in ("key", "value", *sizes)}
                return over_blocks(of_block, {"query_columns": head["query_columns"], **zeros})

            parts = {
                "query": in_blocks(query),
                "query_columns": _swapped(in_blocks(query)),
                "upstream": upstream,
                "upstream_columns": _swapped(upstream),
                "log_sum": _swapped(made["log_sum"]),
                "mean": mean[:, :, None],
            }
            sizes = {str(i): ops.zeros((items, term.size)) for i, term in enumerate(learned)}
            found = _each(backward, {**parts, "key": by_head(key), "value": by_head(value), **sizes, **places})
            of_query = together(_swapped(found["query_columns"]), count * block)[:, :tokens]
            of_terms = [term.of_heads(found[str(i)], heads) for i, term in enumerate(learned)]
            return of_query, *(together(found[name], key.shape[1]) for name in ("key", "value")), *of_terms

        return together(made["output"], count * block)[:, :tokens], gradient

    return attended(query, key, value, *[term.tensor for term in learned])


def _each(function, heads):
    """Returns what a function makes of each head, whose entries of the same name it replaces.

    XLA replaces them where they are. `ops.map` would begin with zeros, which XLA makes for all layers before the first.
    Outside XLA, TensorFlow copies a whole tensor to replace a part of it, but not in `ops.map`.
    """
    if not under_xla():
        return ops.map(function, heads)

    def replaced(i, heads):
        made = function({name: x[i] for name, x in heads.items()})
        return {name: _put(x, i, made[name]) if name in made else x for name, x in heads.items()}

    return ops.fori_loop(0, ops.shape(heads["item"])[0], replaced, heads)


def _put(x, i, part):
    """Returns `x` with another `x[i]`."""
    return ops.slice_update(x, (i, *[0] * (len(x.shape) - 1)), part[None])


class _Drawn(keras.random.SeedGenerator):
    """A seed that was drawn already: functions of `keras.random` make the same noise of it each time."""

    def __init__(self, seed):
        self.seed = seed

    def next(self, ordered=True):
        return self.seed


def _swapped(x):
    return ops.swapaxes(x, -1, -2)
