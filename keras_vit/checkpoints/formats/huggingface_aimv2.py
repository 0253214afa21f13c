"""Names in Hugging Face transformers' files: AIMv2's image towers."""

import math
import re

from keras_vit.checkpoints.formats import transformers_config
from keras_vit.checkpoints.formats.huggingface_clip import TABLE, TEXT, left_out
from keras_vit.checkpoints.tables import CONV, LINEAR, SAME, Assumed, Format, Row, blocks, joined, need
from keras_vit.models.options import merged

BLOCK = "encoder.layers.{i}"
ATTENTION, MLP = f"{BLOCK}.attention", f"{BLOCK}.ffn"
QKV, GATES = (f"{ATTENTION}.{{}}_proj", "qkv"), (f"{MLP}.{{}}_proj", ("gate", "up"))


def _dense(ours, pattern, parts):
    """Two rows: dense layers side by side, and their biases."""
    names = [pattern.replace("{}", part) for part in parts]
    return (
        Row(f"{ours}/kernel", tuple(f"{name}.weight" for name in names), joined(LINEAR, len(names))),
        Row(f"{ours}/bias", tuple(f"{name}.bias" for name in names), joined(SAME, len(names))),
    )


ROWS = (
    Row("encoder/projection/kernel", "embeddings.patch_embed.weight", CONV),
    Row("encoder/projection/bias", "embeddings.patch_embed.bias", SAME),
    Row("encoder/norm/scale", "embeddings.rms_norm.weight", SAME),
    Row("encoder/position_embedding", "embeddings.position_embedding.weight", TABLE),
    Row("block_{i}/norm1/scale", f"{BLOCK}.rms_norm1.weight", SAME),
    *_dense("block_{i}/attention/qkv", *QKV),
    *_dense("block_{i}/attention/proj", f"{ATTENTION}.{{}}_proj", ("out",)),
    Row("block_{i}/norm2/scale", f"{BLOCK}.rms_norm2.weight", SAME),
    *_dense("block_{i}/mlp/fc1", *GATES),
    *_dense("block_{i}/mlp/fc2", f"{MLP}.{{}}_proj", ("down",)),
    Row("norm/scale", "rms_norm.weight", SAME),
)
COMMON = {"hidden_act": "gelu", "layer_norm_eps": 1e-5}  # the activation is that of MLPs without gates
DEFAULTS = {"aimv2": COMMON | {"num_attention_heads": 8}, "aimv2_vision_model": COMMON | {"num_attention_heads": 8}}


def detect(names):
    return any(name.endswith("embeddings.rms_norm.weight") for name in names)


def architecture(shapes, checkpoint):
    width, channels, *patch_size = need(shapes, "embeddings.patch_embed.weight", 4)
    config = checkpoint.config
    tower = (
        {"model_type": config["model_type"]} | config["vision_config"] if "vision_config" in config else dict(config)
    )
    gate = tower.pop("hidden_act", "silu")
    if gate != "silu":
        raise ValueError(f"`hidden_act` of AIMv2's gated MLPs must be silu. Received: {gate!r}")
    if "embeddings.position_embedding.weight" not in shapes:
        raise ValueError(
            "AIMv2 of native resolution (is_native) cannot be loaded: it computes positions for each image size, and "
            f"the file has none. Received: {str(checkpoint.path)!r}"
        )
    tower |= {"layer_norm_eps": tower["rms_norm_eps"]} if "rms_norm_eps" in tower else {}
    bare = {None: COMMON | {"num_attention_heads": width // 128}}
    config_arguments, origins = transformers_config.read_model(tower, width, DEFAULTS | bare)
    statistics, evaluation, prepared = transformers_config.read_processor(checkpoint.processor, "CLIP")
    count, _ = need(shapes, "embeddings.position_embedding.weight", 2)
    side, biases = (
        math.isqrt(count),
        [f"{name}.bias".format(i=0) for name in (f"{ATTENTION}.out_proj", f"{MLP}.down_proj")],
    )
    if len({name in shapes for name in biases}) == 2:
        raise ValueError("AIMv2 with biases in the attention or in the MLP alone cannot be loaded.")
    arguments = {
        "patch_size": tuple(patch_size),
        "channels": channels,
        "width": width,
        "depth": blocks(shapes, re.compile(r"encoder\.layers\.(\d+)\.")),
        "mlp_dim": need(shapes, f"{MLP}.down_proj.weight".format(i=0), 2)[1],
        "block": {
            "swiglu": True,
            "qkv_bias": f"{ATTENTION}.q_proj.bias".format(i=0) in shapes,
            "proj_bias": biases[0] in shapes,
        },
        "norm": {"rms_norm": True},
        "tokens": {"patch_norm": True, "class_token": False},
        "pooling": "gap",
        "final_norm": "before",
        "num_classes": 0,
        "image_size": tuple(side * step for step in patch_size),
    }
    if "head.cls_token" in shapes:
        origins["pooling"] = Assumed("the file's attention pooling, whose query has no matrix, is left out")
    return merged(arguments, config_arguments, statistics), evaluation, origins | prepared | left_out(checkpoint)


FORMAT = Format(
    name="huggingface-aimv2",
    rows=ROWS,
    detect=detect,
    aliases=((r"^vision_model\.", ""),),
    architecture=architecture,
    ignored=rf"{TEXT}|embeddings\.position_ids",
    head_names=r"head\..*|visual_projection\..*",
)
