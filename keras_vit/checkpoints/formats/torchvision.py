"""Names in torchvision's files of its Vision Transformers."""

import math
import re

from keras_vit.checkpoints.formats import timm
from keras_vit.checkpoints.tables import IMAGENET, NEVER, need

BLOCK = r"^encoder\.layers\.encoder_layer_(\d+)\."
ALIASES = (  # to timm's names
    (r"^conv_proj\.", "patch_embed.proj."),
    (r"^class_token$", "cls_token"),
    (r"^encoder\.pos_embedding$", "pos_embed"),
    (rf"{BLOCK}ln_([12])\.", r"blocks.\1.norm\2."),
    (rf"{BLOCK}self_attention\.in_proj_", r"blocks.\1.attn.qkv."),
    (rf"{BLOCK}self_attention\.out_proj\.", r"blocks.\1.attn.proj."),
    (rf"{BLOCK}mlp\.(linear_1|0)\.", r"blocks.\1.mlp.fc1."),
    (rf"{BLOCK}mlp\.(linear_2|3)\.", r"blocks.\1.mlp.fc2."),
    (r"^encoder\.ln\.", "norm."),
    (r"^heads\.(head\.)?", "head."),  # the second in files of a model whose `heads` were replaced by a layer
)


def detect(names):
    return "conv_proj.weight" in names and any(re.match(BLOCK, name) for name in names)


def architecture(shapes, checkpoint):
    arguments, _, origins = timm.FORMAT.architecture(shapes, checkpoint._replace(config={}))
    patches = need(shapes, "pos_embed", 3)[1] - 1
    larger = math.isqrt(patches) * max(arguments["patch_size"]) != 224  # the weights of SWAG
    evaluation = {"resize": "crop", "crop_pct": 1.0 if larger else 0.875, "antialias": True}
    evaluation["interpolation"] = "bicubic" if larger else "bilinear"
    about = "torchvision's rule"
    return (
        arguments | IMAGENET,
        evaluation,
        origins | dict.fromkeys(("mean", "block.gelu", "norm.epsilon", "evaluation"), about),
    )


FORMAT = timm.FORMAT._replace(
    name="torchvision",
    detect=detect,
    aliases=ALIASES,
    canonical=None,
    express=None,
    ignored=NEVER,
    architecture=architecture,
    resample="bicubic-corners",
)
