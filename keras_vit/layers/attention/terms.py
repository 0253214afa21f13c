"""What changes the logits of attention, by head and by block of queries: masks, biases and relative positions.

Each is `split` into blocks before its use. `add` then takes the logits of a block, `(rows, others)`, and the block's
place, `(sample, head, number)`. What learns has a `tensor`: `of_block` returns what a block adds to its gradient,
`size` numbers, and `of_heads` the gradient, from the sums of all heads, `(batch * heads, size)`.
"""

import numpy as np
from keras import ops

from keras_vit.layers.attention.attend import MASKED


class Mask:
    """Booleans that broadcast to `(batch, heads, tokens, others)`: `False` where nothing is attended to."""

    tensor = None

    def __init__(self, mask):
        self.mask = _of_four_axes(mask)

    def split(self, count, padding):
        """Splits the rows into blocks, padded at the end, unless all queries share one."""
        if self.mask.shape[2] == 1:
            self.blocks = self.mask[:, :, None]
            return
        padded = ops.pad(self.mask, ((0, 0), (0, 0), (0, padding), (0, 0)))
        batch, heads, rows, others = (-1 if size is None else size for size in padded.shape)
        self.blocks = ops.reshape(padded, (batch, heads, count, rows // count, others))

    def add(self, logits, _, place):
        return ops.where(_at(self.blocks, place), logits, MASKED)

    def cut(self, of_logits, place):
        """Returns the gradient without what is masked, where a query may attend to nothing and weighs all alike."""
        return ops.where(_at(self.blocks, place), of_logits, 0.0)


class Bias:
    """Numbers that are the same for all queries, `(batch or 1, heads or 1, 1, others)`."""

    def __init__(self, bias):
        self.tensor = _of_four_axes(bias)
        self.size = bias.shape[-1]

    def split(self, count, padding):
        pass

    def add(self, logits, bias, place):
        return logits + ops.cast(_at(bias[:, :, None], place), "float32")

    def of_block(self, of_logits, _):
        return ops.sum(of_logits, axis=0)

    def of_heads(self, sums, heads):
        of_each = ops.reshape(sums, (-1, heads, 1, self.size))
        for axis in (0, 1):
            of_each = ops.sum(of_each, axis, keepdims=True) if self.tensor.shape[axis] == 1 else of_each
        return ops.cast(of_each, self.tensor.dtype)


class Relative:
    """Numbers of a table, `(rows, heads)`, by the row of each query and key: integers, `(tokens, others)`."""

    def __init__(self, table, index):
        self.tensor = ops.cast(table, "float32") + 0.0  # a variable would be none of the gradient's inputs
        self.size = table.shape[0]
        self.index = index

    def split(self, count, padding):
        self.blocks = np.pad(self.index, ((0, padding), (0, 0))).reshape(count, -1, self.index.shape[1])

    def add(self, logits, table, place):
        _, head, number = place
        column = ops.take(table, head, axis=1)
        return logits + ops.take(column, ops.take(self.blocks, number, axis=0))

    def of_block(self, of_logits, number):
        rows = ops.reshape(ops.take(self.blocks, number, axis=0), (-1,))
        return ops.segment_sum(ops.reshape(of_logits, (-1,)), rows, num_segments=self.size)

    def of_heads(self, sums, heads):
        of_each = ops.sum(ops.reshape(sums, (-1, heads, self.size)), axis=0)
        return ops.transpose(of_each)


def _at(blocks, place):
    """Returns the rows at a place of what may be one for all samples, heads or blocks."""
    start = [ops.minimum(index, size - 1) for index, size in zip(place, ops.shape(blocks))]
    return ops.reshape(ops.slice(blocks, (*start, 0, 0), (1, 1, 1, *blocks.shape[3:])), blocks.shape[3:])


def _of_four_axes(x):
    """Returns a tensor that broadcasts to `(batch, heads, tokens, others)` with the axes that it lacks."""
    x = ops.convert_to_tensor(x)
    return ops.reshape(x, (*[1] * (4 - len(x.shape)), *ops.shape(x)))
