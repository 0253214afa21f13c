"""Boxes at the peaks of a feature map."""

import keras
from keras import ops

from keras_vit.layers.base import LAST, Layer
from keras_vit.utils.taking import rows_of
from keras_vit.utils.typed import Positive

EDGES = 4  # top, left, bottom, right


@keras.saving.register_keras_serializable(package="keras_vit")
class PointBoxes(Layer):
    """Selects boxes from a feature map with one prediction at each position: the peaks of each class.

    A peak scores at least as high as its eight neighbors; no other suppression is needed. Zhou et al. 2019,
    "Objects as Points" (arXiv:1904.07850), section 4.

    Args:
        most: Number of boxes of an image. If there are fewer peaks, other positions follow, with scores of 0.

    Input shape:
        `(batch, rows, columns, 4 + classes)`: logarithms of the distances from a position's center to the top, left,
        bottom and right edges, in rows and columns; and a logit for each class.

    Output shape:
        `(batch, most, 4 + classes)`, float32, highest score first: top, left, bottom and right as shares of the image's
        height and width, 0..1, and a score for each class, 0..1.

    Raises:
        ValueError: For an argument outside its range, or a map with fewer than `most` positions.

    Example:

    >>> PointBoxes(most=10)(keras.ops.zeros((2, 8, 8, 4 + 3))).shape
    (2, 10, 7)
    """

    gives = "boxes"  # see `models.kinds`

    def __init__(self, most: Positive = 100, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.most = most

    def call(self, x):
        logits = ops.cast(x[..., 4:], self.compute_dtype)
        peaks = ops.where(logits >= ops.max_pool(logits, 3, 1, "same", LAST), ops.sigmoid(logits), 0.0)
        boxes = ops.concatenate([ops.clip(edges(x), 0, 1), peaks], axis=-1)
        boxes = ops.reshape(boxes, (-1, boxes.shape[1] * boxes.shape[2], boxes.shape[3]))
        _, best = ops.top_k(ops.max(boxes[..., 4:], axis=-1), self.most)
        return rows_of(boxes, best)

    def compute_output_shape(self, input_shape):
        batch, rows, columns, channels = input_shape
        if None in (rows, columns) or rows * columns < self.most or channels < 5:
            raise ValueError(
                f"The input must be (batch, rows, columns, 4 + classes) with {self.most} positions or more. "
                f"Received: {tuple(input_shape)}"
            )
        return batch, self.most, channels


def edges(x):
    """Returns top, left, bottom and right as shares of the image, float32 `(batch, rows, columns, 4)`."""
    rows, columns = x.shape[1:3]
    middle = [ops.expand_dims(ops.arange(0.5, n) / n, axis) for n, axis in ((rows, 1), (columns, 0))]
    middle = ops.stack([ops.broadcast_to(part, (rows, columns)) for part in middle], axis=-1)
    middle = ops.cast(middle, "float32")
    distances = ops.exp(ops.clip(ops.cast(x[..., :4], "float32"), -8, 8))
    distances = distances / ops.convert_to_tensor([rows, columns] * 2, "float32")
    return ops.concatenate([middle - distances[..., :2], middle + distances[..., 2:]], axis=-1)
