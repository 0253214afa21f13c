"""Attention with padded tokens, for a kernel that does not support every number of tokens."""

import functools

import keras
from keras import ops

from keras_vit.utils import machine

MULTIPLE = 8  # of tokens: rows of a mask in half precision then begin at multiples of 16 bytes


def helps(query, key):
    """Returns whether padding makes the fused kernel usable in training.

    JAX's kernel for NVIDIA GPUs needs half precision, heads of at most 256 channels, a multiple of 8, and an even
    number of tokens. A class token makes 197 tokens of 196 patches.

    Args:
        query: Tensor, `(batch, tokens, heads, head_dim)`.
        key: Tensor, `(batch, other tokens, heads, head_dim)`.
    """
    known = None not in (query.shape[1], key.shape[1])
    half = keras.backend.standardize_dtype(query.dtype) in ("float16", "bfloat16")
    fits = query.shape[-1] <= 256 and query.shape[-1] % 8 == 0
    off = keras.config.is_flash_attention_enabled() is False
    return known and is_odd(query, key) and half and fits and not off and _on_jax_s_gpu()


def is_odd(query, key):
    """Returns whether queries or keys are an odd number, or an unknown one."""
    return any(count is None or count % 2 for count in (query.shape[1], key.shape[1]))


@functools.cache
def _on_jax_s_gpu():
    return keras.backend.backend() == "jax" and any("tpu" not in name for name in machine.accelerators())


def padded_attention(attention, query, key, value, bias=None, mask=None):
    """Computes attention with padded tokens. The output and all gradients equal those without padding.

    Padded keys are masked. Padded queries attend to all other keys, and their outputs are dropped.

    Args:
        attention: Function of query, key, value, bias and mask.
        query: Tensor, `(batch, tokens, heads, head_dim)`, of a known number of tokens.
        key: Tensor, `(batch, other tokens, heads, head_dim)`, of a known number of tokens.
        value: Tensor like `key`.
        bias: What is added to the logits, or `None`; broadcasts to `(batch, heads, tokens, other tokens)`.
        mask: Booleans of that shape, or `None`.

    Returns:
        Tensor like `query`.
    """
    rows, columns = query.shape[1], key.shape[1]
    below, right = -rows % MULTIPLE, -columns % MULTIPLE
    query, key, value = (
        ops.pad(tensor, ((0, 0), (0, more), (0, 0), (0, 0)))
        for tensor, more in ((query, below), (key, right), (value, right))
    )
    own = ops.broadcast_to(ops.arange(columns + right) < columns, (1, 1, rows + below, columns + right))
    mask = own if mask is None else ops.logical_and(own, _padded(mask, rows, columns, below, right, True))
    bias = None if bias is None else _padded(bias, rows, columns, below, right, 0)
    return attention(query, key, value, bias, mask)[:, :rows]


def _padded(terms, rows, columns, below, right, value):
    """Returns terms of logits for padded tokens too, `(batch or 1, heads or 1, rows, columns)`."""
    shape = (1,) * (4 - len(terms.shape)) + tuple(terms.shape)
    terms = ops.broadcast_to(ops.reshape(terms, shape), (*shape[:2], rows, columns))
    return ops.pad(terms, ((0, 0), (0, 0), (0, below), (0, right)), constant_values=value)
