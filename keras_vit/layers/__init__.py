"""The layers of a Vision Transformer, each usable alone in any Keras model."""

from keras_vit.layers.attention import MultiHeadSelfAttention
from keras_vit.layers.layer_scale import LayerScale
from keras_vit.layers.mlp import MLP
from keras_vit.layers.patch_encoder import PatchEncoder
from keras_vit.layers.patches import Patches
from keras_vit.layers.stochastic_depth import StochasticDepth
from keras_vit.layers.token_pool import TokenPool
from keras_vit.layers.transformer_block import TransformerBlock

__all__ = [
    "MLP",
    "LayerScale",
    "MultiHeadSelfAttention",
    "PatchEncoder",
    "Patches",
    "StochasticDepth",
    "TokenPool",
    "TransformerBlock",
]
