"""Names in Hugging Face transformers' files: DINOv2, with registers, with its classifier, and inside Depth Anything."""

import re

import numpy as np

from keras_vit.checkpoints.formats import transformers_config
from keras_vit.checkpoints.formats.huggingface import (
    ATTENTION,
    BLOCK,
    EMBEDDINGS,
    IN_MEMORY,
    PROJECTION,
    QKV,
    TEXT,
)
from keras_vit.checkpoints.formats.transformers_config import CONFIG, PROCESSOR
from keras_vit.checkpoints.tables import (
    LINEAR,
    SAME,
    UNBIASED,
    Format,
    Row,
    blocks,
    classes_of,
    joined,
    need,
    torch_dense,
    torch_norm,
)
from keras_vit.models.options import merged

GATED = tuple(f"{BLOCK}.mlp.{part}_proj" for part in ("gate", "up"))  # in version 5's memory


ROWS = (
    *EMBEDDINGS,
    Row("encoder/register_tokens", "embeddings.register_tokens", SAME),
    *torch_norm("block_{i}/norm1", f"{BLOCK}.norm1"),
    *ATTENTION,
    Row("block_{i}/scale1/gamma", f"{BLOCK}.layer_scale1.lambda1", SAME),
    *torch_norm("block_{i}/norm2", f"{BLOCK}.norm2"),
    *torch_dense("block_{i}/mlp/fc1", f"{BLOCK}.mlp.{{fc1}}"),
    Row("block_{i}/mlp/fc1/kernel", tuple(f"{part}.weight" for part in GATED), joined(LINEAR, 2)),
    Row("block_{i}/mlp/fc1/bias", tuple(f"{part}.bias" for part in GATED), joined(SAME, 2)),
    *torch_dense("block_{i}/mlp/fc2", f"{BLOCK}.mlp.{{fc2}}"),
    Row("block_{i}/scale2/gamma", f"{BLOCK}.layer_scale2.lambda1", SAME),
    *torch_norm("norm", "layernorm"),
    *torch_dense("head", "classifier"),
    Row(("head/kernel", "head/bias"), "classifier.weight", UNBIASED),
    Row(("head/kernel", "head/bias"), f"{PROJECTION}.weight", UNBIASED),
)
ALIASES = (
    (r"^(dinov2|dinov2_with_registers|vision_model)\.", ""),
    *IN_MEMORY,
    (r"\.mlp\.down_proj\.", ".mlp.weights_out."),
)

BARE = {"hidden_act": "gelu", "layer_norm_eps": 1e-6}
STATED = {**BARE, "num_attention_heads": 12}
DEFAULTS = {None: BARE, "dinov2": STATED, "dinov2_with_registers": STATED}
MLP_NAMES = {False: {"fc1": "fc1", "fc2": "fc2"}, True: {"fc1": "weights_in", "fc2": "weights_out"}}  # by `swiglu`


def detect(names):
    return any(name.endswith(".layer_scale1.lambda1") for name in names) and any(
        name.endswith("embeddings.patch_embeddings.projection.weight") for name in names
    )


def detect_registers(names):
    return detect(names) and any(name.endswith("embeddings.register_tokens") for name in names)


