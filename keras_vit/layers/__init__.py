"""The layers of a Vision Transformer, each usable alone in any Keras model."""

from keras_vit.layers.attention.attention import MultiHeadSelfAttention
from keras_vit.layers.attention.cross_attention import CrossAttention
from keras_vit.layers.attention.deformable import DeformableAttention
from keras_vit.layers.attention.relative import RelativePositions
from keras_vit.layers.attention.rotary import RotaryPositions
from keras_vit.layers.attention.texture_transfer import TextureTransfer
from keras_vit.layers.blocks.adaptive_block import AdaptiveBlock
from keras_vit.layers.blocks.decoder_block import DecoderBlock
from keras_vit.layers.blocks.layer_scale import LayerScale
from keras_vit.layers.blocks.merging_block import MergingBlock, Unmerge
from keras_vit.layers.blocks.mlp import MLP
from keras_vit.layers.blocks.stochastic_depth import StochasticDepth
from keras_vit.layers.blocks.transformer_block import TransformerBlock
from keras_vit.layers.heads.adaptive_head import AdaptiveHead
from keras_vit.layers.heads.add_to_image import AddToImage
from keras_vit.layers.heads.deformable_decoder import DeformableDecoder
from keras_vit.layers.heads.depth_head import DepthHead
from keras_vit.layers.heads.dpt_head import DPTHead
from keras_vit.layers.heads.end_pool import EndPool
from keras_vit.layers.heads.film_decoder import FiLMDecoder
from keras_vit.layers.heads.frame_mean import FrameMean
from keras_vit.layers.heads.instance_masks import BoxesAndMasks, InstanceMasks
from keras_vit.layers.heads.job_conv import JobConv2D, JobInput
from keras_vit.layers.heads.mask_decoder import MaskDecoder
from keras_vit.layers.heads.pixel_head import PixelHead
from keras_vit.layers.heads.place_boxes import Objectness, PlaceBoxes
from keras_vit.layers.heads.point_boxes import PointBoxes
from keras_vit.layers.heads.pose_head import PoseHead
from keras_vit.layers.heads.query_decoder import QueryDecoder
from keras_vit.layers.heads.query_logits import QueryLogits
from keras_vit.layers.heads.query_map import QueryMap
from keras_vit.layers.heads.query_masks import QueryMasks
from keras_vit.layers.heads.set_boxes import SetBoxes, SetHead
from keras_vit.layers.heads.similarity import Similarity
from keras_vit.layers.heads.token_pool import TokenPool
from keras_vit.layers.heads.top_boxes import TopBoxes
from keras_vit.layers.inputs.affine_sampling import AffineSampling
from keras_vit.layers.inputs.conv_stem import ConvStem
from keras_vit.layers.inputs.frames import Frames
from keras_vit.layers.inputs.padding_mask import PaddingMask
from keras_vit.layers.inputs.patch_dropout import PatchDropout
from keras_vit.layers.inputs.patch_encoder import PatchEncoder
from keras_vit.layers.inputs.patches import Patches
from keras_vit.layers.inputs.positions import Positions
from keras_vit.layers.inputs.query_tokens import QueryTokens
from keras_vit.layers.inputs.rescale import Rescale
from keras_vit.layers.inputs.resnet_stem import ResNetStem
from keras_vit.layers.inputs.shift_image import ShiftImage
from keras_vit.layers.inputs.standardized_conv import StandardizedConv2D
from keras_vit.layers.inputs.time_embedding import TimeEmbedding
from keras_vit.layers.inputs.time_steps import TimeSteps
from keras_vit.layers.inputs.tubelets import Tubelets
from keras_vit.layers.inputs.words import Words

__all__ = [
    "MLP",
    "AdaptiveBlock",
    "AdaptiveHead",
    "AddToImage",
    "AffineSampling",
    "BoxesAndMasks",
    "ConvStem",
    "CrossAttention",
    "DPTHead",
    "DecoderBlock",
    "DeformableAttention",
    "DeformableDecoder",
    "DepthHead",
    "EndPool",
    "FiLMDecoder",
    "FrameMean",
    "Frames",
    "InstanceMasks",
    "JobConv2D",
    "JobInput",
    "LayerScale",
    "MaskDecoder",
    "MergingBlock",
    "MultiHeadSelfAttention",
    "Objectness",
    "PaddingMask",
    "PatchDropout",
    "PatchEncoder",
    "Patches",
    "PixelHead",
    "PlaceBoxes",
    "PointBoxes",
    "PoseHead",
    "Positions",
    "QueryDecoder",
    "QueryLogits",
    "QueryMap",
    "QueryMasks",
    "QueryTokens",
    "RelativePositions",
    "ResNetStem",
    "Rescale",
    "RotaryPositions",
    "SetBoxes",
    "SetHead",
    "ShiftImage",
    "Similarity",
    "StandardizedConv2D",
    "StochasticDepth",
    "TextureTransfer",
    "TimeEmbedding",
    "TimeSteps",
    "TokenPool",
    "TopBoxes",
    "TransformerBlock",
    "Tubelets",
    "Unmerge",
    "Words",
]
