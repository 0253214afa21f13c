"""The decoder of RF-DETR: the best places of a feature map become boxes, which queries refine."""

import math

import keras
import numpy as np
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.blocks.deformable_block import DeformableBlock
from keras_vit.layers.blocks.norms import norm
from keras_vit.layers.dense import Dense
from keras_vit.layers.heads.feature_projector import FeatureProjector
from keras_vit.layers.heads.set_boxes import box_layers
from keras_vit.layers.tokenwise import tokenwise
from keras_vit.utils import checks
from keras_vit.utils.taking import rows_of
from keras_vit.utils.typed import AboveZero, Positive, Rate

SIDE = 0.05  # of a proposal, as a share of the image
EDGE = 0.01  # proposals whose center is nearer to the image's edge are none
PRIOR = 0.01  # score of each class before training, as in "Focal Loss" (arXiv:1708.02002)


@keras.saving.register_keras_serializable(package="keras_vit")
class DeformableDecoder(Layer):
    """Two stages of boxes from the tokens of a Vision Transformer.

    Robinson et al. 2025 (RF-DETR, arXiv:2511.09554), after LW-DETR (Chen et al. 2024, arXiv:2406.03459): a
    `FeatureProjector` makes one map of the tokens of several blocks; each of its cells proposes a box and scores it;
    the best ones become references of learned queries, which attend to the map around them in deformable blocks. One
    head predicts classes and boxes after each block, as offsets from the references.

    Args:
        grid: `(rows, columns)` of the image's patches.
        units: Number of classes.
        queries: Number of boxes, at most that of the patches.
        width: Channels of the map and of the queries, a multiple of 4.
        depth: Number of blocks.
        num_heads: Number of heads of the self-attention.
        cross_heads: Number of heads of the attention to the map.
        points: Number of places for each query and head.
        mlp_dim: Channels between the two dense layers of each MLP.
        steps: See `FeatureProjector`.
        groups: Number of groups of queries in training, each with proposals of its own (Group DETR, Chen et al. 2023,
            arXiv:2207.13085). Otherwise only the first group is computed.
        projector_epsilon: Epsilon of the projector's normalizations after convolutions.
        dropout: Dropout rate in the blocks.

    Call arguments:
        tokens: Tensor of tokens, or a list of several blocks'.
        return_queries: Whether to return the queries after each block and the map too.
        return_first: Whether to return the vectors of the first stage's boxes too.
        return_attention_scores: Whether to return the last block's weights of the map's cells too, float32 `(batch,
            heads, queries, rows, columns)`; see `DeformableAttention`.
        training: Whether all groups are computed, and dropout is on.

    Input shape:
        `(batch, tokens, width)` each, of known sizes: any number of tokens, then `rows * columns` of patches.

    Output shape:
        `(batch, 1 + depth, queries, 4 + units)`, in training `groups * queries`, float32: of the first stage, then
        after each block, the top, left, bottom and right as shares of the image, which may lie outside, and the logit
        of each class. With `return_queries` also `(batch, depth, queries, width)` and `(batch, rows, columns, width)`,
        with `return_first` `(batch, queries, width)`.

    Raises:
        ValueError: For an argument outside its range, or another shape.

    Example:

    >>> tokens = [keras.ops.zeros((2, 50, 64))] * 2
    >>> DeformableDecoder((7, 7), 3, 10, width=32, depth=2, num_heads=4, cross_heads=4)(tokens).shape
    (2, 3, 10, 7)
    """

    def __init__(
        self,
        grid: tuple[int, int],
        units: Positive,
        queries: Positive = 300,
        *,
        width: Positive = 256,
        depth: Positive = 3,
        num_heads: Positive = 8,
        cross_heads: Positive = 16,
        points: Positive = 2,
        mlp_dim: Positive = 2048,
        steps: Positive = 3,
        groups: Positive = 1,
        projector_epsilon: AboveZero = 1e-6,
        dropout: Rate = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.autocast = False
        self.grid = checks.pair("grid", grid)
        if queries > math.prod(self.grid):
            raise ValueError(
                f"`queries` must be at most the number of patches, {math.prod(self.grid)}. Received: queries={queries}"
            )
        if width % 4:
            raise ValueError(f"`width` must be a multiple of 4. Received: width={width}")
        self.units = units
        self.queries = queries
        self.width = width
        self.depth = depth
        self.num_heads = num_heads
        self.cross_heads = cross_heads
        self.points = points
        self.mlp_dim = mlp_dim
        self.steps = steps
        self.groups = groups
        self.projector_epsilon = projector_epsilon
        self.dropout = dropout

    def build(self, tokens_shape):
        shapes = list(tokens_shape) if isinstance(tokens_shape[0], (tuple, list)) else [tokens_shape]
        if any(len(shape) != 3 or None in shape[1:] or shape[1] < math.prod(self.grid) for shape in shapes):
            raise ValueError(
                f"Tokens must be (batch, tokens, width) of known sizes, with {self.grid[0]} x {self.grid[1]} patches. "
                f"Received: {[*map(tuple, shapes)]}"
            )
        dtype, width, count = self.dtype_policy, self.width, self.groups * self.queries
        map_shape, x_shape = (None, *self.grid, width), (None, count, width)
        self.projector = FeatureProjector(width, self.steps, self.projector_epsilon, name="projector", dtype=dtype)
        self.projector.build((None, *self.grid, sum(shape[-1] for shape in shapes)))
        self.proposals, self.valid = proposals(self.grid)
        self.stages = [FirstStage(self.units, self.queries, name=f"stage{i}", dtype=dtype) for i in range(self.groups)]
        for stage in self.stages:
            stage.build((None, math.prod(self.grid), width))
        self.references = self.add_weight((count, 4), "zeros", name="references", dtype="float32")
        self.query = self.add_weight((count, width), "random_normal", name="query")
        self.places = [Dense(width, a, name=f"place{i}", dtype=dtype) for i, a in enumerate(("relu", None))]
        for layer, channels in zip(self.places, (2 * width, width)):
            layer.build((None, None, channels))
        self.blocks = []
        for i in range(self.depth):
            sizes = (self.num_heads, self.cross_heads, self.points, self.mlp_dim)
            block = DeformableBlock(*sizes, dropout=self.dropout, name=f"block{i}", dtype=dtype)
            block.build(x_shape, map_shape)
            self.blocks.append(block)
        self.norm = norm("norm", rms_norm=False, epsilon=1e-5, dtype=dtype)
        self.norm.build(x_shape)
        self.head = RefiningHead(self.units, name="head", dtype=dtype)
        self.head.build(x_shape)

    def call(self, tokens, return_queries=False, return_first=False, return_attention_scores=False, training=None):
        tokens, (rows, columns) = tokens if isinstance(tokens, (list, tuple)) else [tokens], self.grid
        tokens = [ops.cast(x, self.compute_dtype)[:, x.shape[1] - rows * columns :] for x in tokens]
        features = ops.reshape(ops.concatenate(tokens, axis=-1), (-1, rows, columns, sum(x.shape[-1] for x in tokens)))
        features = self.projector(features)  # (batch, rows, columns, width)
        groups = self.groups if training else 1
        count, batch = groups * self.queries, ops.shape(features)[0]
        cells = ops.reshape(features, (-1, rows * columns, self.width))
        firsts = [stage(cells, self.proposals, self.valid) for stage in self.stages[:groups]]
        boxes, logits, first = (
            ops.concatenate(parts, axis=1) for parts in zip(*firsts)
        )  # (batch, groups * queries, _)
        references = refined(ops.stop_gradient(boxes), self.references[:count])
        positions = self._positions(references)
        x = ops.broadcast_to(ops.cast(self.query[:count], self.compute_dtype), (batch, count, self.width))
        outputs, queries = [_packed(boxes, logits)], []
        for block in self.blocks:
            looked = return_attention_scores and block is self.blocks[-1]
            x = block(
                x, positions, references, features, groups=groups, return_attention_scores=looked, training=training
            )
            x, *scores = x if looked else (x,)
            queries.append(tokenwise(self.norm, x))
            outputs.append(_packed(*self.head(queries[-1], references)))
        outputs = ops.stack(outputs, axis=1)
        more = ([ops.stack(queries, axis=1), features] if return_queries else []) + ([first] if return_first else [])
        more += scores
        return (outputs, *more) if more else outputs

    def _positions(self, references):
        """Returns the positions of references, `(batch, queries, width)`: sines and cosines through two layers."""
        half = self.width // 2
        rates = 2 * math.pi / 10000 ** (2 * (np.arange(half) // 2) / half)
        places = ops.stack([references[..., i] for i in (1, 0, 2, 3)], axis=-1)[..., None]
        angles = places * rates.astype("float32")  # (batch, queries, 4, half)
        code = ops.where(np.arange(half) % 2 == 0, ops.sin(angles), ops.cos(angles))
        code = ops.reshape(code, (-1, ops.shape(code)[1], 4 * half))
        for layer in self.places:
            code = tokenwise(layer, ops.cast(code, self.compute_dtype))
        return code

    def compute_output_shape(self, tokens_shape):
        batch = tokens_shape[0][0] if isinstance(tokens_shape[0], (tuple, list)) else tokens_shape[0]
        return batch, 1 + self.depth, self.queries, 4 + self.units

    def compute_output_spec(self, tokens, return_queries=False, return_first=False, training=None):
        shape = self.compute_output_shape((tokens[0] if isinstance(tokens, (list, tuple)) else tokens).shape)
        outputs = keras.KerasTensor(shape, "float32")
        queries = self.queries, self.width
        others = [(self.depth, *queries), (*self.grid, self.width)] if return_queries else []
        others += [queries] if return_first else []
        others = [keras.KerasTensor((shape[0], *other), self.compute_dtype) for other in others]
        return (outputs, *others) if others else outputs


class RefiningHead(Layer):
    """Predicts boxes as offsets from references, by three dense layers, and the logits of classes, by one.

    Call arguments:
        x: Tensor, `(batch, queries, width)`.
        references: float32 tensor, `(batch, queries, 4)` or `(queries, 4)`: center x, center y, width and height.

    Returns:
        Boxes like the references, and logits, `(batch, queries, units)`, both float32.
    """

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.autocast = False
        self.units = units

    def build(self, x_shape):
        dtype, bias = self.dtype_policy, keras.initializers.Constant(math.log(PRIOR / (1 - PRIOR)))
        self.classes = Dense(self.units, bias_initializer=bias, name="class", dtype=dtype)
        self.boxes = box_layers("box", x_shape[-1], dtype, start="zeros")  # boxes begin as the references
        for layer in (self.classes, *self.boxes):
            layer.build(x_shape)

    def call(self, x, references):
        offsets = x
        for layer in self.boxes:
            offsets = tokenwise(layer, offsets)
        return refined(references, offsets), ops.cast(tokenwise(self.classes, x), "float32")


class FirstStage(Layer):
    """Scores the proposals of all cells of a map, and refines the best.

    Call arguments:
        cells: Tensor, `(batch, cells, width)`.
        proposals: float32 array, `(cells, 4)`.
        valid: float32 array, `(cells,)`: 1 where a cell has a proposal, else 0.

    Returns:
        The `queries` best boxes, `(batch, queries, 4)`, their logits, `(batch, queries, units)`, and the vectors that
        these are predicted from, `(batch, queries, width)`; best first.
    """

    def __init__(self, units, queries, **kwargs):
        super().__init__(**kwargs)
        self.autocast = False
        self.units = units
        self.queries = queries

    def build(self, cells_shape):
        self.memory = Dense(cells_shape[-1], name="memory", dtype=self.dtype_policy)
        self.norm = norm("norm", rms_norm=False, epsilon=1e-5, dtype=self.dtype_policy)
        self.head = RefiningHead(self.units, name="head", dtype=self.dtype_policy)
        for layer in (self.memory, self.norm, self.head):
            layer.build(cells_shape)

    def call(self, cells, proposals, valid):
        x = cells * ops.cast(valid[:, None], cells.dtype)
        x = tokenwise(self.norm, tokenwise(self.memory, x))
        scores = ops.max(ops.cast(tokenwise(self.head.classes, x), "float32"), axis=-1)
        best = ops.top_k(ops.where(valid > 0, scores, -1e30), self.queries)[1]
        best = ops.cast(best, "int32")  # (batch, queries)
        x = rows_of(x, best)
        return *self.head(x, ops.take(ops.convert_to_tensor(proposals), best, axis=0)), x


def proposals(grid):
    """Returns each cell's proposal, float32 `(cells, 4)`, and whether it is one, float32 `(cells,)`, 0 or 1.

    A proposal is center x, center y, width and height, as shares of the image.
    """
    rows, columns = np.indices(grid).reshape(2, -1)
    sides = np.full(rows.shape, SIDE)
    boxes = np.stack([(columns + 0.5) / grid[1], (rows + 0.5) / grid[0], sides, sides], axis=-1).astype("float32")
    return boxes, np.all((boxes > EDGE) & (boxes < 1 - EDGE), axis=-1).astype("float32")


def refined(boxes, offsets):
    """Returns boxes moved by offsets in units of their sides, and scaled by powers of e; float32, `(..., 4)` each."""
    offsets = ops.cast(offsets, "float32")
    sides = boxes[..., 2:]
    return ops.concatenate([offsets[..., :2] * sides + boxes[..., :2], ops.exp(offsets[..., 2:]) * sides], axis=-1)


def _packed(boxes, logits):
    """Returns top, left, bottom and right of boxes by center x, center y, width and height; then the logits."""
    center, half = boxes[..., 1::-1], boxes[..., 3:1:-1] / 2
    return ops.concatenate([center - half, center + half, ops.cast(logits, "float32")], axis=-1)
