"""Terms of attention in blocks of queries, which change the logits: masks, biases and relative positions.

`split` prepares the blocks of a term. `add` changes the logits of a block, `(rows, others)`, at its place, `(sample,
head, number)`. A term with gradients has a `tensor`: `of_block` returns the contribution of a block to its gradient,
`(size,)`, and `of_heads` the gradient, from the sums of all heads, `(batch * heads, size)`.
"""

import numpy as np
from keras import ops

from keras_vit.layers.attention.attend import MASKED


class Mask:
    """A boolean mask that broadcasts to `(batch, heads, tokens, others)`: `False` where attention is not allowed."""

    tensor = None

    def __init__(self, mask):
        self.mask = _of_four_axes(mask)

    def split(self, count, padding):
        """Splits the rows into `count` blocks, with `padding` rows at the end, unless all queries share one row."""
        if self.mask.shape[2] == 1:
            self.blocks = self.mask[:, :, None]
            return
        padded = ops.pad(self.mask, ((0, 0), (0, 0), (0, padding), (0, 0)))
        batch, heads, rows, others = (-1 if size is None else size for size in padded.shape)
        self.blocks = ops.reshape(padded, (batch, heads, count, rows // count, others))

    def add(self, logits, _, place):
        """Masks the logits of a block, `(rows, others)`."""
        return ops.where(_at(self.blocks, place), logits, MASKED)

    def cut(self, of_logits, place):
        """Returns the gradient of a block's logits, `(rows, others)`, set to 0 where the mask is `False`."""
        return ops.where(_at(self.blocks, place), of_logits, 0.0)


class Bias:
    """A bias that is the same for all queries, `(batch or 1, heads or 1, 1, others)`."""

    def __init__(self, bias):
        self.tensor = _of_four_axes(bias)
        self.size = bias.shape[-1]

    def split(self, count, padding):
        """Does nothing: all blocks share the bias."""

    def add(self, logits, bias, place):
        """Adds the bias to the logits of a block, `(rows, others)`."""
        return logits + ops.cast(_at(bias[:, :, None], place), "float32")

    def of_block(self, of_logits, _):
        """Sums the gradient of a block's logits, `(rows, others)`, to `(others,)`."""
        return ops.sum(of_logits, axis=0)

    def of_heads(self, sums, heads):
        """Returns the gradient in the shape of the bias, from the sums of all heads, `(batch * heads, others)`."""
        of_each = ops.reshape(sums, (-1, heads, 1, self.size))
        for axis in (0, 1):
            of_each = ops.sum(of_each, axis, keepdims=True) if self.tensor.shape[axis] == 1 else of_each
        return ops.cast(of_each, self.tensor.dtype)


class Relative:
    """A bias from a table, `(rows, heads)`, by the row for each query and key, integers, `(tokens, others)`."""

    def __init__(self, table, index):
        self.tensor = ops.cast(table, "float32") + 0.0  # a tensor: a variable would have no gradient here
        self.size = table.shape[0]
        self.index = index

    def split(self, count, padding):
        """Splits the index, `(tokens, others)`, into `count` blocks, with `padding` rows at the end."""
        self.blocks = np.pad(self.index, ((0, padding), (0, 0))).reshape(count, -1, self.index.shape[1])

    def add(self, logits, table, place):
        """Adds the bias of a head to the logits of a block, `(rows, others)`."""
        _, head, number = place
        column = ops.take(table, head, axis=1)
        return logits + ops.take(column, ops.take(self.blocks, number, axis=0))

    def of_block(self, of_logits, number):
        """Sums the gradient of a block's logits, `(rows, others)`, for each row of the table, to `(size,)`."""
        rows = ops.reshape(ops.take(self.blocks, number, axis=0), (-1,))
        return ops.segment_sum(ops.reshape(of_logits, (-1,)), rows, num_segments=self.size)

    def of_heads(self, sums, heads):
        """Returns the gradient of the table, `(size, heads)`, from the sums of all heads, `(batch * heads, size)`."""
        of_each = ops.sum(ops.reshape(sums, (-1, heads, self.size)), axis=0)
        return ops.transpose(of_each)


def _at(blocks, place):
    """Returns the rows of a block at a place; samples, heads or blocks may share an axis of size 1."""
    start = [ops.minimum(index, size - 1) for index, size in zip(place, ops.shape(blocks))]
    return ops.reshape(ops.slice(blocks, (*start, 0, 0), (1, 1, 1, *blocks.shape[3:])), blocks.shape[3:])


def _of_four_axes(x):
    """Returns a tensor that broadcasts to `(batch, heads, tokens, others)` with four axes."""
    x = ops.convert_to_tensor(x)
    return ops.reshape(x, (*[1] * (4 - len(x.shape)), *ops.shape(x)))
