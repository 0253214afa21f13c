"""Deformable attention: each query attends to a few places of feature maps."""

import math

import keras
import numpy as np
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.dense import Dense
from keras_vit.utils.typed import Positive

DENSE = 2**18  # queries times cells up to which the weights of all cells are computed; see `sampled`


@keras.saving.register_keras_serializable(package="keras_vit")
class DeformableAttention(Layer):
    """Multi-head attention of queries to sampled places of one or more feature maps.

    Zhu et al. 2021 (arXiv:2010.04159), section 4.1. Each query predicts, for each head, map and point, an offset from
    its reference and a weight. The weights of a head sum to 1. The layer samples the values at these places by bilinear
    interpolation, with zeros outside the map, and sums them by weight.

    Args:
        num_heads: Number of heads; must divide the width of the queries.
        points: Number of places for each query, head and map.

    Call arguments:
        x: Tensor of queries, `(batch, queries, width)`, positions added.
        references: Tensor, `(batch, queries, 4)`: boxes as center x, center y, width and height, as shares of the map;
            an offset of `points` is then half of the box. Or `(batch, queries, 2)`: x and y; an offset of 1 is a cell.
        maps: A feature map, `(batch, rows, columns, channels)` of known rows and columns, or a list of several.
        return_attention_scores: Whether to return the weight of each cell of the first map too, float32 `(batch, heads,
            queries, rows, columns)`: each place's weight, shared among the cells around it.

    Output shape:
        `(batch, queries, width)`.

    Raises:
        ValueError: If `num_heads` does not divide the width, or a shape is another one.

    Example:

    >>> x, boxes = keras.ops.zeros((2, 5, 64)), keras.ops.ones((2, 5, 4)) / 2
    >>> DeformableAttention(num_heads=4, points=2)(x, boxes, keras.ops.zeros((2, 8, 6, 32))).shape
    (2, 5, 64)
    """

    def __init__(self, num_heads: Positive, points: Positive = 4, **kwargs):
        super().__init__(**kwargs)
        self.autocast = False  # references in half precision would be off by cells
        self.num_heads = num_heads
        self.points = points

    def build(self, x_shape, references_shape, maps_shape):
        shapes = list(maps_shape) if isinstance(maps_shape[0], (tuple, list)) else [maps_shape]
        if len(x_shape) != 3 or len(references_shape) != 3 or references_shape[-1] not in (2, 4):
            raise ValueError(
                "The queries must be (batch, queries, width), and their references (batch, queries, 4 or 2). Received: "
                f"shapes {tuple(x_shape)} and {tuple(references_shape)}"
            )
        if any(len(shape) != 4 or None in tuple(shape)[1:] for shape in shapes):
            raise ValueError(f"Maps must be (batch, rows, columns, channels). Received: {[*map(tuple, shapes)]}")
        if len({shape[-1] for shape in shapes}) > 1:
            raise ValueError(f"Maps must have the same channels. Received: {[*map(tuple, shapes)]}")
        width, dtype, count = x_shape[-1], self.dtype_policy, len(shapes)
        if width % self.num_heads:
            raise ValueError(f"A width of {width} cannot be split into {self.num_heads} heads: it must divide evenly.")
        self.head_dim = width // self.num_heads
        places = self.num_heads * count * self.points
        outputs = {"offsets": 2 * places, "shares": places, "value": width, "proj": width}
        inputs = {"value": shapes[0]}
        for name, size in outputs.items():
            kernel = "zeros" if name in ("offsets", "shares") else "glorot_uniform"
            dense = Dense(size, kernel_initializer=kernel, name=name, dtype=dtype)
            dense.build(inputs.get(name, x_shape))
            setattr(self, name, dense)
        self.offsets.bias.assign(rays(self.num_heads, count, self.points).reshape(-1))

    def call(self, x, references, maps, return_attention_scores=False):
        maps = maps if isinstance(maps, (list, tuple)) else [maps]
        lead = (-1, x.shape[1] or ops.shape(x)[1], self.num_heads)  # batch, queries, heads
        offsets = ops.reshape(self.offsets(x), (*lead, len(maps), self.points, 2))
        weights = ops.reshape(self.shares(x), (*lead, len(maps) * self.points))
        weights = ops.softmax(ops.cast(weights, "float32"), axis=-1)
        weights = ops.reshape(weights, (*lead, len(maps), self.points))
        offsets, references = (ops.cast(tensor, "float32") for tensor in (offsets, references))
        center = references[:, :, None, None, :2]
        summed, scores = [], None
        for level, features in enumerate(maps):
            rows, columns = features.shape[1:3]
            if references.shape[-1] == 4:
                steps = references[:, :, None, None, 2:] * (0.5 / self.points)
            else:
                steps = np.array([1 / columns, 1 / rows], "float32")
            places = center + offsets[:, :, :, level] * steps  # (batch, queries, heads, points, 2)
            value = ops.reshape(
                self.value(features), (-1, rows, columns, self.num_heads, x.shape[-1] // self.num_heads)
            )
            summed.append(sampled(value, places, weights[:, :, :, level]))
            if return_attention_scores and scores is None:
                scores = shares_of_cells(places, weights[:, :, :, level], rows, columns)
        output = self.proj(ops.reshape(sum(summed), (-1, lead[1], x.shape[-1])))
        return (output, scores) if return_attention_scores else output

    def compute_output_shape(self, x_shape, references_shape, maps_shape):
        return x_shape


def rays(heads, maps, points):
    """Returns the first offsets, float32 `(heads, maps, points, 2)`: heads look around, points further and further."""
    angles = 2 * math.pi / heads * np.arange(heads)
    rays = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    rays /= np.abs(rays).max(axis=-1, keepdims=True)
    return (rays[:, None, None] * np.arange(1, points + 1)[:, None] * np.ones((maps, 1, 1))).astype("float32")


def sampled(values, places, weights):
    """Returns weighted sums of values at places of a map, bilinear between the cells and zero outside.

    Two forms compute the same. For few queries and cells, weights of all cells are computed, as the product of weights
    of rows and columns; a matrix product then sums the values. Otherwise the four cells around each place are gathered.
    The limit `DENSE` is from 300 queries with 16 heads on two CPU cores: on 24 x 24 cells the first form takes 0.4 of
    the time on JAX and 1.5 on TensorFlow, on 36 x 36 cells 1.0 and 3.0.

    Args:
        values: Tensor, `(batch, rows, columns, heads, channels)`.
        places: Tensor, `(batch, queries, heads, points, 2)`: x and y as shares of the map.
        weights: Tensor, `(batch, queries, heads, points)`.

    Returns:
        Tensor, `(batch, queries, heads, channels)`, in the precision of the values.
    """
    (rows, columns), queries = values.shape[1:3], places.shape[1]
    dense = queries is not None and queries * rows * columns <= DENSE
    return (by_products if dense else by_gathering)(values, places, weights)


def by_products(values, places, weights):
    rows, columns, heads, channels = values.shape[1:]
    cells = shares_of_cells(places, weights, rows, columns)
    cells = ops.reshape(cells, (-1, heads, cells.shape[2] or ops.shape(cells)[2], rows * columns))
    values = ops.transpose(ops.reshape(values, (-1, rows * columns, heads, channels)), (0, 2, 1, 3))
    return ops.transpose(ops.matmul(ops.cast(cells, values.dtype), values), (0, 2, 1, 3))


def shares_of_cells(places, weights, rows, columns):
    """Returns the weight of each cell of a map, `(batch, heads, queries, rows, columns)`; see `sampled`."""
    places = ops.transpose(places, (0, 2, 1, 3, 4))  # (batch, heads, queries, points, 2)
    weights = ops.transpose(weights, (0, 2, 1, 3))[..., None]
    of_columns = _shares(places[..., :1] * columns - 0.5, columns) * weights  # (batch, heads, queries, points, columns)
    of_rows = _shares(places[..., 1:] * rows - 0.5, rows)
    return ops.matmul(ops.swapaxes(of_rows, -1, -2), of_columns)


def _shares(places, count):
    """Returns the bilinear share of each of `count` cells, `(..., count)`, at places counted in cells, `(..., 1)`."""
    return ops.relu(1 - ops.abs(places - np.arange(count, dtype="float32")))


def by_gathering(values, places, weights):
    rows, columns, heads, channels = values.shape[1:]
    sizes = np.array([columns, rows], "float32")
    queries, points = places.shape[1] or ops.shape(places)[1], places.shape[3]
    places = ops.transpose(places, (0, 2, 1, 3, 4)) * sizes - 0.5  # (batch, heads, queries, points, 2)
    weights = ops.transpose(weights, (0, 2, 1, 3))
    values = ops.reshape(ops.transpose(values, (0, 3, 1, 2, 4)), (-1, heads, rows * columns, channels))
    first, output = ops.floor(places), 0
    for corner in ((0, 0), (1, 0), (0, 1), (1, 1)):
        cell = first + np.array(corner, "float32")
        share = ops.prod(1 - ops.abs(places - cell), axis=-1) * weights
        inside = ops.all((cell >= 0) & (cell < sizes), axis=-1)
        share = ops.where(inside, share, 0)
        index = ops.cast(ops.clip(cell, 0, sizes - 1), "int32")
        index = ops.reshape(index[..., 1] * columns + index[..., 0], (-1, heads, queries * points))
        found = ops.take_along_axis(values, index[..., None], axis=2)  # (batch, heads, queries * points, channels)
        found = ops.reshape(found, (-1, heads, queries, points, channels))
        output = output + ops.sum(found * ops.cast(share, values.dtype)[..., None], axis=3)
    return ops.transpose(output, (0, 2, 1, 3))