def architecture(shapes, checkpoint, kind="DINOv2"):
    width, channels, *patch_size = need(shapes, "embeddings.patch_embeddings.projection.weight", 4)
    block = BLOCK.format(i=0)
    config = checkpoint.config
    config = config.get("backbone_config", config) if config.get("model_type") == "depth_anything" else config
    config = transformers_config.part_of(config, "vision")
    config_arguments, origins = transformers_config.read_model(config, width, DEFAULTS)
    statistics, evaluation, prepared = transformers_config.read_processor(checkpoint.processor, kind)
    gated = f"{block}.mlp.fc1.weight" not in shapes
    hidden = f"{block}.mlp.weights_out.weight" if gated else f"{block}.mlp.fc2.weight"
    registers = need(shapes, "embeddings.register_tokens", 3)[1] if "embeddings.register_tokens" in shapes else 0
    classes = classes_of(shapes, "classifier")
    arguments = {
        "patch_size": tuple(patch_size),
        "channels": channels,
        "width": width,
        "depth": blocks(shapes, re.compile(r"encoder\.layer\.(\d+)\.")),
        "mlp_dim": need(shapes, hidden, 2)[1],
        "block": {"swiglu": gated, "qkv_bias": f"{QKV[0].format(i=0)}.bias" in shapes, "layer_scale": 1.0},
        "tokens": {"class_token": True, "registers": registers},
        "pooling": "token+gap" if classes else "token",
        "num_classes": classes or classes_of(shapes, PROJECTION),
    }
    return merged(arguments, config_arguments, statistics), evaluation, origins | prepared


def express(arguments, arrays):
    """Returns the arrays under the names of `save_pretrained`, and the two JSON files for the directory."""
    if {"embeddings.position_embeddings", "embeddings.cls_token"} - set(arrays):
        raise ValueError(
            "Hugging Face's DINOv2 must have a class token and a table of positions. "
            f"Received: class_token={arguments['tokens']['class_token']}, position={arguments['position']!r}"
        )
    registers, width = arguments["tokens"]["registers"], arguments["width"]
    kind = "dinov2_with_registers" if registers else "dinov2"
    position = arrays["embeddings.position_embeddings"]
    if not arguments["tokens"]["class_position"]:  # transformers gives the class token a position, and registers none
        position = np.pad(position, ((0, 0), (1, 0), (0, 0)))
    elif registers:
        raise ValueError("Hugging Face's DINOv2 gives registers no positions: class_position=False. Received: True")
    arrays |= {
        "embeddings.position_embeddings": position,
        "embeddings.mask_token": np.zeros((1, width), "float32"),
    }
    model = "Dinov2WithRegisters" if registers else "Dinov2"
    if arguments["num_classes"]:
        arrays = {n if n.startswith("classifier.") else f"{kind}.{n}": array for n, array in arrays.items()}
    suffix = "ForImageClassification" if arguments["num_classes"] else "Model"
    config = transformers_config.write_model(model + suffix, kind, arguments)
    config |= {
        "mlp_ratio": _ratio(arguments),
        "use_swiglu_ffn": arguments["block"]["swiglu"],
        "num_register_tokens": registers,
    }
    return arrays, {CONFIG: config, PROCESSOR: transformers_config.write_processor("Bit", arguments)}


def _ratio(arguments):
    """Returns transformers' `mlp_ratio`, an integer; its gated MLPs keep two thirds, rounded up to a multiple of 8."""
    width, hidden = arguments["width"], arguments["mlp_dim"]
    for ratio in range(1, 65):
        dim = ratio * width
        if hidden == ((int(dim * 2 / 3) + 7) // 8 * 8 if arguments["block"]["swiglu"] else dim):
            return ratio
    raise ValueError(
        f"Hugging Face's DINOv2 must have an MLP of a multiple of the width, {width}, if gated of two thirds of it. "
        f"Received: mlp_dim={hidden}"
    )


FORMAT = Format(
    name="huggingface-dinov2",
    rows=ROWS,
    detect=lambda names: detect(names) and not detect_registers(names),
    aliases=ALIASES,
    architecture=architecture,
    express=express,
    placeholders=lambda arguments: MLP_NAMES[bool(arguments["block"]["swiglu"])],
    ignored=rf"embeddings\.mask_token|neck\..*|head\..*|{TEXT}",  # Depth Anything's
    head_names=rf"(classifier|{PROJECTION})\..*",
    suits=lambda arguments: arguments["block"]["layer_scale"] is not None,
)
WITH_REGISTERS = FORMAT._replace(
    name="huggingface-dinov2-registers", detect=detect_registers, resample="bicubic-antialias"
)
