"""Masks of a detector's queries: RF-DETR's segmentation head."""

import keras
from keras import ops

from keras_vit.layers.base import LAST, Layer
from keras_vit.layers.blocks.norms import norm
from keras_vit.layers.dense import Dense
from keras_vit.layers.heads.fusion import resized
from keras_vit.layers.tokenwise import tokenwise
from keras_vit.utils import checks
from keras_vit.utils.typed import Positive


@keras.saving.register_keras_serializable(package="keras_vit")
class InstanceMasks(Layer):
    """Predicts a mask for each query: its product with every cell of an enlarged feature map.

    Robinson et al. 2025 (RF-DETR, arXiv:2511.09554): the map goes through as many convolutional blocks as there are
    blocks of queries; the last of both give the mask. In training there is a mask of each stage: the queries after a
    block with the map after the block of that number, and the vectors of the first stage with the enlarged map itself.

    Args:
        size: `(rows, columns)` of the masks.
        depth: Number of blocks.

    Call arguments:
        features: A feature map, `(batch, rows, columns, width)`.
        queries: Tensor, `(batch, depth, queries, width)`, as a `DeformableDecoder` returns it.
        first: The vectors of the first stage, `(batch, queries, width)`, to get the masks of all stages; or `None`.

    Output shape:
        `(batch, queries, *size)`, float32 logits: the mask is where they are above 0. With `first` those of each stage,
        `(batch, 1 + depth, queries, rows * columns)`.

    Raises:
        ValueError: For an argument outside its range.

    Example:

    >>> InstanceMasks((14, 14), 2)(keras.ops.zeros((2, 7, 7, 32)), keras.ops.zeros((2, 2, 10, 32))).shape
    (2, 10, 14, 14)
    """

    def __init__(self, size: tuple[int, int], depth: Positive, **kwargs):
        super().__init__(**kwargs)
        self.size = checks.pair("size", size)
        self.depth = depth

    def build(self, features_shape, queries_shape):
        width, dtype = features_shape[-1], self.dtype_policy
        map_shape, tokens_shape = (None, *self.size, width), (None, queries_shape[2], width)
        self.blocks = [_Block(name=f"block{i}", dtype=dtype) for i in range(self.depth)]
        for block in self.blocks:
            block.build(map_shape)
        self.cells = Dense(width, name="cells", dtype=dtype)
        self.cells.build(map_shape)
        self.norm = norm("norm", rms_norm=False, epsilon=1e-5, dtype=dtype)
        self.norm.build(tokens_shape)
        self.fc1 = Dense(4 * width, lambda x: ops.gelu(x, approximate=False), name="fc1", dtype=dtype)
        self.fc1.build(tokens_shape)
        self.fc2 = Dense(width, name="fc2", dtype=dtype)
        self.fc2.build((*tokens_shape[:2], 4 * width))
        self.queries = Dense(width, name="queries", dtype=dtype)
        self.queries.build(tokens_shape)
        self.bias = self.add_weight((1,), "zeros", name="bias", dtype="float32")

    def call(self, features, queries, first=None):
        x = resized(features, self.size)
        stages = [] if first is None else [self._products(first, x)]
        for i, block in enumerate(self.blocks):
            x = block(x)
            if first is not None:
                stages.append(self._products(queries[:, i], tokenwise(self.cells, x)))
        if first is not None:
            return ops.stack(stages, axis=1)
        masks = self._products(queries[:, -1], tokenwise(self.cells, x))
        return ops.reshape(masks, (-1, ops.shape(masks)[1], *self.size))

    def _products(self, query, cells):
        """Returns logits of masks, `(batch, queries, cells)`, of queries, `(batch, queries, width)`, and a map."""
        query = query + tokenwise(self.fc2, tokenwise(self.fc1, tokenwise(self.norm, query)))
        cells = ops.reshape(cells, (-1, self.size[0] * self.size[1], cells.shape[-1]))
        masks = ops.matmul(tokenwise(self.queries, query), ops.swapaxes(cells, 1, 2))
        return ops.cast(masks, "float32") + ops.cast(self.bias, "float32")

    def compute_output_spec(self, features, queries, first=None):
        batch, depth, count = queries.shape[:3]
        shape = (batch, count, *self.size) if first is None else (batch, 1 + depth, count, self.size[0] * self.size[1])
        return keras.KerasTensor(shape, "float32")


class _Block(Layer):
    """A depthwise 3 x 3 convolution, a normalization and a dense layer with a GELU, on a residual branch."""

    def build(self, input_shape):
        dtype = self.dtype_policy
        self.depthwise = keras.layers.DepthwiseConv2D(
            3, padding="same", data_format=LAST, name="depthwise", dtype=dtype
        )
        self.norm = norm("norm", rms_norm=False, epsilon=1e-6, dtype=dtype)
        self.dense = Dense(input_shape[-1], lambda x: ops.gelu(x, approximate=False), name="dense", dtype=dtype)
        for layer in (self.depthwise, self.norm, self.dense):
            layer.build(input_shape)

    def call(self, x):
        return x + tokenwise(self.dense, self.norm(self.depthwise(x)))

    def compute_output_shape(self, input_shape):
        return input_shape


@keras.saving.register_keras_serializable(package="keras_vit")
class BoxesAndMasks(Layer):
    """Packs boxes with scores and masks into one output.

    Call arguments:
        x: List of a tensor of boxes and scores, `(batch, most, 4 + classes)`, and one of the logits of masks,
            `(batch, most, rows, columns)`.

    Output shape:
        `(batch, most, 4 + classes + rows * columns)`, float32.
    """

    gives = "instances"  # see `models.kinds`

    def __init__(self, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})

    def build(self, shapes):
        self.units = shapes[0][-1] - 4  # classes
        self.mask_size = tuple(shapes[1][2:])  # (rows, columns)

    def call(self, x):
        boxes, masks = x
        flat = ops.reshape(masks, (-1, masks.shape[1], masks.shape[2] * masks.shape[3]))
        return ops.concatenate([boxes, flat], axis=-1)

    def compute_output_shape(self, shapes):
        boxes, masks = shapes
        return *boxes[:2], boxes[2] + masks[2] * masks[3]
