"""Relative positions of patches, added to the logits of attention."""

import math

import keras
import numpy as np
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.utils import checks
from keras_vit.utils.typed import Whole


@keras.saving.register_keras_serializable(package="keras_vit")
class RelativePositions(Layer):
    """Adds a learned bias to the attention logits, for each head and each distance in rows and columns.

    As in the code of BEiT (Bao et al. 2022, arXiv:2106.08254). The table has a row for each of the
    `(2 rows - 1) * (2 columns - 1)` distances between two patches, starting with the key furthest below and to the
    right. If there are prefix tokens, three rows follow: prefix query and patch key, patch query and prefix key, and
    two prefix tokens.

    Args:
        grid: `(rows, columns)` of the patches.
        num_prefix: Number of tokens before the first patch.

    Call arguments:
        logits: Tensor of attention logits, before the softmax.

    Input shape:
        `(batch, heads, num_prefix + patches, num_prefix + patches)`: queries, then keys.

    Output shape:
        Same as the input shape.

    Raises:
        ValueError: For an argument outside its range, or another number of tokens.

    Example:

    >>> RelativePositions((7, 7), num_prefix=1)(keras.ops.zeros((2, 3, 50, 50))).shape
    (2, 3, 50, 50)
    """

    def __init__(self, grid: tuple[int, int], *, num_prefix: Whole = 0, **kwargs):
        super().__init__(**kwargs)
        self.grid = checks.pair("grid", grid)
        self.num_prefix = num_prefix

    def build(self, input_shape):
        _, heads, *tokens = input_shape
        length = self.num_prefix + math.prod(self.grid)
        if any(count not in (None, length) for count in tokens):
            raise ValueError(
                f"There must be {self.num_prefix} + {math.prod(self.grid)} tokens. "
                f"Received: input_shape={tuple(input_shape)}"
            )
        self.table = self.add_weight(name="table", shape=(self._rows(), heads), initializer="zeros")
        self.index = self._index()  # (tokens, tokens)

    def _rows(self):
        return math.prod(2 * side - 1 for side in self.grid) + 3 * (self.num_prefix > 0)

    def _index(self):
        """Returns the row of the table for each query and key, int32 `(tokens, tokens)`."""
        rows, columns = self.grid
        y, x = (place.reshape(-1) for place in np.mgrid[:rows, :columns])
        of_rows, of_columns = y[:, None] - y + rows - 1, x[:, None] - x + columns - 1
        index = np.pad(of_rows * (2 * columns - 1) + of_columns, (self.num_prefix, 0))
        if self.num_prefix:
            first = self._rows() - 3
            index[: self.num_prefix], index[:, : self.num_prefix] = first, first + 1
            index[: self.num_prefix, : self.num_prefix] = first + 2
        return index.astype("int32")

    def bias(self):
        """Returns the bias of the logits, `(1, heads, tokens, tokens)`."""
        return ops.transpose(ops.take(self.table, self.index, axis=0), (2, 0, 1))[None]

    def call(self, logits):
        return logits + ops.cast(self.bias(), logits.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape
