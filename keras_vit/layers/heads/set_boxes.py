"""The head of DETR and YOLOS: from tokens to a set of boxes."""

from collections.abc import Sequence
from typing import Literal

import keras
import numpy as np
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.dense import Dense
from keras_vit.utils.typed import Positive


@keras.saving.register_keras_serializable(package="keras_vit")
class SetHead(Layer):
    """Predicts a box and a class, or no object, from each token.

    An MLP of three layers and a sigmoid predict center, width and height of the box. Classes are predicted by one layer
    in DETR (Carion et al. 2020, arXiv:2005.12872, section 3.2), by three in YOLOS (Fang et al. 2021, arXiv:2106.00666).

    Args:
        units: Number of classes.
        class_layers: Number of dense layers that predict the class logits, the last one included.

    Input shape:
        `(..., width)`.

    Output shape:
        `(..., 4 + units + 1)`, float32: top, left, bottom and right as shares of the image, then the logit of each
        class and of no object.

    Raises:
        ValueError: For an argument outside its range.

    Example:

    >>> SetHead(3)(keras.ops.zeros((2, 10, 32))).shape
    (2, 10, 8)
    """

    def __init__(self, units: Positive, class_layers: Positive = 1, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.class_layers = class_layers

    def build(self, input_shape):
        width = input_shape[-1]
        self.classes = _layers("class", self.class_layers, width, self.units + 1, self.dtype_policy)
        self.boxes = box_layers("box", width, self.dtype_policy)
        for layer in (*self.classes, *self.boxes):
            layer.build((*input_shape[:-1], width))

    def call(self, x):
        logits, boxes = x, x
        for layer in self.classes:
            logits = layer(logits)
        for layer in self.boxes:
            boxes = layer(boxes)
        place = ops.sigmoid(ops.cast(boxes, "float32"))  # the center's column and row, width, height: DETR's order
        center, half = place[..., 1::-1], place[..., 3:1:-1] / 2
        return ops.concatenate([center - half, center + half, ops.cast(logits, "float32")], axis=-1)

    def compute_output_shape(self, input_shape):
        return *input_shape[:-1], 4 + self.units + 1

    def compute_output_spec(self, x):
        return keras.KerasTensor(self.compute_output_shape(x.shape), "float32")


@keras.saving.register_keras_serializable(package="keras_vit")
class SetBoxes(Layer):
    """Returns the boxes of the last block, with a score for each class.

    Args:
        end: `"softmax"`, whose last logit, for no object, is left out; or `"sigmoid"`, a score for each class alone.
        kept: Numbers of the logits that are classes, in their order; `None` for all.

    Input shape:
        `(batch, blocks, most, 4 + classes + 1)`, the output of `SetHead`; for `"sigmoid"` `(batch, blocks, most, 4 +
        classes)`, the output of `DeformableDecoder`.

    Output shape:
        `(batch, most, 4 + classes)`, float32: top, left, bottom and right, inside the image, as shares of its height
        and width; and a score for each class, 0..1.

    Example:

    >>> SetBoxes()(keras.ops.zeros((2, 6, 10, 8))).shape
    (2, 10, 7)
    """

    gives = "boxes"  # see `models.kinds`

    def __init__(self, end: Literal["softmax", "sigmoid"] = "softmax", kept: Sequence[int] | None = None, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.end = end
        self.kept = None if kept is None else list(kept)

    def call(self, x):
        last = x[:, -1]
        logits = last[..., 4:]
        scores = ops.softmax(logits)[..., :-1] if self.end == "softmax" else ops.sigmoid(logits)
        scores = scores if self.kept is None else ops.take(scores, np.array(self.kept, "int32"), axis=-1)
        return ops.concatenate([ops.clip(last[..., :4], 0, 1), scores], axis=-1)


def box_layers(name, width, dtype, start="glorot_uniform"):
    """Returns the three dense layers that predict a box; `start` is the initializer of the last one's kernel."""
    layers = _layers(name, 3, width, 4, dtype)
    layers[-1].kernel_initializer = keras.initializers.get(start)
    return layers


def _layers(name, count, width, units, dtype):
    """Returns `count` dense layers with ReLUs in between; `units` is the width of the last one."""
    sizes = [(width, "relu")] * (count - 1) + [(units, None)]
    return [Dense(n, a, name=f"{name}{i}", dtype=dtype) for i, (n, a) in enumerate(sizes)]
