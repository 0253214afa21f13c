"""A box, and whether there is an object, from each patch: two heads of OWL-ViT."""

import keras
import numpy as np
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.dense import Dense
from keras_vit.utils import checks

SMALL = 1e-4  # keeps the logits of 0 and 1 finite


@keras.saving.register_keras_serializable(package="keras_vit")
class PlaceBoxes(Layer):
    """Predicts a box from each patch, relative to the patch's own place and size.

    Minderer et al. 2022 (OWL-ViT, arXiv:2205.06230), section 3.1 and appendix A1. Three dense layers with exact GELUs
    predict center, width and height, to which the logits of the patch's place are added before the sigmoid. As in the
    authors' code, the place of a patch is its lower right corner. Places are added in float32 under every policy:
    bfloat16 cannot tell them apart near 1.

    Args:
        grid: `(rows, columns)` of the patches.

    Input shape:
        `(batch, rows * columns, width)`.

    Output shape:
        `(batch, rows * columns, 4)`, float32: top, left, bottom and right as shares of the image. A box may reach
        beyond the image.

    Raises:
        ValueError: For a grid that is no pair of positive integers, or another number of patches.

    Example:

    >>> PlaceBoxes(grid=(2, 3))(keras.ops.zeros((1, 6, 32))).shape
    (1, 6, 4)
    """

    ndim = 3

    def __init__(self, grid: tuple[int, int], **kwargs):
        super().__init__(**kwargs)
        self.grid = checks.pair("grid", grid)

    def build(self, input_shape):
        self.compute_output_shape(input_shape)
        self.layers = _layers(input_shape, 4, self.dtype_policy)
        self.places = _places(self.grid)

    def call(self, x):
        values = ops.cast(_applied(self.layers, x), "float32") + ops.convert_to_tensor(self.places, "float32")
        place = ops.sigmoid(values)  # the center's column and row, width, height: DETR's order
        center, half = place[..., 1::-1], place[..., 3:1:-1] / 2
        return ops.concatenate([center - half, center + half], axis=-1)

    def compute_output_shape(self, input_shape):
        batch, patches, _ = input_shape
        if patches != self.grid[0] * self.grid[1]:
            raise ValueError(f"There must be a patch for each place of {self.grid}. Received: {patches} patches")
        return batch, patches, 4

    def compute_output_spec(self, x):
        return keras.KerasTensor(self.compute_output_shape(x.shape), "float32")


@keras.saving.register_keras_serializable(package="keras_vit")
class Objectness(Layer):
    """Predicts from each patch whether its box has an object of any class.

    Minderer et al. 2023 (OWLv2, arXiv:2306.09683), section 3.1: three dense layers with exact GELUs. It learns from
    features that it does not change: gradients stop before it.

    Input shape:
        `(batch, patches, width)`.

    Output shape:
        `(batch, patches)`, float32 logits.

    Example:

    >>> Objectness()(keras.ops.zeros((1, 6, 32))).shape
    (1, 6)
    """

    ndim = 3

    def build(self, input_shape):
        self.layers = _layers(input_shape, 1, self.dtype_policy)

    def call(self, x):
        return ops.cast(_applied(self.layers, ops.stop_gradient(x))[..., 0], "float32")

    def compute_output_shape(self, input_shape):
        return tuple(input_shape[:2])

    def compute_output_spec(self, x):
        return keras.KerasTensor(self.compute_output_shape(x.shape), "float32")


def _layers(input_shape, units, dtype):
    """Returns three built dense layers, the last one with `units` outputs."""
    width = input_shape[-1]
    layers = [Dense(size, name=f"dense{i}", dtype=dtype) for i, size in enumerate((width, width, units))]
    for layer in layers:
        layer.build((*input_shape[:-1], width))
    return layers


def _applied(layers, x):
    """Returns the output of dense layers with exact GELUs between them."""
    for layer in layers[:-1]:
        x = keras.activations.gelu(layer(x), approximate=False)
    return layers[-1](x)


def _places(grid):
    """Returns the logits of each patch's place and size, float32 `(rows * columns, 4)`: x, y, width, height."""
    rows, columns = grid
    y, x = np.mgrid[1 : rows + 1, 1 : columns + 1].reshape(2, -1)
    shares = np.stack([x / columns, y / rows, np.full(x.shape, 1 / columns), np.full(x.shape, 1 / rows)], axis=-1)
    return (np.log(shares + SMALL) - np.log1p(-shares + SMALL)).astype("float32")
