"""Deformable attention: each query attends to a few places of feature maps."""

import math

import keras
import numpy as np
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.bilinear import sampled, shares_of_cells
from keras_vit.layers.dense import Dense
from keras_vit.utils.typed import Positive


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
            places = places * np.array([columns, rows], "float32") - 0.5  # shares of the map to cells
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
