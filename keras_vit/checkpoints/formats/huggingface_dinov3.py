"""Names in Hugging Face transformers' files: DINOv3."""

import re

import numpy as np

from keras_vit.checkpoints.formats import transformers_config
from keras_vit.checkpoints.formats.transformers_config import CONFIG, PROCESSOR
from keras_vit.checkpoints.tables import (
    CONV,
    DINOV3_HEADS,
    LINEAR,
    SAME,
    Assumed,
    Format,
    Row,
    blocks,
    joined,
    need,
    torch_dense,
    torch_norm,
)
from keras_vit.layers.attention.rotary import ROTARY
from keras_vit.models.options import merged

BLOCK = "layer.{i}"
QUERY, KEY, VALUE = (f"{BLOCK}.attention.{part}_proj" for part in "qkv")
GATE, UP = (f"{BLOCK}.mlp.{part}_proj" for part in ("gate", "up"))


ROWS = (
    Row("encoder/projection/kernel", "embeddings.patch_embeddings.weight", CONV),
    Row("encoder/projection/bias", "embeddings.patch_embeddings.bias", SAME),
    Row("encoder/class_token", "embeddings.cls_token", SAME),
    Row("encoder/register_tokens", "embeddings.register_tokens", SAME),
    *torch_norm("block_{i}/norm1", f"{BLOCK}.norm1"),
    Row("block_{i}/attention/qkv/kernel", (f"{QUERY}.weight", f"{KEY}.weight", f"{VALUE}.weight"), joined(LINEAR)),
    Row("block_{i}/attention/qkv/bias", (f"{QUERY}.bias", f"{KEY}.bias", f"{VALUE}.bias"), joined(SAME)),
    Row("block_{i}/attention/qv_bias", (f"{QUERY}.bias", f"{VALUE}.bias"), joined(SAME, 2)),
    *torch_dense("block_{i}/attention/proj", f"{BLOCK}.attention.o_proj"),
    Row("block_{i}/scale1/gamma", f"{BLOCK}.layer_scale1.lambda1", SAME),
    *torch_norm("block_{i}/norm2", f"{BLOCK}.norm2"),
    *torch_dense("block_{i}/mlp/fc2", f"{BLOCK}.mlp.down_proj"),
    Row("block_{i}/scale2/gamma", f"{BLOCK}.layer_scale2.lambda1", SAME),
    *torch_norm("norm", "norm"),
)
PLAIN_ROWS = torch_dense("block_{i}/mlp/fc1", UP)
GATED_ROWS = (
    Row("block_{i}/mlp/fc1/kernel", (f"{GATE}.weight", f"{UP}.weight"), joined(LINEAR, 2)),
    Row("block_{i}/mlp/fc1/bias", (f"{GATE}.bias", f"{UP}.bias"), joined(SAME, 2)),
)

ALIASES = ((r"^model\.", ""),)
COMMON = {"hidden_act": "gelu", "layer_norm_eps": 1e-5}


def detect(names):
    scaled = any(name.endswith("layer.0.layer_scale1.lambda1") for name in names)
    return scaled and any(name.endswith("embeddings.patch_embeddings.weight") for name in names)


def detect_gated(names):
    return detect(names) and any(name.endswith(".mlp.gate_proj.weight") for name in names)


def architecture(shapes, checkpoint):
    width, channels, *patch_size = need(shapes, "embeddings.patch_embeddings.weight", 4)
    config, (block, query, key, value) = checkpoint.config, (name.format(i=0) for name in (BLOCK, QUERY, KEY, VALUE))
    gated = f"{block}.mlp.gate_proj.weight" in shapes
    if gated:
        gate = config.get("hidden_act", "gelu") if config else "silu"
        if gate != "silu":
            raise ValueError(f"`hidden_act` of gated MLPs must be silu. Received: {gate!r}")
        config = {name: value for name, value in config.items() if name != "hidden_act"}
    defaults = {None: COMMON | {"num_attention_heads": DINOV3_HEADS.get(width)}}
    defaults["dinov3_vit"] = COMMON | {"num_attention_heads": 6}
    config_arguments, origins = transformers_config.read_model(config, width, defaults)
    biased = f"{query}.bias" in shapes or f"{value}.bias" in shapes
    registers = need(shapes, "embeddings.register_tokens", 3)[1] if "embeddings.register_tokens" in shapes else 0
    base = float(config.get("rope_theta", ROTARY["dinov3"]["base"]))
    statistics, evaluation, prepared = transformers_config.read_processor(checkpoint.processor, "DINOv3")
    if not checkpoint.processor:
        prepared["mean"] = Assumed("DINOv3's; its weights for satellite images have others")
    arguments = {
        "patch_size": tuple(patch_size),
        "channels": channels,
        "width": width,
        "depth": blocks(shapes, re.compile(r"layer\.(\d+)\.")),
        "mlp_dim": need(shapes, f"{block}.mlp.down_proj.weight", 2)[1],
        "block": {
            "swiglu": gated,
            "qkv_bias": biased,
            "key_bias": f"{key}.bias" in shapes or not biased,
            "layer_scale": 1.0,
        },
        "tokens": {"class_token": True, "registers": registers},
        "position": None,
        "rotary": "dinov3" if base == ROTARY["dinov3"]["base"] else {**ROTARY["dinov3"], "base": base},
        "pooling": "token",
        "num_classes": 0,
    }
    return merged(arguments, config_arguments, statistics), evaluation, origins | prepared


def express(arguments, arrays):
    """Returns the arrays under the names of `save_pretrained`, and the two JSON files for the directory."""
    registers, block = arguments["tokens"]["registers"], arguments["block"]
    if block["layer_scale"] is None:
        raise ValueError("Hugging Face's DINOv3 must have layer scale. Received: layer_scale=None")
    arrays |= {"embeddings.mask_token": np.zeros((1, 1, arguments["width"]), "float32")}
    arrays.setdefault("embeddings.register_tokens", np.zeros((1, 0, arguments["width"]), "float32"))
    config = transformers_config.write_model("DINOv3ViTModel", "dinov3_vit", arguments)
    config |= {
        "hidden_act": "silu" if block["swiglu"] else config["hidden_act"],
        "use_gated_mlp": block["swiglu"],
        "query_bias": block["qkv_bias"],
        "key_bias": block["qkv_bias"] and block["key_bias"],
        "value_bias": block["qkv_bias"],
        "num_register_tokens": registers,
    }
    return arrays, {CONFIG: config, PROCESSOR: transformers_config.write_processor("DINOv3ViT", arguments)}


FORMAT = Format(
    name="huggingface-dinov3",
    rows=ROWS + PLAIN_ROWS,
    detect=lambda names: detect(names) and not detect_gated(names),
    aliases=ALIASES,
    architecture=architecture,
    express=express,
    ignored=r"embeddings\.mask_token",
    suits=lambda arguments: arguments["rotary"] == "dinov3" and not arguments["block"]["swiglu"],
)
WITH_GATES = FORMAT._replace(
    name="huggingface-dinov3-gated",
    rows=ROWS + GATED_ROWS,
    detect=detect_gated,
    suits=lambda arguments: arguments["rotary"] == "dinov3" and arguments["block"]["swiglu"],
)
