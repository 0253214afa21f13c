"""A decoder block whose queries attend to places of a feature map."""

import keras
from keras import ops

from keras_vit.layers.attention.cross_attention import CrossAttention
from keras_vit.layers.attention.deformable import DeformableAttention
from keras_vit.layers.base import Layer
from keras_vit.layers.blocks.mlp import MLP
from keras_vit.layers.blocks.norms import norm
from keras_vit.layers.tokenwise import tokenwise
from keras_vit.utils.typed import AboveZero, Positive, Rate


@keras.saving.register_keras_serializable(package="keras_vit")
class DeformableBlock(Layer):
    """Self-attention of queries, deformable attention to a feature map, then an MLP; a normalization after each.

    Zhu et al. 2021 (arXiv:2010.04159), section 4.2.

    Args:
        num_heads: Number of heads of the self-attention; must divide the width.
        cross_heads: Number of heads of the attention to the map; must divide the width.
        points: Number of places for each query and head.
        mlp_dim: Channels between the two dense layers of the MLP.
        epsilon: Epsilon of the layer normalizations.
        dropout: Rate of the dropout after each projection and in the MLP.

    Call arguments:
        x: Tensor of queries, `(batch, groups * queries, width)`.
        positions: Tensor added to `x` for queries and keys, of the same shape.
        references: Tensor, `(batch, groups * queries, 4)`, see `DeformableAttention`.
        features: A feature map, `(batch, rows, columns, channels)`.
        groups: Number of groups; queries attend to their own group.
        return_attention_scores: Whether to return the weights of the map's cells too; see `DeformableAttention`.
        training: Whether dropout is on.

    Output shape:
        As `x`.
    """

    def __init__(
        self,
        num_heads: Positive,
        cross_heads: Positive,
        points: Positive,
        mlp_dim: Positive,
        *,
        epsilon: AboveZero = 1e-5,
        dropout: Rate = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.autocast = False  # references in half precision would be off by cells
        self.num_heads = num_heads
        self.cross_heads = cross_heads
        self.points = points
        self.mlp_dim = mlp_dim
        self.epsilon = epsilon
        self.dropout = dropout

    def build(self, x_shape, features_shape):
        dtype = self.dtype_policy
        self.attention = CrossAttention(
            self.num_heads, dropout=self.dropout, attention_dropout=self.dropout, name="attention", dtype=dtype
        )
        self.attention.build(x_shape, x_shape)
        self.cross = DeformableAttention(self.cross_heads, self.points, name="cross", dtype=dtype)
        self.cross.build(x_shape, (*x_shape[:2], 4), features_shape)
        self.drop = keras.layers.Dropout(self.dropout, name="drop", dtype=dtype)
        self.mlp = MLP(self.mlp_dim, gelu="relu", dropout=self.dropout, name="mlp", dtype=dtype)
        self.mlp.build(x_shape)
        for i in (1, 2, 3):
            layer = norm(f"norm{i}", rms_norm=False, epsilon=self.epsilon, dtype=dtype)
            layer.build(x_shape)
            setattr(self, f"norm{i}", layer)

    def call(self, x, positions, references, features, groups=1, return_attention_scores=False, training=None):
        shape, width = ops.shape(x), x.shape[-1]
        own, places = (ops.reshape(part, (-1, shape[1] // groups, width)) for part in (x, positions))
        y = self.attention(own, own, positions=places, context_positions=places, training=training)
        x = tokenwise(self.norm1, x + ops.reshape(y, shape))
        y = self.cross(x + positions, references, features, return_attention_scores=return_attention_scores)
        y, *scores = y if return_attention_scores else (y,)
        x = tokenwise(self.norm2, x + self.drop(y, training=training))
        x = tokenwise(self.norm3, x + self.mlp(x, training=training))
        return (x, *scores) if return_attention_scores else x

    def compute_output_shape(self, x_shape, *others):
        return x_shape
