"""Attention by the backend's fused kernel, where there is one."""

import keras
from keras import ops


def fused_attention(query, key, value, bias=None, mask=None, training=False):
    """Computes `keras.ops.dot_product_attention` with logits that are scaled already.

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
    odd = any(count is None or count % 2 for count in (query.shape[1], key.shape[1]))
    refused = keras.backend.backend() == "jax" and training and odd
    off = refused or keras.config.is_flash_attention_enabled() is False
    flash = False if off else None  # `None`: if the backend can
    return ops.dot_product_attention(query, key, value, bias=bias, mask=mask, scale=1.0, flash_attention=flash)
