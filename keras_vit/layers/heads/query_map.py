"""The class of each place, from a class and a mask for each query."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.utils import checks
from keras_vit.utils.typed import Positive

LEAST = 1e-6  # of a score, so that its logarithm is finite


@keras.saving.register_keras_serializable(package="keras_vit")
class QueryMap(Layer):
    """Makes a map of classes of what queries say.

    The score of a class at a place is the sum over the queries of the class's probability times that of the mask.
    Cheng et al. 2021 (arXiv:2107.06278, "MaskFormer"), section 3.4. The logarithms of the scores are returned: their
    softmax is each class's share of the scores.

    Args:
        units: Number of classes.
        size: `(rows, columns)` of the masks.

    Call arguments:
        queries: Tensor, as `QueryMasks` returns it.

    Input shape:
        `(batch, queries, units + 1 + rows * columns)`.

    Output shape:
        `(batch, rows, columns, units)`, float32.

    Raises:
        ValueError: For another number of numbers.

    Example:

    >>> QueryMap(3, (8, 8))(keras.ops.zeros((2, 5, 3 + 1 + 64))).shape
    (2, 8, 8, 3)
    """

    ndim = 3

    def __init__(self, units: Positive, size: tuple[int, int], **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.size = checks.pair("size", size)

    def call(self, queries):
        queries = ops.cast(queries, "float32")
        classes = ops.softmax(queries[..., : self.units + 1])[..., :-1]  # (batch, queries, units)
        masks = ops.sigmoid(queries[..., self.units + 1 :])  # (batch, queries, rows * columns)
        scores = ops.matmul(ops.transpose(masks, (0, 2, 1)), classes)
        return ops.log(ops.maximum(ops.reshape(scores, (-1, *self.size, self.units)), LEAST))

    def compute_output_spec(self, queries):
        return keras.KerasTensor(self.compute_output_shape(queries.shape), "float32")  # under any policy

    def compute_output_shape(self, input_shape):
        numbers = self.units + 1 + self.size[0] * self.size[1]
        if input_shape[-1] != numbers:
            raise ValueError(f"Each query must have {numbers} numbers. Received: {tuple(input_shape)}")
        return input_shape[0], *self.size, self.units
