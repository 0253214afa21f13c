"""Masks of attention."""

from keras import ops

MASKED = -0.7 * 3.4e38  # a logit; Keras's value: adding two does not overflow


def joined_mask(attention_mask, use_causal_mask, rows, columns):
    """Joins both masks into one that broadcasts to (batch, heads, rows, columns); `None` without any."""
    mask = None
    if attention_mask is not None:
        mask = ops.cast(attention_mask, "bool")
        mask = ops.expand_dims(mask, 1) if len(mask.shape) == 3 else mask
    if use_causal_mask:
        causal = ops.tril(ops.ones((1, 1, rows, columns), dtype="bool"))
        mask = causal if mask is None else ops.logical_and(mask, causal)
    return mask
