"""The layers of a Vision Transformer, each usable alone in any Keras model."""

from keras_vit.layers.add_to_image import AddToImage
from keras_vit.layers.attention import MultiHeadSelfAttention
from keras_vit.layers.conv_stem import ConvStem
from keras_vit.layers.cross_attention import CrossAttention
from keras_vit.layers.decoder_block import DecoderBlock
from keras_vit.layers.dpt_head import DPTHead
from keras_vit.layers.layer_scale import LayerScale
from keras_vit.layers.mask_decoder import MaskDecoder
from keras_vit.layers.merging_block import MergingBlock, Unmerge
from keras_vit.layers.mlp import MLP
from keras_vit.layers.patch_dropout import PatchDropout
from keras_vit.layers.patch_encoder import PatchEncoder
from keras_vit.layers.patches import Patches
from keras_vit.layers.pixel_head import PixelHead
from keras_vit.layers.point_boxes import PointBoxes
from keras_vit.layers.positions import Positions
from keras_vit.layers.query_decoder import QueryDecoder
from keras_vit.layers.relative import RelativePositions
from keras_vit.layers.rescale import Rescale
from keras_vit.layers.resnet_stem import ResNetStem
from keras_vit.layers.rotary import RotaryPositions
from keras_vit.layers.set_boxes import SetBoxes, SetHead
from keras_vit.layers.standardized_conv import StandardizedConv2D
from keras_vit.layers.stochastic_depth import StochasticDepth
from keras_vit.layers.token_pool import TokenPool
from keras_vit.layers.transformer_block import TransformerBlock

__all__ = [
    "MLP",
    "AddToImage",
    "ConvStem",
    "CrossAttention",
    "DPTHead",
    "DecoderBlock",
    "LayerScale",
    "MaskDecoder",
    "MergingBlock",
    "MultiHeadSelfAttention",
    "PatchDropout",
    "PatchEncoder",
    "Patches",
    "PixelHead",
    "PointBoxes",
    "Positions",
    "QueryDecoder",
    "RelativePositions",
    "ResNetStem",
    "Rescale",
    "RotaryPositions",
    "SetBoxes",
    "SetHead",
    "StandardizedConv2D",
    "StochasticDepth",
    "TokenPool",
    "TransformerBlock",
    "Unmerge",
]
