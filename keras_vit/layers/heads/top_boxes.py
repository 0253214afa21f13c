"""The boxes with the highest scores."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.utils.taking import rows_of
from keras_vit.utils.typed import Positive


@keras.saving.register_keras_serializable(package="keras_vit")
class TopBoxes(Layer):
    """Selects the boxes whose best class scores highest. Overlapping boxes are not suppressed.

    Args:
        most: Number of boxes of an image, at most that of the input.

    Call arguments:
        inputs: Pair of boxes, as shares of the image, and the logits of their classes.

    Input shape:
        `(batch, boxes, 4)`: top, left, bottom and right; and `(batch, boxes, classes)`.

    Output shape:
        `(batch, most, 4 + classes)`, float32, highest score first: top, left, bottom and right as shares of the image's
        height and width, 0..1, and a score for each class, 0..1: the sigmoid of its logit.

    Raises:
        ValueError: For an argument outside its range, or fewer than `most` boxes.

    Example:

    >>> TopBoxes(most=2)([keras.ops.zeros((1, 6, 4)), keras.ops.zeros((1, 6, 3))]).shape
    (1, 2, 7)
    """

    gives = "boxes"  # see `models.kinds`

    def __init__(self, most: Positive = 100, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.most = most

    def build(self, input_shape):
        self.compute_output_shape(input_shape)

    def call(self, inputs):
        boxes, logits = (ops.cast(x, self.compute_dtype) for x in inputs)
        found = ops.concatenate([ops.clip(boxes, 0, 1), ops.sigmoid(logits)], axis=-1)
        _, best = ops.top_k(ops.max(logits, axis=-1), self.most)
        return rows_of(found, best)

    def compute_output_shape(self, input_shape):
        boxes, logits = input_shape
        if len(boxes) != 3 or boxes[1] is None or boxes[1] != logits[1] or boxes[1] < self.most:
            raise ValueError(
                f"The inputs must be {self.most} boxes or more and their logits. "
                f"Received: shapes {tuple(boxes)} and {tuple(logits)}"
            )
        return boxes[0], self.most, boxes[2] + logits[2]
